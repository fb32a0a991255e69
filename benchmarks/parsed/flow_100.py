"""A workflow with 100 nodes: 33 times a fan-out of two and a join, and an end."""

from __future__ import annotations

from typing import Any

from google.adk.workflow import JoinNode, Workflow, node


def step(node_input: Any) -> Any:
    return node_input


def build() -> Workflow:
    edges: list[Any] = []
    before: Any = "START"
    for at in range(33):
        left, right, join = node(step, name=f"left_{at}"), node(step, name=f"right_{at}"), JoinNode(name=f"join_{at}")
        edges += [(before, left, join), (before, right, join)]
        before = join
    return Workflow(name="flow_100", edges=[*edges, (before, node(step, name="end"))])


root_agent = build()
