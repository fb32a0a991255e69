"""The rows of the table, and how a scenario makes them."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

from tests.faults.verdict import Call, judge

# Of a line below a row.
_WIDTH = 300


@dataclass
class Row:
    """What a scenario showed.

    Attributes:
        name: The fault.
        counted: How many calls the model and the tools really had.
        expected: How many a first run makes.
        kills: How many processes were ended, or calls failed.
        wrong: What is not as it must be, in words.
        seconds: How long it took.
    """

    name: str
    counted: int = 0
    expected: int = 0
    kills: int = 0
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def check(self, holds: object, otherwise: str) -> None:
        """Something that must hold, besides the counts."""
        if not holds:
            self.wrong.append(otherwise)

    def judge(self, case: str, expected: Collection[Call], *, at_once: int = 0) -> None:
        """Adds the calls of a case; as `verdict.judge`."""
        verdict = judge(case, expected, at_once=at_once)
        self.counted += verdict.counted
        self.expected += len(expected)
        self.kills += verdict.kills
        self.wrong += verdict.wrong


class Table:
    """All rows; each is printed as it is known."""

    def __init__(self, database: str) -> None:
        self.rows: list[Row] = []
        self._database, self._lock = database, Lock()

    def heading(self) -> None:
        print(f"\n{self._database + ':':<76} {'calls':>5} {'of':>4} {'faults':>6} {'s':>5}", flush=True)

    @contextmanager
    def row(self, name: str) -> Iterator[Row]:
        """A row; an exception makes it one that is not ok."""
        row, began = Row(name), time.monotonic()
        try:
            yield row
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            row.wrong.append(f"{type(error).__name__}: {error} ({place.name}:{place.lineno})")
        row.seconds = time.monotonic() - began
        with self._lock:
            self.rows.append(row)
            verdict = "ok" if not row.wrong else "NOT"
            print(f"{row.name:<76} {row.counted:>5} {row.expected:>4} {row.kills:>6} {row.seconds:>5.0f} {verdict}", flush=True)
            for line in row.wrong:
                print(f"    {line if len(line) < _WIDTH else line[:_WIDTH] + ' ...'}", flush=True)


Scenario = Callable[[], None]
