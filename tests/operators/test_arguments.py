"""An argument that would have no effect is refused."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk import task

from adk_airflow import AdkAgentOperator, AdkToolOperator, AdkWorkflowOperator

INTERNAL = ("node", "kind", "scope", "starts", "exits", "skips", "region", "terminals", "items_task", "spec")


@pytest.mark.parametrize("name", [*INTERNAL, "input", "session_id", "prompt"])
def test_of_a_tool(name: str) -> None:
    with pytest.raises(TypeError, match=name):
        AdkToolOperator(task_id="t", tool="m:tool", **{name: "x"})


@pytest.mark.parametrize("name", [*INTERNAL, "prompt"])
def test_of_a_workflow(name: str) -> None:
    with pytest.raises(TypeError, match=name):
        AdkWorkflowOperator(task_id="t", workflow="m:wf", **{name: "x"})


@pytest.mark.parametrize("name", [*INTERNAL, "workflow", "max_iterations"])
def test_of_an_agent(name: str) -> None:
    with pytest.raises(TypeError, match=name):
        AdkAgentOperator(task_id="t", agent="m:agent", **{name: "x"})


def test_a_prompt_and_an_input() -> None:
    with pytest.raises(TypeError, match="takes a prompt or an input, not both"):
        AdkAgentOperator(task_id="t", agent="m:agent", prompt="x", input="y")


@pytest.mark.parametrize(
    ("decorator", "given"),
    [
        ("adk_agent", {"agent": "m:agent", "prompt": "x"}),
        ("adk_agent", {"agent": "m:agent", "input": "x"}),
        ("adk_tool", {"tool": "m:tool", "arguments": {}}),
        ("adk_tool", {"tool": "m:tool", "input": "x"}),
    ],
)
def test_what_a_decorated_function_returns_anyway(decorator: str, given: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=rf"@task.{decorator} takes no \w+: what the function returns is used"):
        getattr(task, decorator)(**given)
