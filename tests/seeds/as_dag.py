"""Runs what a seed shows as a DAG run, and the same in ADK alone; both reach the model through one local Gemini server."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from adk_airflow.testing import WorkflowRun, run_dag, run_workflow
from tests.seeds.in_process import InProcess, assert_same, assert_same_answer, run_in_process

if TYPE_CHECKING:
    from tests.servers.gemini import GeminiRequest, GeminiServer

Script = Callable[["GeminiRequest"], Any]
StartServer = Callable[[Script], "GeminiServer"]


@dataclass(frozen=True)
class Both:
    """What the two runs gave.

    Attributes:
        run: The DAG run; its ``output`` is the agent's answer when the root is no workflow.
        adk: ADK's own run.
        requests: The requests of the DAG run, in order.
        others: The requests of ADK's own run, in order.
        agent: The root is no workflow.
    """

    run: WorkflowRun
    adk: InProcess
    requests: list[GeminiRequest]
    others: list[GeminiRequest] = field(repr=False)
    agent: bool

    def assert_same(self, nodes: bool = True) -> None:
        """Both gave the same, and sent the model the same requests."""
        if self.agent:
            assert_same_answer(self.run, self.adk)
        else:
            assert_same(self.run, self.adk, nodes)
        assert _bodies(self.requests) == _bodies(self.others)


def _bodies(requests: list[GeminiRequest]) -> list[Any]:
    """In a fixed order: branches ask side by side."""
    texts = sorted(json.dumps([request.method, request.model, request.body], sort_keys=True) for request in requests)
    return [json.loads(text) for text in texts]


def run_agent(agent: Any, prompt: str = "", state: Mapping[str, Any] | None = None) -> WorkflowRun:
    """An agent that is no workflow, as a DAG of one task; ``output`` is its answer."""
    from airflow.sdk import DAG

    from adk_airflow import AdkAgentOperator

    with DAG(f"dag_of_{agent.name}", schedule=None) as dag:
        AdkAgentOperator(task_id="ask", agent=agent, prompt=prompt, state=dict(state or {}))
    run = run_dag(dag)
    answers = run.outputs.get(agent.name, [])
    others = {name: values for name, values in run.outputs.items() if name != agent.name}
    return dataclasses.replace(run, output=answers[-1] if answers else None, outputs=others)


def run_both(
    server: GeminiServer, root: Any, input: str = "", state: Mapping[str, Any] | None = None, again: Any = None, **options: Any
) -> Both:
    """Runs a workflow or an agent both ways.

    Args:
        server: Where the model is.
        root: The workflow or agent.
        input: The user message.
        state: The initial session state.
        again: For ADK's own run another object like ``root``, when one object cannot run twice.
        options: As for ``run_workflow``.
    """
    from google.adk.workflow import Workflow

    agent, before = not isinstance(root, Workflow), len(server.requests)
    run = run_agent(root, input, state) if agent else run_workflow(root, input=input, state=state, **options)
    between = len(server.requests)
    adk = run_in_process(root if again is None else again, input, state)
    return Both(run, adk, server.requests[before:between], server.requests[between:], agent)


def parameters_of(request: GeminiRequest, tool: str) -> dict[str, Any]:
    """The parameters of a tool as its declaration in the request has them, by name."""
    declaration = request.tools[tool]
    spellings = ("parametersJsonSchema", "parameters_json_schema", "parameters")
    schema: dict[str, Any] = next((declaration[name] for name in spellings if name in declaration), {})
    properties: dict[str, Any] = schema.get("properties", {})
    return properties


def built_in_tools(request: GeminiRequest) -> list[dict[str, Any]]:
    """The tools of a request that the model runs itself, in camel case.

    The API takes both spellings, and google-genai sends both.
    """
    return [_in_camel_case(tool) for tool in request.body.get("tools", []) if "functionDeclarations" not in tool]


def _in_camel_case(value: Any) -> Any:
    if isinstance(value, list):
        return [_in_camel_case(item) for item in value]
    if isinstance(value, dict):
        return {re.sub("_([a-z])", lambda found: found[1].upper(), key): _in_camel_case(item) for key, item in value.items()}
    return value
