"""What a workflow's ``output_schema`` makes of its output: the DAG's result is what ADK's own last event holds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from google.adk.apps.app import App
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.workflow import START, Workflow, node
from google.genai import types
from pydantic import BaseModel

from adk_airflow import AdkDag
from adk_airflow.testing import run_dag


class Order(BaseModel):
    qty: int
    note: str | None = None
    kind: str = "tea"


OUTPUTS: dict[str, tuple[Any, Any]] = {
    "coerced": (Order, {"qty": "3"}),
    "model": (Order, Order(qty=1)),
    "none": (Order, {"qty": 1, "note": None}),
    "list of models": (list[Order], [{"qty": "3"}, Order(qty=4)]),
    "dict": (dict[str, int], {"a": "1"}),
    "number": (int, "3"),
    "nothing": (Order, None),
}


def gives(output: Any, **of_workflow: Any) -> Workflow:
    return Workflow(edges=[(START, node(lambda: output, name="give"))], **of_workflow)


def saw(node_input: Any) -> dict[str, Any]:
    return {"saw": node_input}


WORKFLOWS: dict[str, Callable[[Any, Any], Workflow]] = {
    "of the workflow": lambda schema, output: gives(output, name="flow", output_schema=schema),
    "of a nested one": lambda schema, output: Workflow(
        name="flow", edges=[(START, gives(output, name="inner", output_schema=schema), saw)]
    ),
    "of a nested one at the end": lambda schema, output: Workflow(
        name="flow", edges=[(START, gives(output, name="inner", output_schema=schema))]
    ),
    "of both": lambda schema, output: Workflow(
        name="flow", edges=[(START, gives(output, name="inner", output_schema=schema))], output_schema=schema
    ),
    "of one deep inside": lambda schema, output: Workflow(
        name="flow",
        edges=[(START, Workflow(name="mid", edges=[(START, gives(output, name="inner", output_schema=schema))]), saw)],
    ),
}


async def of_adk(workflow: Workflow) -> Any:
    """The output in ADK's last event that counts for the whole workflow."""
    sessions = InMemorySessionService()  # type: ignore[no-untyped-call]
    await sessions.create_session(app_name="app", user_id="u", session_id="s")
    runner = Runner(app=App(name="app", root_agent=workflow), session_service=sessions)
    message = types.Content(role="user", parts=[types.Part(text="hello")])
    output = None
    async for event in runner.run_async(user_id="u", session_id="s", new_message=message):
        if f"{workflow.name}@1" in (event.node_info.output_for or ()):
            output = event.output
    return output


@pytest.mark.parametrize("mode", ["tasks", "embedded"])
@pytest.mark.parametrize("kind", OUTPUTS)
@pytest.mark.parametrize("schema", WORKFLOWS)
def test_the_output_is_that_of_adks_event(schema: str, kind: str, mode: Any) -> None:
    make, given = WORKFLOWS[schema], OUTPUTS[kind]
    run = run_dag(AdkDag(make(*given), mode=mode))

    assert run.state == "success"
    assert run.output == asyncio.run(of_adk(make(*given)))


@pytest.mark.parametrize("kind", OUTPUTS)
@pytest.mark.parametrize("schema", ["of a nested one", "of a nested one at the end", "of both"])
def test_also_of_a_nested_workflow_in_one_task(schema: str, kind: str) -> None:
    make, given = WORKFLOWS[schema], OUTPUTS[kind]
    run = run_dag(AdkDag(make(*given), nodes={"inner": {"mode": "embedded"}}))

    assert run.state == "success"
    assert run.output == asyncio.run(of_adk(make(*given)))


@pytest.mark.parametrize("mode", ["tasks", "embedded"])
@pytest.mark.parametrize("schema", WORKFLOWS)
def test_an_output_that_does_not_fit_fails_the_run(schema: str, mode: Any) -> None:
    run = run_dag(AdkDag(WORKFLOWS[schema](Order, {"qty": "many"}), mode=mode))

    assert run.state == "failed"
    assert run.error is not None
    assert run.error[0] == "ValidationError"
