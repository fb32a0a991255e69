"""Which nodes ran in a task of several, in which order and how they ended, is recorded for people."""

from __future__ import annotations

from google.adk import Context, Event, Workflow
from google.adk.workflow import RetryConfig, node

from adk_airflow.testing import run_workflow
from tests.dag.nodes import const, show


def test_nodes_that_share_a_task_are_reported_and_the_workflow_around_them_is_not() -> None:
    loop = node(lambda node_input: Event(output=1, route="done"), name="loop")
    inner = Workflow(name="inner", edges=[("START", loop, {"again": loop, "done": show("end")})])
    worker = node(lambda node_input: node_input, name="each", parallel_worker=True)
    wf = Workflow(name="outer", edges=[("START", inner, worker)])
    run = run_workflow(wf, nodes={"each": {"mode": "embedded"}})

    assert [row["path"] for row in run.node_runs["inner.loop_loop"]] == ["outer@1/inner@1/loop@1"]
    assert [row["path"] for row in run.node_runs["each"]] == ["outer@1/each@1/each@1", "outer@1/each@1"]


def test_the_nodes_of_a_workflow_that_a_worker_runs_for_each_item_are_reported_by_the_items_task() -> None:
    def turn(node_input: int, ctx: Context) -> Event:
        return Event(output=node_input, route="again" if ctx.node_path.endswith(f"turn@{node_input}") else "done")

    turn_node = node(turn)
    inner = Workflow(name="each", edges=[("START", turn_node, {"again": turn_node, "done": show("end")})])
    wf = Workflow(name="wf", edges=[("START", const("items", [7, 1]), node(inner, parallel_worker=True))])
    run = run_workflow(wf)

    assert run.output == ["end:7", "end:1"]
    assert [row["path"].removeprefix("wf@1/each@1/") for row in run.node_runs["each.run"]] == [
        *("each@1/turn@1", "each@1/end@1", "each@1"),
        *("each@2/turn@1", "each@2/turn@2", "each@2/end@1", "each@2"),
    ]


def test_the_runs_of_a_loops_nodes_are_recorded_for_people() -> None:
    def count(ctx: Context, n: int = 0) -> Event:
        ctx.state["n"] = n + 1
        return Event(output=n, route="again" if n < 2 else "done")

    count_node = node(count)
    wf = Workflow(name="wf", edges=[("START", count_node, {"again": count_node, "done": show("end")})])
    run = run_workflow(wf)

    assert [(row["node"], row["iteration"], row["route"], row["status"]) for row in run.node_runs["count_loop"]] == [
        ("count", 1, "again", "ok"),
        ("count", 2, "again", "ok"),
        ("count", 3, "done", "ok"),
    ]
    assert all(row["seconds"] >= 0 for row in run.node_runs["count_loop"])


def test_a_failed_attempt_of_a_node_and_its_last_one_which_another_node_made_fail_are_both_listed() -> None:
    async def fails(node_input: str) -> None:
        raise OSError("below")

    below = node(fails)

    @node(rerun_on_resume=True, retry_config=RetryConfig(max_attempts=2, initial_delay=0.01, jitter=0))
    async def tries(ctx: Context, node_input: str) -> None:
        if ctx.attempt_count == 1:
            raise ValueError("first")
        await ctx.run_node(below, node_input=node_input)

    run = run_workflow(Workflow(name="wf", edges=[("START", tries)]), mode="embedded")

    rows = [(row["node"], row["status"], row["error"]) for row in run.node_runs["wf"]]
    assert rows == [
        ("tries", "failed", "ValueError: first"),
        ("fails", "failed", "OSError: below"),
        ("tries", "failed", "OSError: below"),
    ]
