"""What a task leaves: every value in its form, or an error that names what cannot travel, and the rest kept."""

from __future__ import annotations

from typing import Any

from adk_airflow.errors import ValueNotTransferableError
from adk_airflow.runtime.adk.runner import RunResult
from adk_airflow.runtime.inbox import Inbox, merge
from adk_airflow.runtime.outbox import Outbox
from adk_airflow.runtime.start import Start
from adk_airflow.runtime.wire import codec
from adk_airflow.runtime.wire.envelope import Envelope, Firing
from adk_airflow.runtime.wire.worker import ItemOutput


def received(**state: Any) -> Inbox:
    return merge([], Start.of("hi", state))


def pack(inbox: Inbox, result: RunResult, outbox: Outbox | None = None) -> Envelope:
    _, text = (outbox or Outbox()).pack(inbox, result, writer="t", workflow="wf", node="n", where="workflow 'wf', node 'n'")
    return Envelope.loads(text, task="t")


def values(envelope: Envelope) -> dict[str, Any]:
    return {key: codec.decode(entry.value) for key, entry in envelope.state.items()}


def test_only_what_changed_is_written_anew() -> None:
    inbox = received(kept=[1], changed=[1], told=1)
    result = RunResult(state={"kept": [1], "changed": [1, 2], "told": 1, "new": True}, written={"told"})
    found = pack(inbox, result)

    assert values(found) == {"kept": [1], "changed": [1, 2], "told": 1, "new": True}
    assert {key: entry.writer for key, entry in found.state.items()} == {
        "kept": "run",
        "changed": "t",
        "told": "t",
        "new": "t",
    }


def test_a_value_of_another_type_has_changed() -> None:
    found = pack(received(flag=1), RunResult(state={"flag": True}))

    assert (found.state["flag"].writer, values(found)) == ("t", {"flag": True})


def test_an_output_that_cannot_travel_is_the_error_and_the_state_is_kept() -> None:
    result = RunResult(state={"seen": 1}, firings=[Firing("n", object())])
    found = pack(received(), result)

    assert isinstance(result.error, ValueNotTransferableError)
    assert str(result.error).startswith("workflow 'wf', node 'n': its output cannot travel to another task: value is a")
    assert (found.firings, values(found), found.error) == ((), {"seen": 1}, ("ValueNotTransferableError", str(result.error)))


def test_an_items_output_that_cannot_travel_is_the_error() -> None:
    result = RunResult()
    found = pack(received(), result, Outbox(outputs=[ItemOutput(0, 0, 1), ItemOutput(0, 1, object())]))

    assert "its output cannot travel" in str(result.error)
    assert found.outputs == ()


def test_a_state_value_that_cannot_travel_is_named_and_the_others_are_kept() -> None:
    result = RunResult(state={"good": 1, "handle": object(), "z": 2})
    found = pack(received(), result)

    assert "state key 'handle' cannot travel to another task" in str(result.error)
    assert values(found) == {"good": 1, "z": 2}


def test_the_nodes_own_error_stays_the_error() -> None:
    result = RunResult(state={"handle": object()}, firings=[Firing("n", object())], error=KeyError("own"))
    found = pack(received(), result)

    assert (type(result.error), found.error) == (KeyError, ("KeyError", "'own'"))
