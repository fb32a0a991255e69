"""Whatever is wrong in what a task left: it is an EnvelopeError, or a value that travels on."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adk_airflow.errors import EnvelopeError
from adk_airflow.runtime.wire import codec
from adk_airflow.runtime.wire.envelope import Envelope
from tests.wire.test_codec import MOMENTS, VALUES, nested
from tests.wire.test_envelope import ENVELOPE

TAGGED = [codec.encode(value) for value in [*VALUES, *MOMENTS[::7]]]
PIECES = [None, True, 0, -1, 10**30, 1.5, "", "x", "2026-01-01", [], {}, [[]], [1, 2], {"$": "tuple"}, {"$": 1}, {"v": 1}]
ENVELOPE_DATA = json.loads(ENVELOPE.dumps())

many = settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))


def damage(data: Any, draw: Callable[[st.SearchStrategy[Any]], Any]) -> Any:
    """The data with something missing, else, or from elsewhere in it, in one place."""
    if isinstance(data, (list, dict)) and data and draw(st.integers(0, 5)):
        key = draw(st.sampled_from(range(len(data)) if isinstance(data, list) else sorted(data)))
        changed = data.copy()
        if draw(st.integers(0, 3)):
            changed[key] = damage(data[key], draw)
        else:
            del changed[key]
        return changed
    return draw(st.sampled_from([*PIECES, *TAGGED, nested(500)]))


@many
@given(st.data())
def test_a_damaged_value(data: st.DataObject) -> None:
    damaged = damage(data.draw(st.sampled_from(TAGGED)), data.draw)
    try:
        back = codec.decode(damaged)
    except EnvelopeError:
        return

    assert codec.encode(codec.decode(codec.encode(back))) == codec.encode(back)


@many
@given(st.data())
def test_a_damaged_envelope(data: st.DataObject) -> None:
    damaged = json.dumps(damage(ENVELOPE_DATA, data.draw))
    try:
        back = Envelope.loads(damaged, task="classify")
    except EnvelopeError as error:
        told = str(error)
    else:
        again = Envelope.loads(back.dumps(), task="classify")
        told = "the same" if again.dumps() == back.dumps() else "something else"

    assert "task 'classify'" in told or told == "the same"
