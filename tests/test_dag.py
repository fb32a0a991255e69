"""A workflow as a real DAG run gives what it gives in ADK: output, state, routes, errors; and the UI shows what happened."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import re
import signal
import threading
import time
from typing import Any

import pytest
from airflow.models.asset import AssetEvent
from airflow.sdk import DAG, Asset, Param, PokeReturnValue, setup, task, teardown
from airflow.utils.session import create_session
from google.adk import Context, Event, Workflow
from google.adk.workflow import DEFAULT_ROUTE, JoinNode, RetryConfig, node
from sqlalchemy import select

from adk_airflow import AdkDag, AdkTaskGroup, AdkWorkflowOperator
from adk_airflow.errors import NodeOverrideError, UnsupportedWorkflowError, WorkflowLoadError
from adk_airflow.operators.worker import smallest_batch
from adk_airflow.testing import run_dag, run_workflow


def const(name: str, value: Any) -> Any:
    return node(lambda: value, name=name)


def show(name: str) -> Any:
    def body(node_input: Any) -> Any:
        return f"{name}:{node_input!r}"

    return node(body, name=name)


def router(name: str, route: Any, output: Any = None) -> Any:
    return node(lambda: Event(route=route, output=output), name=name)


def test_the_user_message_reaches_the_first_nodes_and_the_last_output_is_the_runs() -> None:
    def upper(node_input: str) -> str:
        return node_input.upper()

    run = run_workflow(Workflow(name="wf", edges=[("START", upper, show("tail"))]), input="hi")

    assert (run.state, run.output) == ("success", "tail:'HI'")


def test_two_dags_of_one_id_in_one_process_each_run_their_own_workflow() -> None:
    def first(node_input: str) -> str:
        return "first"

    def second(node_input: str) -> str:
        return "second"

    dags = [AdkDag(Workflow(name="wf", edges=[("START", body)]), dag_id="twice") for body in (first, second)]

    assert [run_dag(dag).output for dag in dags] == ["first", "second"]


def test_params_are_the_initial_state_and_bind_by_name() -> None:
    def scale(node_input: int, factor: int) -> int:
        return node_input * factor

    run = run_workflow(Workflow(name="wf", edges=[("START", scale)], input_schema=int), input="5", state={"factor": 3})

    assert run.output == 15
    assert run.session_state == {"factor": 3}


def test_a_run_conf_overrides_a_param() -> None:
    def scale(factor: int) -> int:
        return factor

    dag = AdkDag(Workflow(name="wf", edges=[("START", scale)]), schedule=None, params={"factor": Param(3, type="integer")})

    assert run_dag(dag, conf={"factor": 7}).output == 7


def test_the_dates_of_the_run_are_in_the_state_of_every_node() -> None:
    def look(ctx: Context) -> dict[str, Any]:
        keys = ("dag_id", "run_id", "logical_date", "data_interval_start", "data_interval_end")
        return {key: ctx.state[f"airflow:{key}"] for key in keys}

    dag = AdkDag(Workflow(name="dated", edges=[("START", const("first", 1), look)]), schedule="@daily")
    run = run_dag(dag, logical_date=dt.datetime(2026, 3, 4, tzinfo=dt.UTC))

    assert run.output == {
        "dag_id": "dated",
        "run_id": run.run_id,
        "logical_date": "2026-03-04T00:00:00+00:00",
        "data_interval_start": "2026-03-04T00:00:00+00:00",
        "data_interval_end": "2026-03-04T00:00:00+00:00",
    }


def test_state_flows_through_a_route_that_was_not_taken() -> None:
    """What a router wrote is seen after the branches meet, also when the way led past the task that read it."""

    def left(ctx: Context) -> Event:
        ctx.state["from_left"] = 1
        return Event(route="past")

    def right(ctx: Context) -> None:
        ctx.state["from_right"] = 2

    def end(ctx: Context) -> list[Any]:
        return [ctx.state.get("from_left"), ctx.state.get("from_right")]

    left_node, middle, end_node = node(left), const("middle", 1), node(end)
    wf = Workflow(
        name="wf",
        edges=[("START", left_node, {"to_middle": middle}), (middle, end_node), ("START", node(right), end_node)],
    )
    run = run_workflow(wf)

    assert run.task_states["middle"] == ["skipped"]
    assert run.output == [1, 2]


@pytest.mark.parametrize(
    ("route", "taken"),
    [("x", {"a"}), ("z", {"d"}), (None, {"d"}), (["x", "y"], {"a", "b"}), (True, {"yes"}), (1, {"yes"}), ("1", {"d"})],
)
def test_a_route_runs_what_adk_would_run_and_skips_the_rest(route: Any, taken: set[str]) -> None:
    targets = {"x": show("a"), "y": show("b"), True: show("yes"), DEFAULT_ROUTE: show("d")}
    wf = Workflow(name="wf", edges=[("START", router("r", route), targets), (tuple(targets.values()), JoinNode(name="never"))])
    states = run_workflow(wf).task_states

    assert {name for name in ("a", "b", "yes", "d") if states[name] == ["success"]} == taken
    assert {name for name in ("a", "b", "yes", "d") if states[name] == ["skipped"]} == {"a", "b", "yes", "d"} - taken
    assert states["never"] == ["skipped"]


def test_a_node_that_one_router_passes_by_still_runs_for_another() -> None:
    target = show("target")
    wf = Workflow(
        name="wf",
        edges=[("START", router("r1", "no"), {"yes": target}), ("START", router("r2", "yes", 2), {"yes": target})],
    )
    run = run_workflow(wf)

    assert run.outputs["target"] == ["target:2"]


def test_a_way_round_is_not_cut_off_by_the_direct_edge_that_was_not_taken() -> None:
    r, around, target = router("r", "around", 1), show("around"), show("target")
    run = run_workflow(Workflow(name="wf", edges=[("START", r, {"around": around, "direct": target}), (around, target)]))

    assert run.output == "target:'around:1'"


def test_several_triggers_fire_a_node_and_all_after_it_once_each_in_order() -> None:
    wf = Workflow(name="wf", edges=[("START", (const("a", 1), const("b", 2)), show("mid"), show("tail"))])
    run = run_workflow(wf)

    assert run.outputs["mid"] == ["mid:1", "mid:2"]
    assert run.outputs["tail"] == ["tail:'mid:1'", "tail:'mid:2'"]
    assert run.output == "tail:'mid:2'"


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


@pytest.mark.parametrize("mode", ["tasks", "embedded"])
@pytest.mark.parametrize("blocks", [True, False])
def test_airflows_timeout_ends_a_node_that_waits(mode: str, blocks: bool) -> None:
    async def wait() -> str:
        await asyncio.sleep(60)
        return "late"

    def block() -> str:
        time.sleep(60)
        return "late"

    wf = Workflow(name="wf", edges=[("START", node(block if blocks else wait, name="wait"))])
    limit = {"execution_timeout": dt.timedelta(seconds=1)}
    began = time.monotonic()
    dag = AdkDag(wf, schedule=None, mode=mode, default_args=limit)
    run = run_dag(dag)

    assert run.state == "failed"
    assert time.monotonic() - began < 30
    if mode == "embedded":
        assert [(row["path"], row["status"]) for row in run.node_runs["wf"]] == [("wf@1/wait@1", "cancelled")]


@pytest.mark.parametrize("blocks", [True, False])
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, {"tail": ["upstream_failed"], "wait": ["failed"]}),
        ({"nodes": {"wait": {"mode": "embedded"}, "tail": {"mode": "embedded"}}}, {"wait_region": ["failed"]}),
        ({"mode": "embedded"}, {"wf": ["failed"]}),
    ],
)
def test_a_task_that_airflow_cancels_ends_at_once(
    arguments: dict[str, Any], expected: dict[str, list[str]], blocks: bool
) -> None:
    def cancel() -> None:
        os.kill(os.getpid(), signal.SIGTERM)  # what the supervisor sends when the task is marked in the UI

    async def wait() -> str:
        asyncio.get_running_loop().call_later(0.1, cancel)
        await asyncio.sleep(60)
        return "late"

    def block() -> str:
        threading.Timer(0.1, cancel).start()
        time.sleep(60)
        return "late"

    began = time.monotonic()
    run = run_workflow(
        Workflow(name="wf", edges=[("START", node(block if blocks else wait, name="wait"), show("tail"))]), **arguments
    )

    assert {name: states for name, states in run.task_states.items() if name != "workflow_result"} == expected
    assert time.monotonic() - began < 30


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


@pytest.mark.parametrize("nested", [True, False])
def test_start_counts_as_arrived_for_every_firing_of_a_join(nested: bool) -> None:
    def tick(ctx: Context) -> Event:
        ctx.state["ticks"] = ctx.state.get("ticks", 0) + 1
        return Event(output=ctx.state["ticks"], route="again" if ctx.state["ticks"] < 2 else "done")

    tick_node, join = node(tick), JoinNode(name="join")
    last = node(lambda node_input: sorted(f"{name}: {value!r}" for name, value in node_input.items()), name="last")
    follow = show("follow")
    edges: list[Any] = [("START", tick_node), (tick_node, {"again": tick_node}), (tick_node, follow)]
    wf = Workflow(name="inner", edges=[*edges, ("START", join), (follow, join), (join, last)])
    path = "last"
    if nested:
        wf, path = Workflow(name="outer", edges=[("START", wf)]), "inner.last"

    tasks, embedded = (run_workflow(wf, input="go", mode=mode) for mode in ("tasks", "embedded"))
    assert [lines[1] for lines in tasks.outputs[path]] == ["follow: 'follow:1'", "follow: 'follow:2'"]
    assert tasks.output == embedded.output
    assert "text='go'" in tasks.output[0]


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


def test_a_trigger_never_comes_before_one_that_it_depends_on() -> None:
    a, b, c = const("a", 1), show("b"), show("c")
    wf = Workflow(name="wf", edges=[("START", a), (b, c), (a, b), (a, c)])

    assert run_workflow(wf).outputs["c"] == ["c:1", "c:'b:1'"]


def test_a_failure_is_not_lost_behind_a_join_that_could_not_fire_anyway() -> None:
    def bad() -> None:
        raise KeyError("bad")

    r, bad_node, other, join = router("r", "x"), node(bad), show("other"), JoinNode(name="join")
    wf = Workflow(
        name="wf",
        edges=[("START", r, {"x": bad_node, "y": other}), ((bad_node, other), join, show("end")), (r, show("beside"))],
    )
    run = run_workflow(wf)

    assert run.state == "failed"
    assert run.error == ("KeyError", "'bad'")


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


def test_the_attempts_of_a_retry_are_counted_as_in_adk() -> None:
    def flaky(ctx: Context) -> int:
        ctx.state[f"try{ctx.attempt_count}"] = True
        if ctx.attempt_count < 3:
            raise ConnectionError("again")
        return ctx.attempt_count

    wf = Workflow(name="wf", edges=[("START", node(flaky, retry_config=RetryConfig(initial_delay=0.01, jitter=0)))])
    run = run_workflow(wf)

    assert run.output == 3
    assert run.session_state == {"try1": True, "try2": True, "try3": True}


def test_a_failure_is_the_nodes_own_exception_and_keeps_the_state_up_to_then() -> None:
    def bad(ctx: Context) -> None:
        ctx.state["during"] = 1
        raise LookupError("no such customer")

    run = run_workflow(Workflow(name="orders", edges=[("START", const("ok", 1), node(bad), show("tail"))]))

    assert run.state == "failed"
    assert run.error == ("LookupError", "no such customer")
    assert run.session_state == {"during": 1}
    assert run.task_states["tail"] == ["upstream_failed"]


def test_an_output_that_cannot_travel_fails_the_task_that_made_it() -> None:
    run = run_workflow(Workflow(name="wf", edges=[("START", node(object, name="thing"), show("tail"))]))

    assert run.task_states == {"tail": ["upstream_failed"], "thing": ["failed"]}
    assert run.error is not None
    assert run.error[0] == "ValueNotTransferableError"
    assert "workflow 'wf', node 'thing': its output cannot travel" in run.error[1]


def test_a_state_value_that_cannot_travel_names_its_key() -> None:
    def keep(ctx: Context) -> int:
        ctx.state["good"], ctx.state["lock"] = 1, object()
        return 1

    run = run_workflow(Workflow(name="wf", edges=[("START", node(keep))]))

    assert run.error is not None
    assert "node 'keep': state key 'lock' cannot travel" in run.error[1]
    assert run.session_state == {"good": 1}


def test_two_last_outputs_fail_the_run_as_in_adk() -> None:
    run = run_workflow(Workflow(name="wf", edges=[("START", (const("a", 1), const("b", 2)))]))

    assert run.error is not None
    assert run.error[0] == "WorkflowConfigurationError"


def test_a_task_group_takes_and_gives_xcoms_beside_other_tasks_twice_in_one_dag() -> None:
    def words(node_input: str) -> list[str]:
        return node_input.split()

    def upper(node_input: str) -> str:
        return node_input.upper()

    def glue(node_input: list[str], sep: str = "-") -> str:
        return sep.join(node_input)

    wf = Workflow(name="shout", edges=[("START", words, node(upper, parallel_worker=True), glue)])
    with DAG("mixed", schedule=None) as dag:

        @task
        def ask() -> str:
            return "hello big world"

        @task
        def sep() -> str:
            return "+"

        first = AdkTaskGroup(wf, "first", input=ask(), state={"sep": sep()})
        second = AdkTaskGroup(wf, "second", input=first.output, mode="embedded")

        @task
        def end(one: str, two: str) -> list[str]:
            return [one, two]

        end(first.output, second.output)
    run = run_dag(dag)

    assert run.state == "success"
    assert run.outputs["first.glue"] == ["HELLO+BIG+WORLD"]
    assert run.outputs["second.shout"] == ["HELLO+BIG+WORLD"]
    assert run.task_states["end"] == ["success"]


def test_a_task_group_stands_between_setup_and_teardown_and_takes_one_of_several_outputs() -> None:
    def upper(node_input: str) -> str:
        return node_input.upper()

    def glue(node_input: str, sep: str) -> str:
        return f"{node_input}{sep}"

    seen = []
    with DAG("between", schedule=None) as dag:

        @setup
        def prepare() -> None:
            seen.append("prepare")

        @teardown
        def clean() -> None:
            seen.append("clean")

        @task(multiple_outputs=True)
        def ask() -> dict[str, str]:
            return {"text": "hello", "sep": "!"}

        @task
        def plain(ti: Any = None) -> str:
            return str(ti.xcom_pull("upper"))

        asked = ask()
        group = AdkTaskGroup(
            Workflow(name="wf", edges=[("START", upper, glue)]),
            input=asked["text"],
            state={"sep": asked["sep"]},
            prefix_group_id=False,
        )
        prepare() >> group >> plain() >> clean()
    run = run_dag(dag)

    assert (run.state, seen) == ("success", ["prepare", "clean"])
    assert {task_id: run.outputs[task_id] for task_id in ("upper", "glue")} == {"upper": ["HELLO"], "glue": ["HELLO!"]}


def test_a_task_group_waits_for_a_sensor_and_updates_an_asset() -> None:
    def greet(node_input: str) -> str:
        return f"hello {node_input}"

    greeting = Asset("adk-airflow-test-greeting")
    with DAG("watching", schedule=None) as dag:

        @task.sensor(poke_interval=0.1, timeout=10)
        def name_is_there() -> PokeReturnValue:
            return PokeReturnValue(is_done=True, xcom_value="world")

        group = AdkTaskGroup(
            Workflow(name="hello", edges=[("START", greet)]), input=name_is_there(), nodes={"greet": {"outlets": [greeting]}}
        )

        @task(inlets=[greeting])
        def read(text: str) -> str:
            return text.upper()

        read(group.output)
    run = run_dag(dag)

    assert run.state == "success"
    assert run.outputs["hello.greet"] == ["hello world"]
    with create_session() as session:
        events = session.scalars(select(AssetEvent).where(AssetEvent.source_run_id == run.run_id)).all()
    assert [(event.source_task_id, event.source_dag_id) for event in events] == [("hello.greet", "watching")]


def test_a_task_group_that_is_skipped_is_skipped_as_a_whole() -> None:
    first, second, spin = show("first"), show("second"), router("spin", "on")
    edges = [
        ("START", first, second),
        ("START", second),
        ("START", spin),
        (first, spin),
        (spin, {"again": spin, "on": show("end")}),
    ]
    with DAG("chosen", schedule=None) as dag:

        @task.branch
        def choose() -> str:
            return "other"

        @task
        def other() -> int:
            return 1

        group = AdkTaskGroup(Workflow(name="wf", edges=edges), "g", input="hello")
        choose() >> [group, other()]
    run = run_dag(dag)

    assert {state for name, states in run.task_states.items() if name.startswith("g.") for state in states} == {"skipped"}
    assert run.task_states["other"] == ["success"]


def test_a_task_group_takes_all_that_a_mapped_task_gave_and_none_is_none() -> None:
    def look(ctx: Context, node_input: str) -> list[Any]:
        return [node_input, ctx.state["rows"]]

    with DAG("mapped_input", schedule=None, params={"input": "not this"}) as dag:

        @task
        def double(number: int) -> int:
            return 2 * number

        @task
        def nothing() -> None:
            return None

        rows = double.expand(number=[1, 2])
        wf = Workflow(name="wf", edges=[("START", look)])
        AdkTaskGroup(wf, "some", input=rows, state={"rows": rows})
        AdkTaskGroup(wf, "none", input=nothing(), state={"rows": 1})
    run = run_dag(dag)

    assert run.outputs["some.look"] == [["[2,4]", [2, 4]]]
    assert run.outputs["none.look"] == [["", 1]]


def test_a_task_group_refuses_what_only_a_dag_or_one_task_can_keep() -> None:
    from airflow.sdk import task_group

    with DAG("refused", schedule=None), pytest.raises(UnsupportedWorkflowError, match="has max_concurrency=1"):
        AdkTaskGroup(Workflow(name="wf", edges=[("START", const("a", 1))], max_concurrency=1), "g")

    with DAG("refused_mapped", schedule=None):

        @task_group
        def each(number: int) -> None:
            AdkTaskGroup(Workflow(name="wf", edges=[("START", const("a", 1))]), "g", input=number)

        with pytest.raises(UnsupportedWorkflowError, match="cannot be in the mapped task group 'each'"):
            each.expand(number=[1, 2])


def test_params_keep_their_types_in_whatever_dict_they_come() -> None:
    from airflow.sdk.definitions.param import ParamsDict

    params = ParamsDict({"n": Param(3, type="integer", title="N")})
    dag = AdkDag(Workflow(name="wf", edges=[("START", const("a", 1))]), schedule=None, params=params)

    assert dag.params.get_param("n").schema == {"type": "integer", "title": "N"}


def test_two_lists_whose_batches_would_be_too_many_get_larger_ones() -> None:
    assert smallest_batch([5, 3], 4) == 3
    assert smallest_batch([1025, 1023], 1024) == 3
    assert smallest_batch([3], 1024) == 1
    assert smallest_batch([0], 1024) == 1


def test_the_workflow_operator_takes_objects_too() -> None:
    with DAG("with_an_object", schedule=None) as dag:
        AdkWorkflowOperator(task_id="t", workflow=Workflow(name="wf", edges=[("START", const("a", 1), show("b"))]))

    run = run_dag(dag)

    assert (run.state, run.outputs) == ("success", {"wf": ["b:1"]})


def test_what_is_no_workflow_is_refused_at_once() -> None:
    with pytest.raises(WorkflowLoadError, match=r"workflow '3' is no Workflow but a int"):
        AdkWorkflowOperator(task_id="t", workflow=3)


def test_node_arguments_reach_the_nodes_operator_and_a_wrong_one_is_named() -> None:
    wf = Workflow(name="wf", edges=[("START", show("a"), node(lambda node_input: 1, name="each", parallel_worker=True))])
    dag = AdkDag(wf, schedule=None, nodes={"a": {"retries": 2, "queue": "gpu"}, "each": {"pool": "slow"}})

    assert (dag.get_task("a").retries, dag.get_task("a").queue) == (2, "gpu")
    assert dag.get_task("each.run").partial_kwargs["pool"] == "slow"
    assert dag.task_ids == ["a", "each.items", "each.run", "each.collect"]


@pytest.mark.parametrize("name", ["a", "each", "spin", "inner/b"])
@pytest.mark.parametrize(
    ("argument", "says"),
    [
        ({"pol": "x"}, "have no argument 'pol'. Did you mean 'pool'?"),
        ({"priority_weight": "high"}, "Airflow refuses {'priority_weight': 'high'}: "),
        ({"execution_timeout": 5}, "Airflow refuses {'execution_timeout': 5}: execution_timeout must be timedelta"),
    ],
)
def test_a_wrong_argument_is_refused_with_the_node_and_the_nearest_right_name(name: str, argument: Any, says: str) -> None:
    spin, inner = show("spin"), Workflow(name="inner", edges=[("START", show("b"))])
    each = node(lambda node_input: 1, name="each", parallel_worker=True)
    wf = Workflow(name="wf", edges=[("START", show("a"), each, inner, spin), (spin, {"again": spin})])

    with pytest.raises(NodeOverrideError, match=rf"node '{name.rpartition('/')[2]}': .*{re.escape(says)}"):
        AdkDag(wf, schedule=None, nodes={name: argument})


def test_the_ui_shows_what_each_task_is_and_which_item_it_ran() -> None:
    wf = Workflow(
        name="wf",
        edges=[("START", const("list", [{"name": "first"}, "x " * 200]), node(show("each"), parallel_worker=True))],
    )
    dag = AdkDag(wf, schedule=None, params={"input": None})
    run = run_dag(dag)

    assert [dag.get_task(name).operator_name for name in ("list", "each.items", "each.run")] == [
        "ADK function",
        "ADK items",
        "ADK item",
    ]
    assert "input" not in dag.params
    labels = [label for _, label in sorted(run.labels["each.run"].items())]
    assert labels[0] == "1 · first"
    assert labels[1].startswith("2 · x x")
    assert labels[1].endswith("…")
    assert len(labels[1]) <= 125


def test_the_dag_documents_itself_and_every_dag_argument_works() -> None:
    wf = Workflow(name="wf", description="Greets people.", edges=[("START", show("a"))])
    dag = AdkDag(wf, dag_id="other", schedule="@hourly", tags=["x"], max_active_runs=1)

    assert (dag.dag_id, dag.tags, dag.max_active_runs, dag.description) == ("other", {"x"}, 1, "Greets people.")
    assert "| a | function | `a` |" in (dag.doc_md or "")


def test_a_lost_update_is_reported_and_the_later_predecessor_stays() -> None:
    def writer(name: str) -> Any:
        def body(ctx: Context) -> str:
            ctx.state["k"] = name
            return name

        return node(body, name=name)

    wf = Workflow(name="wf", edges=[("START", (writer("a"), writer("b")), JoinNode(name="join"))])
    run = run_workflow(wf)

    assert run.session_state == {"k": "b"}
    assert run.lost_updates == (("k", "b", "a"),)


def test_a_node_that_asks_a_person_fails_with_what_to_do() -> None:
    from google.adk.events.request_input import RequestInput

    run = run_workflow(Workflow(name="wf", edges=[("START", node(lambda: RequestInput(message="well?"), name="ask"))]))

    assert run.error is not None
    assert run.error[0] == "HumanInputNotSupportedError"
    assert "node wf@1/ask@1 asks a person for input: 'well?'" in run.error[1]
