"""What the run itself gives to the tasks that START has an edge to: the user's input and the initial session state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adk_airflow.errors import ValueNotTransferableError
from adk_airflow.runtime.wire import codec, json_form, lineage

START = "__START__"
START_WRITER = "run"


@dataclass(frozen=True)
class Start:
    """What the run gives.

    Attributes:
        input: The user's input: text, or data that becomes JSON text, as ADK gets a user message.
        state: The initial session state, encoded.
        output: What START hands on: the message as the App's plugins and the workflow's ``input_schema`` made it.
    """

    input: Any = None
    state: Mapping[str, Any] | None = None
    output: Any = None

    @classmethod
    def of(cls, input: Any, state: Mapping[str, Any]) -> Start:
        """Encodes what the run gives.

        Raises:
            ValueNotTransferableError: The input or a state value has no JSON form.
        """
        codec.encode(input)
        encoded = {}
        for key, value in state.items():
            try:
                codec.encode(key)
                encoded[key] = codec.encode(value)
            except ValueNotTransferableError as error:
                raise ValueNotTransferableError(f"state key {key!r}: {error}") from None
        return cls(input, encoded)

    def message(self) -> Any:
        """The input as ADK's Runner takes it."""
        return message_of(self.input)

    def entries(self) -> lineage.State:
        """The initial state, written by the run before any task."""
        return lineage.write({}, self.state or {}, START_WRITER)


def message_of(given: Any) -> Any:
    """What a user gave, text or data, as the ``Content`` that ADK's Runner takes. A Content passes as it is."""
    from google.genai import types

    if isinstance(given, types.Content):
        return given
    if not isinstance(given, str):
        given = "" if given is None else codec.dumps(json_form.to_json(given))
    return types.Content(role="user", parts=[types.Part(text=given)])
