"""A parallel worker is a mapped task: an item to an instance, or a batch of them, in order."""

from __future__ import annotations

from google.adk import Context, Workflow
from google.adk.workflow import node

from adk_airflow.operators.worker import smallest_batch
from adk_airflow.testing import run_workflow
from tests.dag.nodes import const, show


def test_a_parallel_worker_keeps_order_and_maps_an_item_to_a_task() -> None:
    def double(node_input: int) -> int:
        return node_input * 2

    wf = Workflow(
        name="wf",
        edges=[("START", const("list", [3, None, 1]), node(lambda node_input: node_input, name="same", parallel_worker=True))],
    )
    run = run_workflow(wf)
    assert run.output == [3, None, 1]
    assert run.task_states["same.run"] == ["success"] * 3

    empty = run_workflow(
        Workflow(name="wf", edges=[("START", const("list", []), node(double, parallel_worker=True), show("tail"))])
    )
    assert (empty.output, empty.task_states["double.run"]) == ("tail:[]", ["skipped"])


def test_items_come_in_batches_and_their_state_is_merged() -> None:
    def mark(ctx: Context, node_input: int) -> int:
        ctx.state[f"item{node_input}"] = True
        return -node_input

    wf = Workflow(name="wf", edges=[("START", const("list", [1, 2, 3, 4, 5]), node(mark, parallel_worker=True))])
    run = run_workflow(wf, nodes={"mark": {"batch_size": 2}})

    assert run.output == [-1, -2, -3, -4, -5]
    assert len(run.task_states["mark.run"]) == 3
    assert run.session_state == {f"item{i}": True for i in range(1, 6)}


def test_more_items_than_airflow_maps_are_batched_by_themselves() -> None:
    wf = Workflow(
        name="wf",
        edges=[
            (
                "START",
                node(lambda: list(range(1030)), name="many"),
                node(lambda node_input: node_input + 1, name="inc", parallel_worker=True),
            )
        ],
    )
    run = run_workflow(wf, nodes={"inc": {"batch_size": 300}})
    assert (run.output[-1], len(run.task_states["inc.run"])) == (1030, 4)


def test_a_worker_that_several_triggers_reach_gives_a_list_for_each() -> None:
    wf = Workflow(
        name="wf",
        edges=[
            (
                "START",
                (const("a", [1, 2]), const("b", 3)),
                node(lambda node_input: node_input * 10, name="ten", parallel_worker=True),
                show("tail"),
            )
        ],
    )

    assert run_workflow(wf).outputs["tail"] == ["tail:[10, 20]", "tail:[30]"]


def test_a_worker_in_one_task_gives_the_same() -> None:
    wf = Workflow(
        name="wf",
        edges=[("START", const("list", [1, 2]), node(lambda node_input: node_input * 10, name="ten", parallel_worker=True))],
    )
    run = run_workflow(wf, nodes={"ten": {"mode": "embedded"}})

    assert (run.output, run.task_states["ten"]) == ([10, 20], ["success"])


def test_two_lists_whose_batches_would_be_too_many_get_larger_ones() -> None:
    assert smallest_batch([5, 3], 4) == 3
    assert smallest_batch([1025, 1023], 1024) == 3
    assert smallest_batch([3], 1024) == 1
    assert smallest_batch([0], 1024) == 1
