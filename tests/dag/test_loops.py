"""A loop runs in one task, as often as in ADK, up to its limit."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk import Context, Event, Workflow
from google.adk.workflow import node

from adk_airflow.testing import run_workflow
from tests.dag.nodes import const, router, show


def test_a_loop_runs_in_one_task_and_triggers_what_follows_as_often_as_adk() -> None:
    def draft(ctx: Context, node_input: Any) -> int:
        ctx.state["drafts"] = ctx.state.get("drafts", 0) + 1
        return ctx.state["drafts"]

    def judge(node_input: int) -> Event:
        return Event(output=node_input, route="again" if node_input < 3 else "done")

    draft_node, judge_node, log = node(draft), node(judge), show("log")
    wf = Workflow(
        name="review",
        edges=[("START", draft_node, judge_node, {"again": draft_node, "done": show("send")}), (draft_node, log)],
    )
    run = run_workflow(wf)

    assert run.task_states["draft_loop"] == ["success"]
    assert run.outputs["judge"] == [1, 2, 3]
    assert run.outputs["log"] == ["log:1", "log:2", "log:3"]
    assert run.outputs["send"] == ["send:3"]
    assert run.session_state == {"drafts": 3}


def test_several_triggers_enter_a_loop_one_after_the_other() -> None:
    def halve(node_input: int) -> Event:
        return Event(output=node_input // 2, route="again" if node_input > 3 else "end")

    halve_node = node(halve)
    wf = Workflow(
        name="wf", edges=[("START", (const("a", 8), const("b", 2)), halve_node, {"again": halve_node, "end": show("end")})]
    )

    # As in ADK: b's trigger waits while the loop runs for a's first one, then they take turns.
    assert run_workflow(wf).outputs["halve"] == [4, 1, 2, 1]


def test_a_loop_that_does_not_end_stops_at_its_limit_and_shows_its_routes() -> None:
    spin = node(lambda: Event(route="again"), name="spin")
    wf = Workflow(name="wf", edges=[("START", spin, {"again": spin})])
    run = run_workflow(wf, nodes={"spin": {"max_iterations": 4}})

    assert run.error is not None
    assert run.error[0] == "LoopLimitError"
    assert "node 'spin' has run 4 times, its max_iterations" in run.error[1]
    assert "spin: 'again', spin: 'again'" in run.error[1]


def endless() -> Workflow:
    spin = router("spin", "again")
    return Workflow(name="inner", edges=[("START", spin, {"again": spin})])


@pytest.mark.parametrize(
    ("arguments", "task"),
    [({}, "inner.spin_loop"), ({"inner": {"mode": "embedded"}}, "inner"), (None, "outer")],
)
def test_a_limit_holds_in_a_nested_workflow_wherever_it_runs(arguments: Any, task: str) -> None:
    limit, mode = {"inner/spin": {"max_iterations": 3}}, "tasks" if arguments is not None else "embedded"
    wf = Workflow(name="outer", edges=[("START", show("first"), endless(), show("last"))])
    run = run_workflow(wf, mode=mode, nodes={**limit, **(arguments or {})})

    assert run.error is not None
    assert run.error[0] == "LoopLimitError"
    assert "workflow 'inner', node 'spin' has run 3 times" in run.error[1]
    assert [row["route"] for row in run.node_runs[task] if row["node"] == "spin"] == ["again"] * 3


def test_a_limit_counts_anew_for_each_run_of_a_nested_workflow() -> None:
    def turn(ctx: Context) -> Event:
        ctx.state["turns"] = ctx.state.get("turns", 0) + 1
        return Event(route="again" if ctx.state["turns"] % 2 else "done")

    turn_node = node(turn)
    inner = Workflow(name="inner", edges=[("START", turn_node, {"again": turn_node, "done": show("end")})])
    wf = Workflow(name="outer", edges=[("START", (const("a", 1), const("b", 2)), inner)])
    run = run_workflow(wf, nodes={"inner/turn": {"max_iterations": 2}})

    assert (run.state, run.session_state) == ("success", {"turns": 4})
    assert [row["path"] for row in run.node_runs["inner"] if row["node"] == "turn"] == [
        f"outer@1/inner@{of_inner}/turn@{of_turn}" for of_inner in (1, 2) for of_turn in (1, 2)
    ]
