"""What reaches a node: arrivals in ADK's order, the merged state, and what lies behind a task that was skipped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from google.adk import Workflow
from google.adk.workflow import START, JoinNode, node

from adk_airflow.errors import EnvelopeError
from adk_airflow.runtime import inbox
from adk_airflow.runtime.inbox import Inbox
from adk_airflow.runtime.start import Start
from adk_airflow.runtime.wire import codec, lineage
from adk_airflow.runtime.wire.envelope import Envelope, Firing
from adk_airflow.runtime.wire.triggers import Arrival, Trigger


class Left:
    """What tasks left, by task id; a task that is not in it was skipped."""

    def __init__(self, *envelopes: Envelope) -> None:
        self._by_task = {envelope.task: envelope for envelope in envelopes}

        self.states: dict[str, str] = {}

    def ask(self, task_ids: Iterable[str]) -> None:
        self.states.update(dict.fromkeys(task_ids, "asked"))

    def get(self, task_id: str) -> Envelope | None:
        return self._by_task.get(task_id)


def envelope(task: str, *firings: Firing, state: dict[str, Any] | None = None, over: lineage.State | None = None) -> Envelope:
    written = lineage.write(over or {}, {key: codec.encode(value) for key, value in (state or {}).items()}, task)
    return Envelope(task, "wf", task, firings=firings, state=written)


def read(workflow: Workflow, node_name: str, *left: Envelope, start: Start | None = None) -> Inbox:
    assert workflow.graph is not None
    tasks = {other.name: other.name for other in workflow.graph.nodes if other.name not in (START.name, node_name)}
    return inbox.read(workflow, [node_name], start=start, output_tasks=tasks, envelopes=Left(*left))  # type: ignore[arg-type]


def step(name: str) -> Any:
    return node(lambda: None, name=name)


A, B, C, END = step("a"), step("b"), step("c"), step("end")


def test_each_firing_that_names_the_node_arrives_in_the_order_of_the_edges() -> None:
    wf = Workflow(name="wf", edges=[(START, (A, B)), (A, END), (B, END)])
    found = read(
        wf,
        "end",
        envelope("b", Firing("b", "from b", next=("end",), branch="x")),
        envelope("a", Firing("a", 1, next=("end", "b")), Firing("a", 2, next=("b",)), Firing("a", 3, next=("end",))),
    )

    assert found.arrivals == (
        Arrival("end", Trigger(1, None, True)),
        Arrival("end", Trigger(3, None, False)),
        Arrival("end", Trigger("from b", "x", False)),
    )


def test_nothing_arrives_when_every_predecessor_went_elsewhere() -> None:
    wf = Workflow(name="wf", edges=[(START, A), (A, END)])

    assert read(wf, "end", envelope("a", Firing("a", 1))).arrivals == ()


def test_what_lies_before_a_skipped_task_gives_the_state_but_no_trigger() -> None:
    wf = Workflow(name="wf", edges=[(START, A, B, END), (START, C, END)])
    found = read(wf, "end", envelope("a", Firing("a", 1), state={"k": 1}), envelope("c", Firing("c", 2, next=("end",))))

    assert [arrival.trigger.input for arrival in found.arrivals] == [2]
    assert found.values == {"k": 1}


def test_start_arrives_before_the_others_and_its_state_is_under_theirs() -> None:
    wf = Workflow(name="wf", edges=[(START, (A, END)), (A, END)])
    start = Start(input="hi", state={"k": 0, "own": 1}, output="HI")
    before = envelope("a", Firing("a", 1, next=("end",)), state={"k": 5}, over=start.entries())
    found = read(wf, "end", before, start=start)

    assert [arrival.trigger for arrival in found.arrivals] == [Trigger("HI", None, True), Trigger(1, None, False)]
    assert found.values == {"k": 5, "own": 1}
    assert found.message.parts[0].text == "hi"


def test_a_join_of_several_tasks_is_paired_and_waits_for_all() -> None:
    join = JoinNode(name="join")
    wf = Workflow(name="wf", edges=[(START, (A, B)), ((A, B), join)])
    a = envelope("a", Firing("a", 1, next=("join",)), Firing("a", 2, next=("join",)))

    assert [
        arrival.trigger.input for arrival in read(wf, "join", a, envelope("b", Firing("b", 9, next=("join",)))).arrivals
    ] == [{"a": 2, "b": 9}]
    assert read(wf, "join", a, envelope("b", Firing("b", 9))).arrivals == ()
    assert read(wf, "join", a).arrivals == ()


def test_two_that_wrote_one_key_side_by_side_are_a_lost_update() -> None:
    wf = Workflow(name="wf", edges=[(START, (A, B)), ((A, B), END)])
    found = read(
        wf,
        "end",
        envelope("a", Firing("a", next=("end",)), state={"k": "a"}),
        envelope("b", Firing("b", next=("end",)), state={"k": "b"}),
    )

    assert found.values == {"k": "b"}
    assert found.lost == (lineage.LostUpdate("k", kept="b", lost="a"),)


def test_nothing_at_all_is_an_error_that_names_the_node() -> None:
    wf = Workflow(name="wf", edges=[(START, A), (A, END)])

    with pytest.raises(EnvelopeError, match=r"workflow 'wf', node 'end': no task before it left anything.*Clear"):
        read(wf, "end")


def test_a_state_value_that_cannot_be_read_names_its_key_and_writer() -> None:
    damaged = Inbox((), {"k": lineage.Entry({"$": "model", "c": "subprocess:Popen", "v": {}}, "a")}, (), None)

    with pytest.raises(EnvelopeError, match=r"state key 'k', written by task 'a': a value of class subprocess:Popen"):
        _ = damaged.values


def test_airflow_is_asked_for_the_direct_predecessors_and_only_behind_a_skipped_one_for_all_others() -> None:
    class Asked(Left):
        def __init__(self, *envelopes: Envelope) -> None:
            super().__init__(*envelopes)
            self.together: list[list[str]] = []

        def ask(self, task_ids: Iterable[str]) -> None:
            if new := sorted({*task_ids} - self.states.keys()):
                self.together.append(new)
            super().ask(new)

    names = "abcdefgh"
    nodes = [step(name) for name in names]
    workflow = Workflow(name="wf", edges=[("START", *nodes)])
    tasks = {name: name for name in names}
    near, far = Asked(envelope("g")), Asked(envelope("b"))

    assert set(inbox.read_back(workflow, ["g"], tasks, near)) == {"g"}  # type: ignore[arg-type]
    assert near.together == [["g"]]
    assert set(inbox.read_back(workflow, ["g"], tasks, far)) == {"b"}  # type: ignore[arg-type]
    assert far.together == [["g"], ["a", "b", "c", "d", "e", "f"]]
