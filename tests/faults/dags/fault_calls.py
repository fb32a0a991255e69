"""Writes down each call where it is really made, and ends the process of the task at a point that a test chose.

A case has a folder of its own below ``FAULTS_FOLDER``: ``calls``, a line of JSON per event; ``kill/``, ``fail/``, ``hold/`` and
others, an empty file per point at which a process is still to be ended, a call is still to fail or to wait; ``round``, how
often a person has cleared the case: results differ by it, so that what is answered from an old record shows. A point is one
call of one line; a line is what makes its calls one after the other: an agent, a loop, an item.
"""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path


def folder_of(case: str) -> Path:
    """Where the case is kept."""
    return Path(os.environ["FAULTS_FOLDER"], case)


def write(case: str, event: str, line: str, call: str) -> None:
    """Adds an event, whole, whichever processes write at the same time."""
    entry = {"event": event, "line": line, "call": call, "time": time.time(), "pid": os.getpid()}
    folder = folder_of(case)
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / "calls", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, json.dumps(entry).encode() + b"\n")
    finally:
        os.close(descriptor)


def marked(case: str, what: str, line: str, call: str) -> bool:
    """Whether that is still to happen at this call."""
    return _mark(case, what, line, call).exists()


def happens(case: str, what: str, line: str, call: str) -> bool:
    """Whether that is to happen at this call now: true once for each mark, and written down."""
    due = is_due(case, what, line, call)
    if due:
        write(case, what, line, call)
    return due


def is_due(case: str, what: str, line: str, call: str) -> bool:
    """The same, not written down."""
    try:
        _mark(case, what, line, call).unlink()
    except FileNotFoundError:
        return False
    return True


def begin(case: str, line: str, call: str) -> None:
    """The call begins in this process, which ends at once where the test says so, as by a machine that is lost."""
    write(case, "begin", line, call)
    if happens(case, "kill", line, call):
        os.kill(os.getpid(), signal.SIGKILL)
    if happens(case, "fail", line, call):
        raise ConnectionError(f"{line} {call} failed, as the test says")
    while marked(case, "hold", line, call):
        time.sleep(0.05)


def loses_its_supervisor(case: str, line: str, call: str) -> bool:
    """Where the test says so, ends the supervisor of this process, and waits until the try that overtakes this one is over."""
    if not happens(case, "orphan", line, call):
        return False
    os.kill(os.getppid(), signal.SIGKILL)
    while not (folder_of(case) / "over").exists():
        time.sleep(0.1)
    return True


def end(case: str, line: str, call: str) -> None:
    """The call has its result."""
    write(case, "end", line, call)


def round_of(case: str) -> int:
    """How often a person has cleared the case."""
    try:
        return int((folder_of(case) / "round").read_text())
    except FileNotFoundError:
        return 0


def _mark(case: str, what: str, line: str, call: str) -> Path:
    return folder_of(case) / what / f"{line}.{call}"
