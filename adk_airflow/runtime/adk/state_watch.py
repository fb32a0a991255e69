"""Finds what changed inside of session state without ADK's noticing: ``ctx.state["found"].append(...)``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adk_airflow.errors import AdkAirflowError
from adk_airflow.runtime.wire import codec

_SIMPLE = (str, int, float, bool, bytes, type(None))


class StateWatch:
    """Knows the values of a session's state that can change in place, as they were last seen."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def begin(self, state: Mapping[str, Any]) -> None:
        """Takes a state as known."""
        self.changed(state)

    def note(self, delta: Mapping[str, Any]) -> None:
        """Takes encoded values as known that ADK was told of."""
        for key, value in delta.items():
            if isinstance(value, (dict, list)):
                self._known[key] = codec.dumps(value)

    def changed(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """The encoded values, by key, that are not as they were known; from here on they are."""
        found = {}
        for key, value in list(state.items()):
            if isinstance(value, _SIMPLE):
                continue
            try:
                data = codec.encode(value)
            except AdkAirflowError:
                continue
            text = codec.dumps(data)
            if self._known.get(key) != text:
                self._known[key], found[key] = text, data
        return found
