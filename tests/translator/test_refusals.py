"""What google-adk refuses is told in one sentence: the edge, what it is, and the form that google-adk wants."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps.app import App
from google.adk.workflow import START, Edge, Workflow, node

from adk_airflow import AdkAgentOperator, plan_workflow
from adk_airflow.errors import AgentLoadError, WorkflowLoadError


def router() -> None:
    """Emits a route."""


def branch_a() -> None:
    """Does something."""


FORMS = "such as ('START', a, b), a fan-out ('START', (a, b)), or routes (a, {'yes': b, 'no': (c, d)})"
NO_NODE = "is no node: a node is a function, an agent, a tool, a workflow, node(...) or 'START'"
ROUTE = "a route is text, an integer, True or False"

EDGES: dict[str, tuple[Any, str]] = {
    "route at the end": (
        (router, branch_a, "A"),
        "edges[1] is (router, branch_a, 'A'): 'A' is text, not a node. A route stands in a dict: (router, {'A': branch_a})",
    ),
    "route at the end of a longer chain": (
        (START, router, branch_a, "A"),
        "edges[1] is ('START', router, branch_a, 'A'): 'A' is text, not a node."
        " A route stands in a dict: (router, {'A': branch_a})",
    ),
    "route in between": (
        (router, "A", branch_a),
        "edges[1] is (router, 'A', branch_a): 'A' is text, not a node. A route stands in a dict: (router, {'A': branch_a})",
    ),
    "name of a node": (
        (router, "branch_a"),
        "edges[1] is (router, 'branch_a'): 'branch_a' is text, not a node. A route stands in a dict:"
        " (router, {'branch_a': ...})",
    ),
    "none": ((router, None), f"edges[1] is (router, None): None {NO_NODE}"),
    "number": ((router, 3), f"edges[1] is (router, 3): 3 (int) {NO_NODE}"),
    "none in a fan-out": ((router, (branch_a, None)), f"edges[1] is (router, (branch_a, None)): None {NO_NODE}"),
    "none in a list": ([router, None], f"edges[1] is [router, None]: None {NO_NODE}"),
    "none in a set": ((router, {None}), f"edges[1] is (router, {{None}}): None {NO_NODE}"),
    "route to none": ((router, {"A": None}), f"(router, {{'A': None}}): None, to which route 'A' leads, {NO_NODE}"),
    "route to a name": ((router, {"A": "b"}), f"(router, {{'A': 'b'}}): 'b' (str), to which route 'A' leads, {NO_NODE}"),
    "route to a list with none": ((router, {"A": [branch_a, None]}), f"None, to which route 'A' leads, {NO_NODE}"),
    "route of a fraction": ((router, {1.5: branch_a}), f"(router, {{1.5: branch_a}}): 1.5 (float) is no route: {ROUTE}"),
    "route of none": ((router, {None: branch_a}), f"(router, {{None: branch_a}}): None is no route: {ROUTE}"),
    "fan-out in a fan-out": (
        (router, (branch_a, (branch_a,))),
        "(branch_a,) stands inside a fan-out, which takes nodes alone: give a fan-out an edge of its own",
    ),
    "routes in a fan-out": (
        (router, ({"A": branch_a},)),
        "{'A': branch_a} stands inside a fan-out, which takes nodes alone: give routes an edge of its own",
    ),
    "node alone": (branch_a, f"edges[1] is branch_a: an edge is a tuple, {FORMS}"),
    "text alone": ("branch_a", f"edges[1] is 'branch_a': an edge is a tuple, {FORMS}"),
    "dict": ({"from": router, "to": branch_a}, f"edges[1] is {{'from': router, 'to': branch_a}}: an edge is a tuple, {FORMS}"),
    "dict of an edge": (
        {"from_node": router, "to_node": branch_a},
        f"edges[1] is {{'from_node': router, 'to_node': branch_a}}: an edge is a tuple, {FORMS}",
    ),
    "class": (Edge, f"edges[1] is Edge: an edge is a tuple, {FORMS}"),
}


def refused(make: Callable[[], Any]) -> str:
    """The words against what a function makes, after which nothing of pydantic's is left."""
    with pytest.raises(WorkflowLoadError) as caught:
        plan_workflow(make)
    words = str(caught.value)
    assert "pydantic" not in words
    assert "validation error" not in words
    return words


