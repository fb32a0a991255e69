"""Starting, recognising and ending the processes of one Airflow, and nobody else's.

Each component is the leader of a session of its own. What it forks stays in that session even where Airflow
gives task processes a process group of their own, so a session is what gets ended. A process is recognised
by process id, start time and command line together: a number from an old file may belong to someone else.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

# The start time that the system reports may shift a little when its clock is set.
_START_TIME_TOLERANCE = 2.0

_SECONDS_UNTIL_INSISTING = 3.0
_SECONDS_BETWEEN_SIGNALS = 2.0


@dataclass(frozen=True)
class ProcessRef:
    """A process that can be found again later.

    Attributes:
        name: What it is to a person, e.g. ``scheduler``.
        pid: Its process id, and the id of its session if ``start`` started it.
        started: Its start time in seconds since the epoch.
        log: The file its output goes to, "" without one.
        command: What its command line must contain.
    """

    name: str
    pid: int
    started: float
    log: str = ""
    command: str = "airflow"

    def find(self) -> psutil.Process | None:
        """The process if it is still the one that was started, else None."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) <= _START_TIME_TOLERANCE
            if same and process.status() != psutil.STATUS_ZOMBIE and _runs(process, self.command):
                return process
        except psutil.Error:
            pass
        return None

    def family(self) -> list[psutil.Process]:
        """The process, what it started, and what is left of its session after it is gone."""
        leader = self.find()
        if leader is None and psutil.pid_exists(self.pid):
            with contextlib.suppress(psutil.Error):
                if psutil.Process(self.pid).status() != psutil.STATUS_ZOMBIE:
                    return []  # the number belongs to another process by now, and so may the session
        members = {process.pid: process for process in _session_members(self.pid) if _runs(process, self.command)}
        if leader is not None:
            with contextlib.suppress(psutil.Error):
                members |= {process.pid: process for process in [leader, *leader.children(recursive=True)]}
        return list(members.values())


def start(name: str, command: Sequence[str], *, env: Mapping[str, str], log: Path, cwd: Path) -> ProcessRef:
    """Starts ``airflow <command>`` in its own session; its output goes to the file ``log``, emptied first."""
    with log.open("wb") as output:
        child = subprocess.Popen(
            [sys.executable, "-m", "airflow", *command],
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    started = psutil.Process(child.pid).create_time()
    # The reference outlives this object (`up` leaves, `down` comes as another process); psutil reaps it.
    child.returncode = 0
    return ProcessRef(name=name, pid=child.pid, started=started, log=str(log))


def end(refs: Iterable[ProcessRef], *, grace: float) -> list[str]:
    """Ends the given processes and all they started; harmless when they are gone.

    The components get a TERM. What keeps them some seconds later, usually a running task, gets one too, and is
    killed when that does not help, so that its component can still report it and end by itself. Whatever is
    left after ``grace`` seconds is killed.

    Returns:
        The command lines of what had to be killed.
    """
    refs = list(refs)
    family = {process.pid: process for ref in refs for process in ref.family()}
    killed: list[str] = []
    deadline = time.monotonic() + grace
    try:
        for leader in _leaders(refs):
            _signal(leader, signal.SIGTERM)
        _wait(refs, min(grace, _SECONDS_UNTIL_INSISTING))
        number = signal.SIGTERM
        while time.monotonic() < deadline and _leaders(refs):
            killed += _signal_leaves(refs, number)
            _wait(refs, min(_SECONDS_BETWEEN_SIGNALS, deadline - time.monotonic()))
            number = signal.SIGKILL
        # Without its component an orphan has nobody who would end it: a moment, then it is killed.
        psutil.wait_procs(list(family.values()), timeout=0.5)
    finally:
        # In `finally`: an impatient second Ctrl-C skips the waiting, never the ending.
        family |= {process.pid: process for ref in refs for process in ref.family()}
        killed += _kill(family.values())
    return killed


def tail(log: Path, lines: int = 25) -> str:
    """The last ``lines`` lines of a log file; a sentence when there is none."""
    try:
        with log.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 64_000))
            text = file.read().decode("utf-8", errors="replace")
    except OSError as error:
        return f"(no log: {error})"
    return "\n".join(text.rstrip().splitlines()[-lines:]) or "(the log is empty)"


def _leaders(refs: list[ProcessRef]) -> list[psutil.Process]:
    return [leader for ref in refs if (leader := ref.find()) is not None]


def _signal(process: psutil.Process, number: int) -> None:
    with contextlib.suppress(psutil.Error):
        process.send_signal(number)


def _signal_leaves(refs: list[ProcessRef], number: int) -> list[str]:
    """Sends a signal to the processes that keep the components alive; returns the command lines of the killed."""
    killed = []
    for leader in _leaders(refs):
        for process in [leader, *_living_children(leader, recursive=True)]:
            if _living_children(process):
                continue
            if process == leader:
                _signal(leader, signal.SIGKILL)  # a triggerer needs 10 s to notice that its only child has ended
            else:
                if number == signal.SIGKILL:
                    killed.append(_command_line(process))
                _signal(process, number)
    return killed


def _living_children(process: psutil.Process, *, recursive: bool = False) -> list[psutil.Process]:
    living = []
    with contextlib.suppress(psutil.Error):
        for child in process.children(recursive=recursive):
            with contextlib.suppress(psutil.Error):
                if child.status() != psutil.STATUS_ZOMBIE:
                    living.append(child)
    return living


def _command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline()) or str(process.pid)
    except psutil.Error:
        return str(process.pid)


def _wait(refs: list[ProcessRef], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and any(ref.find() for ref in refs):
        time.sleep(0.1)


def _kill(processes: Iterable[psutil.Process]) -> list[str]:
    killed = []
    doomed = []
    for process in processes:
        with contextlib.suppress(psutil.Error):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                killed.append(_command_line(process))
                process.kill()
        doomed.append(process)
    psutil.wait_procs(doomed, timeout=5)
    return killed


def _session_members(session: int) -> list[psutil.Process]:
    members = []
    for process in psutil.process_iter():
        with contextlib.suppress(OSError):
            if os.getsid(process.pid) == session:
                members.append(process)
    return members


def _runs(process: psutil.Process, command: str) -> bool:
    return command in _command_line(process)
