"""How session state travels along the edges of a DAG, and how two branches are merged.

Every key carries the task that wrote it last (``writer``) and the writers whose value that task had seen (``over``). A
value that was made knowing another one replaces it; two values made side by side are a lost update: the later
predecessor wins, always, and the loss is reported. In one ADK process the later *moment* would win.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from adk_airflow.errors import EnvelopeError
from adk_airflow.runtime.wire.sealed import opened


@dataclass(frozen=True)
class Entry:
    """One key of the state: the encoded value, who wrote it, and whose values the writer had seen."""

    value: Any
    writer: str
    over: frozenset[str] = frozenset()

    def to_json(self) -> list[Any]:
        return [self.value, self.writer, sorted(self.over)]

    @classmethod
    def from_json(cls, data: Any) -> Entry:
        """Reads what ``to_json`` made; its value may have been sealed.

        Raises:
            EnvelopeError: It is something else, or cannot be opened.
        """
        if not (isinstance(data, list) and len(data) == 3 and isinstance(data[2], list)):
            raise EnvelopeError("a state entry is not [value, writer, seen writers]")
        value, writer, over = data
        if not all(isinstance(name, str) for name in (writer, *over)):
            raise EnvelopeError("a state entry names a writer that is no text")
        return cls(opened(value), writer, frozenset(over))


State = dict[str, Entry]


@dataclass(frozen=True)
class LostUpdate:
    """Two tasks wrote ``key`` without seeing each other; the value of ``kept`` stays, that of ``lost`` is gone."""

    key: str
    kept: str
    lost: str


@dataclass
class Merged:
    """The state after a merge, and the updates that were lost in it."""

    state: State = field(default_factory=dict)
    lost: list[LostUpdate] = field(default_factory=list)


def merge(states: Iterable[State]) -> Merged:
    """Merges the states of several predecessors, given in predecessor order."""
    merged = Merged()
    for state in states:
        for key, entry in state.items():
            have = merged.state.get(key)
            merged.state[key] = entry if have is None else _newer(key, have, entry, merged.lost)
    return merged


def _newer(key: str, have: Entry, other: Entry, lost: list[LostUpdate]) -> Entry:
    if have.writer == other.writer:
        return Entry(have.value, have.writer, have.over | other.over)
    if have.writer in other.over:
        return Entry(other.value, other.writer, have.over | other.over)
    if other.writer in have.over:
        return Entry(have.value, have.writer, have.over | other.over)
    if have.value != other.value or _text(have.value) != _text(other.value):
        lost.append(LostUpdate(key, kept=other.writer, lost=have.writer))
    return Entry(other.value, other.writer, have.over | other.over | {have.writer})


def _text(value: Any) -> str:
    """The same for equal encoded values only; for Python, ``[True]`` and ``[1]`` are equal too."""
    return json.dumps(value, sort_keys=True)


def write(state: State, written: Mapping[str, Any], writer: str) -> State:
    """Returns ``state`` after ``writer`` set the (encoded) values of ``written``."""
    after = dict(state)
    for key, value in written.items():
        before = state.get(key)
        over = frozenset() if before is None else before.over | {before.writer}
        after[key] = Entry(value, writer, over)
    return after
