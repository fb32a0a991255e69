"""What happened in one try of a task, for people and for the tasks after it: JSON lines in parts, beside the artifacts.

A part is always written whole, its first line a header; the last part is written again while it grows, every two seconds at
first and at longer times later, and once at the end. A task that takes a moment writes one small file. Nothing that hinders
the writing changes the run: it is one warning in the task's log.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from adk_airflow.runtime import failures, sealing
from adk_airflow.runtime.record import plain_entries
from adk_airflow.runtime.record.plain_entries import PlainEntries
from adk_airflow.runtime.record.store import loop_asks_too

if TYPE_CHECKING:
    from adk_airflow.runtime.record.attempt import Attempt
    from adk_airflow.runtime.record.entries import Entry

XCOM_KEY = "adk_record"
VERSION = 1
HEADER = "adk_record"
"""The key of a header line that holds the version."""

_SECONDS = 2.0
_SHARE = 0.05  # of the time since the beginning that lies between two writes later on
_MOST_SECONDS = 60.0
_PART_LINES = 1_000
_PART_CHARACTERS = 1_000_000
_FAILURES = 3  # writes that may fail before nothing more is kept
_PATIENCE = 20.0  # seconds that the end of the task waits for the last write


class Place(Protocol):
    """Where the parts of one try go."""

    uri: str

    def write(self, name: str, data: bytes) -> None:
        """Writes a file, in place of one that is there. Raises OSError, and what a store raises."""


def part_name(number: int) -> str:
    """The file name of a part, from 0."""
    return f"part-{number:04d}.jsonl"


class Transcript:
    """A reader of entries that keeps them.

    Args:
        attempt: The try.
        place: Where the parts go.
        content: What was said is part of it; else names, times, sizes and usage only.
        log: The task's log.
        on_first: Called when the first part can be read while the task runs, maybe in another thread.
    """

    def __init__(
        self,
        attempt: Attempt,
        place: Place,
        *,
        content: bool = True,
        log: Any = None,
        on_first: Callable[[], None] | None = None,
    ) -> None:
        self._attempt = attempt
        self._place = place
        self._content = content
        self._log = log or logging.getLogger(__name__)
        self._on_first = on_first
        self._plain = PlainEntries(content=content)
        self._id = uuid.uuid4().hex
        self._began = time.time()
        self._counts: Counter[str] = Counter()
        self._waiting: list[dict[str, Any]] = []
        self._part, self._lines, self._characters = 0, list[str](), 0
        self._number = 0
        self._written_at = time.monotonic()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._failures = 0
        self._said = False
        self._partial = False

    # -- what is told ------------------------------------------------------------------------------------

    def add(self, entry: Entry) -> None:
        """Takes an entry. Its values are read at once, as they may change later."""
        try:
            rows = list(self._plain.rows(entry))
        except Exception as error:  # of a user's own class of value: a record must not fail the run
            self._partial = True
            self._say(f"an entry of kind {entry.kind!r} has no form that can be kept ({type(error).__name__})")
            rows = [{"kind": entry.kind, "path": entry.path, "name": entry.name, "status": entry.status, "began": entry.began}]
        self.add_rows(rows)

    def add_rows(self, rows: Iterable[dict[str, Any]]) -> None:
        """Takes rows as they are to stand there."""
        with self._changed:
            for row in rows:
                self._count(row)
                if self._failures < _FAILURES:
                    self._waiting.append(row)
        if not self._attempt.own_process:
            if time.monotonic() - self._written_at > self._seconds():
                self._write()
        elif self._thread is None and not self._closed and self._waiting:
            self._thread = threading.Thread(target=self._write_on, name="adk-airflow-transcript", daemon=True)
            self._thread.start()

    def keep(self, name: str, data: bytes) -> None:
        """Keeps a file of another kind beside the parts.

        Args:
            name: Its name.
            data: What it holds.
        """
        try:
            self._place.write(name, data)
        except Exception as error:
            self._partial = True
            self._say(failures.one_line(error))

    def failed(self, path: str, error: BaseException) -> None:
        """Takes what the task fails with.

        Args:
            path: Path of the node run that failed.
            error: The error.
        """
        self.add_rows([plain_entries.failure(path, error, time.time(), content=self._content)])

    def _count(self, row: Mapping[str, Any]) -> None:
        counts, kind = self._counts, row["kind"]
        counts["entries"] += 1
        name = {"node": "node_runs", "model": "model_calls", "tool": "tool_calls", "question": "questions", "error": "errors"}
        if kind in name:
            counts[name[kind]] += 1
        if row.get("status") == "failed":
            counts["failed"] += 1
        if row.get("replayed"):
            counts["replayed"] += 1

    def reference(self) -> dict[str, Any]:
        """The XCom ``adk_record``: where it is, and counters."""
        counts = {name: self._counts[name] for name in _COUNTERS}
        return {
            "uri": self._place.uri,
            "version": VERSION,
            "try": self._attempt.number,
            "complete": not (self._failures or self._partial),
            **counts,
        }

    def close(self, *, patience: float = _PATIENCE) -> None:
        """Writes what is still to be written.

        Args:
            patience: Seconds for it, where it is written in a thread.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is None:
            self._write()
            return
        self._thread.join(patience)
        if self._thread.is_alive():
            self._partial = True
            self._say(f"the last part was not written within {patience:g} s")

    # -- writing -----------------------------------------------------------------------------------------

    def _seconds(self) -> float:
        return min(_MOST_SECONDS, max(_SECONDS, (time.time() - self._began) * _SHARE))

    def _write_on(self) -> None:
        first = self._on_first
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or len(self._waiting) > _PART_LINES, self._seconds())
                closed = self._closed
            written = self._write()
            if closed:
                return
            if written and first is not None and not loop_asks_too():
                first()
                first = None

    def _write(self) -> bool:
        """Writes the rows that wait; whether anything was written."""
        with self._changed:
            rows, self._waiting = self._waiting, []
        self._written_at = time.monotonic()
        if not rows or self._failures >= _FAILURES:
            return False
        try:
            lines = [_line({"n": next_number, **row}) for next_number, row in enumerate(_masked(rows), self._number)]
            self._number += len(lines)
            for batch in _batches(lines):
                self._write_part(batch)
        except Exception as error:
            self._failures += 1
            self._say(failures.one_line(error))
            return False
        self._failures = 0
        return True

    def _write_part(self, lines: Iterable[str]) -> None:
        self._lines.extend(lines)
        header = {
            HEADER: VERSION,
            "id": self._id,
            "part": self._part,
            **dict(zip(("dag_id", "run_id", "task_id", "map_index"), self._attempt.place, strict=True)),
            "try": self._attempt.number,
            "began": round(self._began, 3),
            "content": self._content,
        }
        text = "\n".join([_line(header), *self._lines, ""])
        self._place.write(part_name(self._part), text.encode("utf-8", "replace"))
        if len(self._lines) >= _PART_LINES or len(text) >= _PART_CHARACTERS:
            self._part += 1
            self._lines = []

    def _say(self, cause: str) -> None:
        """Says once what hinders."""
        if not self._said:
            self._said = True
            self._log.warning(
                "What happens in this task is not recorded, or not whole ([adk_airflow] transcripts_uri): %s. The run goes on.",
                cause,
            )


_COUNTERS = ("entries", "node_runs", "model_calls", "tool_calls", "questions", "errors", "failed", "replayed")


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def _batches(lines: list[str]) -> Iterator[list[str]]:
    for at in range(0, len(lines), _PART_LINES):
        yield lines[at : at + _PART_LINES]


def _masked(rows: list[dict[str, Any]]) -> list[Any]:
    """The rows without secrets; looked at together first, as most have none."""
    together: Any = rows
    return [sealing.masked(row)[0] for row in rows] if sealing.holds_secret(together) else rows
