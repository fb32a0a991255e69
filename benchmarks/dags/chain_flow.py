"""A chain of 20 nodes that do next to nothing."""

from __future__ import annotations

from typing import Any

from google.adk.workflow import Workflow, node


def step(node_input: Any) -> str:
    return f"{node_input}."


def begin() -> str:
    return ""


root_agent = Workflow(
    name="adk_chain", edges=[("START", node(begin, name="step_0"), *(node(step, name=f"step_{at}") for at in range(1, 20)))]
)
