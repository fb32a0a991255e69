"""A workflow in a workflow is a task group, or one task."""

from __future__ import annotations

from typing import Any

from google.adk import Context, Event, Workflow
from google.adk.workflow import DEFAULT_ROUTE, JoinNode, node

from adk_airflow.testing import run_workflow
from tests.dag.nodes import const, router, show


def test_embedded_neighbours_share_their_live_state() -> None:
    def one(ctx: Context) -> None:
        ctx.state["seen"] = [*ctx.state.get("seen", []), "one"]

    def two(ctx: Context) -> None:
        ctx.state["seen"] = [*ctx.state.get("seen", []), "two"]

    first = const("first", 1)
    wf = Workflow(name="wf", edges=[("START", first, (node(one), node(two)), JoinNode(name="join"))])
    embedded = {"mode": "embedded"}
    run = run_workflow(wf, nodes={"first": embedded, "one": embedded, "two": embedded})

    assert run.session_state == {"seen": ["one", "two"]}
    assert run.task_states == {"first_region": ["success"], "join": ["success"]}


def test_a_nested_workflow_is_a_task_group_whose_routes_and_schemas_stay_inside() -> None:
    def start(node_input: int) -> Event:
        return Event(output=node_input + 1, route="up" if node_input > 2 else "down")

    inner = Workflow(
        name="inner", input_schema=int, output_schema=str, edges=[("START", start, {"up": show("high"), "down": show("low")})]
    )
    wf = Workflow(name="outer", edges=[("START", const("n", "3"), inner, {"up": show("never"), DEFAULT_ROUTE: show("tail")})])
    run = run_workflow(wf)

    assert run.output == "tail:'high:4'"
    assert run.task_states["inner.low"] == ["skipped"]
    assert run.task_states["never"] == ["skipped"]
    assert run.outputs["inner"] == ["high:4"]


def test_a_nested_workflow_that_ends_silently_hands_on_none_and_its_state() -> None:
    def lost(ctx: Context) -> Event:
        ctx.state["was_here"] = True
        return Event(output=1, route="nowhere")

    inner = Workflow(name="inner", edges=[("START", lost, {"somewhere": show("a")})])

    def tail(ctx: Context, node_input: Any) -> list[Any]:
        return [node_input, ctx.state.get("was_here")]

    assert run_workflow(Workflow(name="outer", edges=[("START", inner, tail)])).output == [None, True]


def test_a_nested_workflow_that_is_not_triggered_is_skipped_as_a_whole() -> None:
    inner = Workflow(name="inner", edges=[("START", (show("a"), show("b")), JoinNode(name="j"))])
    run = run_workflow(Workflow(name="outer", edges=[("START", router("r", "x"), {"x": show("x"), "y": inner})]))

    assert run.output == "x:None"
    assert {state for task, states in run.task_states.items() if task.startswith("inner.") for state in states} == {"skipped"}


def test_workflows_nest_deeply_with_workers_loops_and_joins_inside() -> None:
    count = node(lambda node_input: Event(output=node_input + 1, route="again" if node_input < 3 else "done"), name="count")
    deepest = Workflow(name="deepest", edges=[("START", count, {"again": count, "done": show("end")})])
    double = node(lambda node_input: node_input * 2, name="double", parallel_worker=True)
    join = JoinNode(name="join")
    middle = Workflow(
        name="middle",
        edges=[("START", node(lambda node_input: [node_input, 10], name="list"), double, join), ("START", deepest, join)],
    )
    run = run_workflow(Workflow(name="outer", edges=[("START", const("one", 1), middle, show("tail"))]))

    assert run.output == "tail:{'double': [2, 20], 'deepest': 'end:4'}"
    assert run.outputs["middle.deepest.count"] == [2, 3, 4]
    assert run.task_states["middle.double.run"] == ["success", "success"]


def test_two_last_outputs_in_a_nested_workflow_fail_it_as_in_adk() -> None:
    inner = Workflow(name="inner", edges=[("START", (const("a", 1), const("b", 2)))])
    run = run_workflow(Workflow(name="outer", edges=[("START", inner, show("tail"))]))

    assert run.error is not None
    assert run.error[0] == "WorkflowConfigurationError"
    assert run.task_states["inner.output"] == ["failed"]