@pytest.mark.parametrize("kind", EDGES)
def test_an_edge(kind: str) -> None:
    edge, words = EDGES[kind]
    said = refused(lambda: Workflow(name="flow", edges=[(START, router), edge]))

    assert words in said
    assert said.count("edges[") == 1


def test_each_edge_that_is_wrong_is_named() -> None:
    said = refused(lambda: Workflow(name="flow", edges=[(START, router), (router, None), (router, branch_a), (router, 3)]))

    assert said.count("edges[") == 2
    assert "edges[1] is (router, None): None" in said
    assert "edges[3] is (router, 3): 3 (int)" in said


def test_edges_that_are_no_list() -> None:
    assert f"edges is 5: it must be a list of edges, {FORMS}" in refused(lambda: Workflow(name="flow", edges=5))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: Edge(from_node=router, to_node=node(branch_a)),
            "from_node of an Edge is router (a function): an Edge takes nodes",
        ),  # type: ignore[arg-type]
        (lambda: Edge(from_node=START, to_node=node(router), route=1.5), f"route of an Edge is 1.5 (float): {ROUTE}"),  # type: ignore[arg-type]
        (lambda: Edge(from_node=START), "refused by google-adk: to_node: Field required"),  # type: ignore[call-arg]
        (lambda: node(router, name="a b"), "Node name 'a b' must be a valid Python identifier"),
        (lambda: node(3), "Invalid node type: <class 'int'>"),  # type: ignore[call-overload]
        (lambda: LlmAgent(name="bot", mode="caht"), "mode is 'caht': Input should be 'chat', 'task' or 'single_turn'"),  # type: ignore[arg-type]
        (lambda: LlmAgent(name="bot", modle="x"), "modle: Extra inputs are not permitted"),  # type: ignore[call-arg]
        (
            lambda: Workflow(name="w", edges=[(START, router)], output_schema="Order"),
            "output_schema is 'Order' (str): give a type",
        ),
        (lambda: Workflow(name="w", edges=[("start", router)]), "'start' is text, not a node. The start is written 'START'"),
        (lambda: App(name="a b", root_agent=LlmAgent(name="bot")), "(it is named 'a b'): Invalid app name 'a b'"),
    ],
)
def test_parts_of_it(make: Callable[[], Any], words: str) -> None:
    said = refused(make)

    assert "is refused by google-adk" in said
    assert words in said


def test_a_module_and_an_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "refused_edge.py").write_text(
        "from google.adk.workflow import START, Workflow\ndef a(): ...\n"
        "root_agent = Workflow(name='flow', edges=[(START, a, 'A')])\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(WorkflowLoadError, match=r"'refused_edge:root_agent' is refused by google-adk: edges\[0\] is"):
        plan_workflow("refused_edge:root_agent")
    assert "refused_edge" not in sys.modules

    operator = AdkAgentOperator(task_id="ask", agent=lambda: LlmAgent(name="bot", mode="caht"))  # type: ignore[arg-type]
    with pytest.raises(AgentLoadError, match="is refused by google-adk: mode is 'caht'"):
        operator.load()


def test_a_class_in_place_of_an_instance() -> None:
    with pytest.raises(WorkflowLoadError, match="is no Workflow but the class Workflow, not an instance of it"):
        plan_workflow(Workflow)
    with pytest.raises(AgentLoadError, match="is no agent but the class LlmAgent, not an instance of it"):
        AdkAgentOperator(task_id="ask", agent=LlmAgent).load()
