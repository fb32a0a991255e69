"""Random workflows give ADK's result in a DAG run, or differ as documented."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.code import build, script, source
from tests.fuzz.explore import explore
from tests.fuzz.graphs import START, Edge, Flow, Loop, Node, Write
from tests.fuzz.shape import FAILURE, PAIRING, RUN_ORDER, STATE, Shape
from tests.fuzz.strategy import flows
from tests.fuzz.verdict import AGREED, IN_PARTS, documented, judge
from tests.fuzz.ways import Result, Timing, run_in_adk, run_in_airflow


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_150_random_workflows_give_adks_result_or_differ_as_documented() -> None:
    report = explore(150, seed_number=1, most_nodes=6)

    assert not report.disagreements, report.explanation()
    assert report.counts.total() == 150
    assert report.counts[AGREED] >= 120, report.summary()


@settings(max_examples=50, database=None, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(flows())
def test_adk_accepts_every_workflow_that_is_drawn_and_its_code_is_what_runs(flow: Flow) -> None:
    graph = build(flow).graph

    assert {node.name for node in graph.nodes} == {"__START__", *(node.name for node in flow.nodes)}
    assert len(graph.edges) == len(flow.edges)
    compile(script(flow), "script", "exec")


@settings(max_examples=10, database=None, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(flows(6), st.integers(0, 3))
def test_adk_on_a_clock_that_does_not_wait_gives_the_same_each_time(flow: Flow, number: int) -> None:
    timing = Timing(seed=number)

    assert run_in_adk(flow, timing).differs_from(run_in_adk(flow, timing)) == []


def test_every_difference_that_is_put_up_with_is_in_the_docs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "differences.md").read_text()

    assert [kind for kind in (FAILURE, PAIRING, RUN_ORDER, STATE) if f"`{kind}`" not in text] == []


def _diamond(**of_b: object) -> Flow:
    """START goes to a and b, which both go to c, which runs for each."""
    nodes = (Node("a"), Node("b", **of_b), Node("c"))  # type: ignore[arg-type]
    edges = (Edge(START, "a"), Edge(START, "b"), Edge("a", "c"), Edge("b", "c"))
    return Flow("wf", nodes, edges)


def test_a_workflow_without_parallel_branches_is_excused_from_nothing() -> None:
    chain = Flow("wf", (Node("a"), Node("b", fails="KeyError")), (Edge(START, "a"), Edge("a", "b")))
    adk = run_in_adk(chain)
    wrong = Result({**adk.parts, "error": "ValueError"}, frozenset({"b"}))

    assert documented(chain, adk, wrong) == ""
    assert judge(chain).kind == AGREED


def test_an_output_that_no_timing_gives_is_not_excused() -> None:
    flow = _diamond()
    adk = run_in_adk(flow)
    other_order = run_in_adk(flow, Timing({"a": 2.0, "b": 1.0, "c": 3.0}))

    assert adk.differs_from(other_order) == ["output"]
    assert documented(flow, adk, other_order) == RUN_ORDER + IN_PARTS
    assert documented(flow, adk, Result({**adk.parts, "output": '"c of no run"'})) == ""


def test_a_failure_beside_another_branch_is_compared_with_adk_where_that_branch_ends_first() -> None:
    nodes = (Node("bad", fails="KeyError"), Node("a"), Node("b"), Node("after"))
    edges = (Edge(START, "bad"), Edge(START, "a"), Edge("a", "b"), Edge("bad", "after"))
    flow = Flow("wf", nodes, edges)
    tasks = run_in_airflow(flow, "tasks")

    assert "outputs wf/b" in tasks.parts
    assert judge(flow).kind == FAILURE
    lost = Result({key: value for key, value in tasks.parts.items() if key != "outputs wf/b"}, tasks.failed)
    assert documented(flow, run_in_adk(flow), lost) == ""


def test_of_two_failures_each_is_compared_with_what_depends_on_neither() -> None:
    nodes = (Node("bad", fails="KeyError"), *map(Node, "abcde"), Node("worse", fails="ValueError"), Node("after"), Node("too"))
    edges = (Edge(START, "bad"), Edge(START, "a"), Edge("a", "b"), Edge("b", "worse"), Edge("worse", "after"))
    flow = Flow("wf", nodes, (*edges, Edge("b", "c"), Edge("c", "d"), Edge("d", "e"), Edge("bad", "too")))

    assert {"bad", "worse"} <= run_in_airflow(flow, "tasks").failed
    assert judge(flow).kind == FAILURE


def test_items_of_a_worker_that_failed_are_excused_and_nothing_else() -> None:
    """The worker runs twice and fails each time: in ADK the second run never comes, as tasks its items are there already."""
    inner = Flow("c", (Node("c_1"), Node("c_2"), Node("c_3")), (Edge(START, "c_1"), Edge("c_1", "c_2"), Edge("c_1", "c_3")))
    flow = _diamond()
    flow = replace(flow, nodes=(*flow.nodes[:2], Node("c", "worker", inner=inner)))
    adk, tasks = run_in_adk(flow), run_in_airflow(flow, "tasks")

    assert [len(one.parts["outputs wf/c/c/c_1"].splitlines()) for one in (adk, tasks)] == [1, 2]
    assert judge(flow).kind == FAILURE
    assert documented(flow, adk, Result({**tasks.parts, "outputs wf/a": '["wf/a", "never"]'}, tasks.failed)) == ""


@pytest.mark.parametrize("kind", ["function", "worker"])
def test_a_node_that_start_and_a_later_node_trigger_reads_what_the_later_one_left(kind: str) -> None:
    nodes = (Node("a"), Node("b", writes=(Write("of_b"),)), Node("c", kind, reads=("of_b",)))
    flow = Flow("wf", nodes, (Edge(START, "c"), Edge(START, "a"), Edge("a", "b"), Edge("b", "c")))

    assert "def c(ctx: Context, node_input: Any, of_b: Any = None):" in source(flow)
    assert judge(flow).kind == RUN_ORDER


def test_a_worker_without_items_can_be_late_too() -> None:
    """As tasks the waiting node gets what the first worker gives before what the second gives, which has nothing to do."""
    values = (Node("a", output=("value", ["x"])), Node("b", output=("value", [])))
    flow = Flow("wf", (*values, Node("first", "worker"), Node("second", "worker"), Node("c", "wait")), edges=(
        Edge(START, "a"), Edge(START, "b"), Edge("a", "first"), Edge("b", "first"), Edge("b", "second"),
        Edge("b", "c"), Edge("first", "c"), Edge("second", "c"),
    ))  # fmt: skip

    assert judge(flow).kind == RUN_ORDER


def test_state_that_two_branches_share_is_excused_only_for_the_keys_they_share() -> None:
    nodes = (
        Node("a", writes=(Write("k", "append"),)),
        Node("b", writes=(Write("k", "append"), Write("of_b"))),
        Node("c", "join"),
    )
    flow = Flow("wf", nodes, (Edge(START, "a"), Edge(START, "b"), Edge("a", "c"), Edge("b", "c")))

    assert Shape(flow).shared_keys() == {"k"}
    assert judge(flow).kind == STATE


def test_a_loop_does_not_see_what_a_task_that_it_triggers_writes() -> None:
    nodes = (Node("a", reads=("of_b",), route=Loop(3)), Node("b", writes=(Write("of_b"),)))
    flow = Flow("wf", nodes, (Edge(START, "a"), Edge("a", "a", "again"), Edge("a", "b")))

    assert Shape(flow).shared_keys() == {"of_b"}
    assert judge(flow).kind == STATE


def test_the_code_of_a_workflow_reads_like_a_persons() -> None:
    flow = Flow("wf", (Node("a", route=("value", True)), Node("b", "join")), (Edge(START, "a"), Edge("a", "b", True)))

    assert "def a(ctx: Context, node_input: Any):\n    route = True\n" in source(flow)
    assert "(a, {True: b})," in source(flow)
