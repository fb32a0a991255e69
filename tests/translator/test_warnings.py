"""What a plan announces, and what it leaves out: a warning stands only where two nodes can run at once."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk import Agent, Workflow
from google.adk.agents import SequentialAgent
from google.adk.apps.app import App
from google.adk.tools import FunctionTool, LongRunningFunctionTool, request_input
from google.adk.tools.agent_tool import AgentTool
from google.adk.workflow import DEFAULT_ROUTE, Edge, JoinNode, node

from adk_airflow import plan_workflow
from adk_airflow.testing import run_workflow

BESIDE = {"state-between-branches", "no-cancel-on-failure"}


def step(name: str, **kwargs: Any) -> Any:
    def body(node_input: Any) -> Any:
        return node_input

    return node(body, name=name, **kwargs)


def steps(names: str) -> list[Any]:
    return [step(name) for name in names.split()]


def names_of(warnings: tuple[str, ...]) -> set[str]:
    return {text.partition(":")[0] for text in warnings}


def warned(*edges: Any, nodes: Any = None) -> set[str]:
    return names_of(plan_workflow(Workflow(name="wf", edges=list(edges)), nodes=nodes).warnings)


# -- two nodes at once ---------------------------------------------------------------------------------------


def test_branches_of_one_router_that_exclude_each_other_are_no_difference() -> None:
    r, a, b, c, sink = steps("r a b c sink")

    assert warned(("START", r, {"x": a, "y": b, DEFAULT_ROUTE: c}), ((a, b, c), sink)) == set()
    assert warned(("START", r, {"x": a, "y": sink}), (a, b, sink)) == set()


def test_nor_are_those_of_routers_behind_a_router() -> None:
    r, inner, a, b, c, sink = steps("r inner a b c sink")

    assert warned(("START", r, {"x": inner, "y": c}), (inner, {"p": a, DEFAULT_ROUTE: b}), ((a, b, c), sink)) == set()


def test_nor_is_a_loop_that_is_left_by_one_route() -> None:
    r, draft, review, other, end = steps("r draft review other end")

    assert warned(("START", r, {"x": draft, "y": other}), (draft, review, {"again": draft, "done": end}), (other, end)) == set()


def test_nor_is_a_join_that_waits_for_what_its_other_predecessor_starts() -> None:
    first, second = steps("first second")

    assert warned(("START", first, second, JoinNode(name="join")), (first, JoinNode(name="join2"))) == BESIDE
    join = JoinNode(name="join")
    first, second = steps("first second")
    assert warned(("START", first, second, join), (first, join)) == set()


def test_edges_that_share_a_route_run_side_by_side() -> None:
    r, a, b = steps("r a b")

    assert warned(("START", r, {"x": (a, b)})) == BESIDE
    r, a, b = steps("r a b")
    edges = [("START", r), Edge(from_node=r, to_node=a, route=["x", 1]), Edge(from_node=r, to_node=b, route=["y", True])]
    assert warned(*edges) == BESIDE  # to ADK 1 and True are one route


def test_a_plain_edge_beside_a_router_runs_beside_it() -> None:
    r, a, b, log, sink = steps("r a b log sink")

    assert warned(("START", r, {"x": a, DEFAULT_ROUTE: b}), (r, log)) == BESIDE
    assert warned(("START", r, {"x": a, DEFAULT_ROUTE: b}), (r, log), ((a, b, log), sink)) == {*BESIDE, "run-order"}


def test_the_branches_of_a_router_that_runs_twice_are_not_exclusive() -> None:
    one, two, r, a, b, sink = steps("one two r a b sink")

    assert warned(("START", (one, two), r, {"x": a, "y": b}), ((a, b), sink)) == {*BESIDE, "run-order"}


def test_a_router_in_one_branch_does_not_make_the_other_branch_exclusive() -> None:
    r, a, b, other, sink = steps("r a b other sink")
    both = (("START", (r, other)), (r, {"x": a, "y": b}))

    assert warned(*both, ((a, b), sink)) == BESIDE
    r, a, b, other, sink = steps("r a b other sink")
    assert warned(("START", (r, other)), (r, {"x": a, "y": b}), ((a, b, other), sink)) == {*BESIDE, "run-order"}


def test_a_node_that_start_and_a_later_one_trigger_is_announced() -> None:
    a, b, sink = steps("a b sink")

    assert warned(("START", a, b, sink), ("START", sink)) == {*BESIDE, "run-order"}


def test_a_join_that_a_loop_triggers_in_each_round_is_paired_and_one_that_it_leaves_for_is_not() -> None:
    a, b, d = steps("a b d")
    assert "join-pairing" in warned(("START", (a, d)), (a, b, {"again": a}), ((b, d), JoinNode(name="join")))

    a, b, d, join = *steps("a b d"), JoinNode(name="join")
    assert "join-pairing" not in warned(("START", (a, d)), (a, b, {"again": a, "done": join}), (d, join))


def test_a_join_that_a_loop_triggers_in_each_round_runs_beside_it() -> None:
    a, b = steps("a b")

    assert warned(("START", a, b, {"again": a}), (b, JoinNode(name="join"))) == BESIDE


def test_hundreds_of_branches_are_looked_at_in_no_time_to_speak_of() -> None:
    branches = [step(f"b{number}") for number in range(300)]

    assert warned(("START", tuple(branches), JoinNode(name="join"))) == BESIDE


def nested_behind(*joined: str) -> Workflow:
    """A nested workflow behind a join of START, as ``start``, or nodes that run twice, in any number."""
    inner = Workflow(name="inner", edges=[("START", step("last"))])
    join = JoinNode(name="join")
    edges: list[Any] = [(join, inner)]
    for name in joined:
        if name == "start":
            edges.append(("START", join))
        else:
            one, two = steps(f"one_{name} two_{name}")
            edges.append(("START", (one, two), step(name), join))
    return Workflow(name="wf", edges=edges)


@pytest.mark.parametrize("joined", [("left", "right"), ("left", "start"), ("left",)])
def test_a_nested_workflow_behind_a_join_that_fires_twice_runs_twice(joined: tuple[str, ...]) -> None:
    plan = plan_workflow(nested_behind(*joined))
    tasks, embedded = (
        run_workflow(App(name="app", root_agent=nested_behind(*joined)), input="x", mode=mode) for mode in ("tasks", "embedded")
    )

    assert "may run several times" in next(task.why for task in plan.tasks if task.task_id == "inner")
    assert len(tasks.outputs["inner"]) == 2
    assert (tasks.state, tasks.output) == (embedded.state, embedded.output)


def test_a_nested_workflow_behind_a_join_of_start_alone_runs_once() -> None:
    plan = plan_workflow(nested_behind("start"))

    assert [task.task_id for task in plan.tasks if task.node == "inner"] == ["inner.input", "inner.output"]


# -- people --------------------------------------------------------------------------------------------------


def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


def asking_tools() -> list[tuple[Any, str]]:
    return [
        (FunctionTool(pay, require_confirmation=True), "tool 'pay' asks a person to confirm"),
        (FunctionTool(pay, require_confirmation=lambda amount: amount > 10), "tool 'pay' asks a person to confirm"),
        (LongRunningFunctionTool(pay), "tool 'pay' waits for a person or another system"),
        (request_input, "tool 'adk_request_input' waits for a person or another system"),
    ]


def agent(name: str, **kwargs: Any) -> Agent:
    return Agent(name=name, model="gemini-2.5-flash", **kwargs)


def human_input(root: Any, **kwargs: Any) -> list[str]:
    workflow = Workflow(name="wf", edges=[("START", root)])
    return [text for text in plan_workflow(workflow, **kwargs).warnings if text.startswith("human-input")]


@pytest.mark.parametrize(("tool", "says"), asking_tools())
def test_a_tool_that_asks_a_person_is_announced_wherever_it_is(tool: Any, says: str) -> None:
    expected = f": {says}, which fails in an Airflow task for now."
    holder = agent("holder", tools=[pay, tool])
    places = [
        (node(tool, name="n"), "n"),
        (agent("n", tools=[tool]), "n"),
        (agent("n", sub_agents=[agent("other", sub_agents=[holder.clone()])]), "n"),
        (agent("n", tools=[AgentTool(holder.clone())]), "n"),
        (SequentialAgent(name="n", sub_agents=[holder.clone()]), "n"),
        (node(agent("n", tools=[tool]), name="n", parallel_worker=True), "n"),
        (Workflow(name="inner", edges=[("START", node(tool, name="n"))]), "inner/n"),
    ]

    for place, path in places:
        assert human_input(place) == [f"human-input: node {path!r}{expected}"]


def test_what_asks_a_person_is_announced_also_where_all_runs_in_one_task() -> None:
    def inner() -> Workflow:
        return Workflow(name="inner", edges=[("START", node(FunctionTool(pay, require_confirmation=True), name="n"))])

    expected = human_input(inner())

    assert len(expected) == 1
    assert human_input(inner(), mode="embedded") == expected
    assert human_input(inner(), nodes={"inner": {"mode": "embedded"}}) == expected


def test_a_tool_that_asks_nobody_is_not_announced() -> None:
    assert human_input(agent("n", tools=[pay, FunctionTool(pay), AgentTool(agent("other", tools=[pay]))])) == []
    assert human_input(node(FunctionTool(pay, require_confirmation=False), name="n")) == []


def test_an_agent_in_task_mode_is_announced() -> None:
    assert human_input(agent("n", mode="task")) == [
        "human-input: node 'n': agent 'n' is in task mode and may ask a person, which fails in an Airflow task for now."
    ]
