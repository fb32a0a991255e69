"""Where the entries of a journal are kept: at once in a file of this machine, and with it in Airflow's task state store.

A process that is killed in the middle loses nothing that it appended to the file. A machine that is lost loses what had not yet
reached the state store, which is written side by side with the work: what a call of a model or a tool gave within
milliseconds, the rest within half a second.

The state store holds one text in pieces, below ``adk:journal:<n>``; ``adk:journal`` says which generation of tries it is of. It
outlives a clear, which begins another generation: the pieces of the one before are deleted then. File and pieces are sealed
with Airflow's Fernet key. Without a key they are clear text, and an entry with a secret that Airflow masks is left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from adk_airflow.errors import AdkAirflowError
from adk_airflow.runtime import failures
from adk_airflow.runtime.record.attempt import PATIENCE, Attempt, Standing, is_away
from adk_airflow.runtime.wire import sealed

_log = logging.getLogger(__name__)

KEY = "adk:journal"
_PIECE = 32_000  # characters; sealed it stays below the 64 KB that Airflow's REST API allows for a value
_PLAIN = "="  # before a text that is not sealed
_SECONDS = 0.5
_MOST_SECONDS = 5.0  # that something waits for what was paid before it to be in the state store
_KEEP_FILES = 7 * 86_400.0  # seconds


class JournalStore:
    """Keeps the lines of one task instance.

    Args:
        attempt: The try.
        state: Airflow's ``context["task_state_store"]``.
        standing: Whether the try still counts.
    """

    def __init__(self, attempt: Attempt, state: Any, standing: Standing) -> None:
        self._attempt = attempt
        self._standing = standing
        self._state = state
        self._file = _folder() / f"{_name(attempt)}.jsonl"
        self._pieces = 0
        self._waiting: deque[str] = deque()  # not locked: most lines need not wake the writer
        self._paid, self._safe = 0, 0  # lines that were to be stored at once, and how many of them are
        self._failed, self._away = False, False
        self._changed = threading.Condition()
        self._writer: threading.Thread | None = None
        self._closed = False
        self._out: Any = None
        self._said = False

    # -- what is there -----------------------------------------------------------------------------------

    def read(self) -> list[str]:
        """The lines of the tries before, each once."""
        if self._attempt.number == 1:
            return []
        remove_old_files()
        stored = self._read_state()
        lines = dict.fromkeys(stored)
        known = len(lines)
        with contextlib.suppress(OSError):
            for sealed_line in self._file.read_text("ascii", "replace").splitlines():
                if (line := _opened(sealed_line)) is not None:
                    lines.setdefault(line)
        self._waiting.extend(list(lines)[known:])  # so that they reach the state store, too
        return list(lines)

    def _read_state(self) -> list[str]:
        header = self._state.get(KEY)
        if not isinstance(header, dict):
            return []
        texts: list[str] = []
        while (piece := self._state.get(f"{KEY}:{len(texts)}")) is not None:
            texts.append(str(piece))
        # Where another task was cleared, this machine has the file of the try before; where this one was, it has none.
        cleared = header.get("clears") != self._attempt.clears and not self._file.exists()
        if cleared or header.get("generation") != self._attempt.generation:
            for at in reversed(range(len(texts))):
                self._state.delete(f"{KEY}:{at}")
            self._state.delete(KEY)
            _log.info("The task was cleared: what earlier tries had finished is done afresh")
            return []
        self._pieces = len(texts)
        if header != self._header():
            self._state.set(KEY, self._header())
        opened = [_opened(text) for text in texts]
        if None in opened:
            _log.warning("A part of what earlier tries had finished cannot be read, so it is done again")
        return [line for line in "".join(text for text in opened if text is not None).splitlines() if line]

    def _header(self) -> dict[str, Any]:
        return {"generation": self._attempt.generation, "clears": self._attempt.clears}

    # -- what is added -----------------------------------------------------------------------------------

    def append(self, line: str, *, now: bool) -> None:
        """Keeps a line.

        Args:
            line: Text without a line break.
            now: It goes to the state store at once.
        """
        kept = self._sealed(line)
        if kept is None:
            return
        if self._attempt.own_process:
            self._write_file(kept)
        self._waiting.append(line)
        if now:
            with self._changed:
                self._paid += 1
                self._changed.notify_all()
        if self._attempt.own_process and self._writer is None:
            self._writer = threading.Thread(target=self._write_on, name="adk-airflow-journal", daemon=True)
            self._writer.start()

    def _sealed(self, line: str) -> str | None:
        kept = sealed.seal(line)
        if kept is not None:
            return kept
        if failures.masked(line) != line:
            if not self._said:
                self._said = True
                _log.warning(
                    "What holds a secret is not kept for another try, which does it again: Airflow has no Fernet key. %s",
                    sealed.HOW_TO_SET_A_KEY,
                )
            return None
        return f"{_PLAIN}{line}"

    def _write_file(self, text: str) -> None:
        try:
            if self._out is None:
                self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._out = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(self._out, f"{text}\n".encode("ascii"))
        except OSError as error:
            if self._out != -1:
                _log.warning(
                    "The journal cannot be written to %s (%s); it is in Airflow's state store", self._file.parent, error
                )
            self._out = -1

    async def settle(self) -> None:
        """Waits until what was paid is in the state store, before something else is; not for a server that is away."""
        if self._attempt.own_process:
            if self._urgent and loop_asks_too():
                self._write_some()
            until = time.monotonic() + _MOST_SECONDS
            while self._urgent and not self._away and self._standing.look() and time.monotonic() < until:
                await asyncio.sleep(0.001)

    @property
    def _urgent(self) -> bool:
        return self._safe < self._paid

    def finish(self) -> None:
        """Writes what is still to be written, when the try has failed: for as long as a server may be away."""
        self._stop()
        until = time.monotonic() + (PATIENCE if self._attempt.own_process else 0)
        while self._waiting and not self._write_some() and self._away and self._standing.look() and time.monotonic() < until:
            time.sleep(2)
        self._close()
        if self._attempt.is_last:
            self._file.unlink(missing_ok=True)

    def keep(self) -> None:
        """Writes what waits, if the server takes it now."""
        self._stop()
        if self._waiting:
            self._write_some()
        self._close()

    def forget(self) -> None:
        """Removes everything: the task has succeeded."""
        self._stop()
        self._close()
        self._file.unlink(missing_ok=True)
        for at in range(self._pieces):
            self._state.delete(f"{KEY}:{at}")
        if self._pieces:
            self._state.delete(KEY)

    def drop_file(self) -> None:
        """Removes the file where the task was cleared while it ran: the next try begins afresh."""
        if self._standing.replaced:
            self._file.unlink(missing_ok=True)

    def _stop(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._writer is not None:
            self._writer.join()
            self._writer = None
        self._closed = False

    def _close(self) -> None:
        if self._out not in (None, -1):
            os.close(self._out)
        self._out = None

    def _write_on(self) -> None:
        while True:
            with self._changed:
                if not self._closed and (self._failed or not self._urgent):
                    self._changed.wait(_SECONDS)
                if self._closed:
                    return
            if not self._standing.look():
                return
            if self._waiting and not loop_asks_too():
                self._write_some()

    def _write_some(self) -> bool:
        """Writes what waits; False where the server does not take it now."""
        paid = self._paid  # before the lines are taken: those that were counted by now are among them
        lines = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if not lines:
            return True
        written = 0
        try:
            if not self._pieces:
                self._state.set(KEY, self._header())
            for text, count in _pieces(lines):
                self._state.set(f"{KEY}:{self._pieces}", sealed.seal(text) or f"{_PLAIN}{text}")
                self._pieces += 1
                written += count
        except Exception as error:
            if self._standing.heard(error):
                self.drop_file()
            elif self._attempt.own_process and not self._failed:
                _log.warning("The journal cannot be written to Airflow's state store now: %s", failures.one_line(error))
            self._failed, self._away = True, is_away(error)
            rest = lines[written:]
            # A piece of its beginning may be there: it begins anew on a line of its own.
            self._waiting.extendleft(reversed([f"\n{rest[0].lstrip()}", *rest[1:]]))
            return False
        self._safe, self._failed, self._away = paid, False, False
        return True


def _pieces(lines: list[str]) -> Iterator[tuple[str, int]]:
    """Texts of a size that the state store takes, each with the number of lines that end in it."""
    text, count = "", 0
    for line in lines:
        text += f"{line}\n"
        count += 1
        while len(text) > _PIECE:
            rest = text[_PIECE:]
            yield text[:_PIECE], count if not rest else count - 1
            text, count = rest, 1 if rest else 0
    if text:
        yield text, count


def _opened(text: str) -> str | None:
    """A line or a piece as it was; None where it cannot be read."""
    if text.startswith(_PLAIN):
        return text.removeprefix(_PLAIN)
    try:
        return sealed.open_sealed(text)
    except AdkAirflowError:
        return None


def loop_asks_too() -> bool:
    """Whether code on the event loop has asked Airflow asynchronously: a request of a thread would then make it fail."""
    runner = sys.modules.get("airflow.sdk.execution_time.task_runner")
    return getattr(getattr(runner, "SUPERVISOR_COMMS", None), "_loop_thread_id", None) is not None


def _folder() -> Path:
    return Path(tempfile.gettempdir()) / f"adk-airflow-{os.getuid()}"


def _name(attempt: Attempt) -> str:
    text = json.dumps([*attempt.place, attempt.generation, os.environ.get("AIRFLOW_HOME", "")])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def remove_old_files() -> None:
    """Removes the files of tries that ended a week ago or more, and that nobody went on from."""
    until = time.time() - _KEEP_FILES
    for file in _folder().glob("*.jsonl"):
        with contextlib.suppress(OSError):
            if file.stat().st_mtime < until:
                file.unlink()
