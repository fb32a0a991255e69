"""Runs a workflow or an agent as ADK alone does, in one process: what the DAG runs of these tests are compared with."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.conformance.run import recorded

if TYPE_CHECKING:
    from google.adk.memory.base_memory_service import BaseMemoryService

    from adk_airflow.testing import WorkflowRun


@dataclass
class InProcess:
    """What came out of an ADK run.

    Attributes:
        name: The name of the workflow or agent.
        state: ``success`` or ``failed``.
        output: The workflow's output.
        answer: The text of the last final response, of whichever agent gave it: what a caller of an agent reads.
        outputs: Per node name the outputs of its runs, in the order in which they ended.
        session_state: The session state at the end, ``temp:`` keys left out.
        error: ``(type, message)`` of the exception that reached the caller, or None.
    """

    name: str
    state: str = "success"
    output: Any = None
    answer: str | None = None
    outputs: dict[str, list[Any]] = field(default_factory=dict)
    session_state: dict[str, Any] = field(default_factory=dict)
    error: tuple[str, str] | None = None


def run_in_process(
    root: Any,
    input: str = "",
    state: Mapping[str, Any] | None = None,
    memory_service: BaseMemoryService | None = None,
) -> InProcess:
    """Runs it once with ADK's Runner and in-memory session service."""
    return asyncio.run(_run(root, input, dict(state or {}), memory_service))


async def _run(root: Any, text: str, state: dict[str, Any], memory_service: BaseMemoryService | None) -> InProcess:
    from google.adk.apps.app import App
    from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
    from google.adk.runners import Runner
    from google.adk.sessions.in_memory_session_service import InMemorySessionService
    from google.genai import types

    found, sessions = InProcess(root.name), InMemorySessionService()
    runner = Runner(
        app=App(name="seeds", root_agent=root),
        session_service=sessions,
        artifact_service=InMemoryArtifactService(),
        memory_service=memory_service,
    )
    names: dict[str, Any] = {"app_name": "seeds", "user_id": "airflow"}
    session = await sessions.create_session(**names, state=state)
    message = types.Content(role="user", parts=[types.Part(text=text)])
    try:
        async for event in runner.run_async(user_id="airflow", session_id=session.id, new_message=message):
            _note(found, event)
    except Exception as error:
        found.state, found.output, found.answer, found.error = "failed", None, None, (type(error).__name__, str(error))
    after = await sessions.get_session(**names, session_id=session.id)
    assert after is not None
    found.session_state = {key: value for key, value in after.state.items() if not key.startswith("temp:")}
    await runner.close()
    return found


def _note(found: InProcess, event: Any) -> None:
    text = "".join(part.text or "" for part in event.content.parts or []) if event.content else ""
    output = text if event.output is None and event.node_info.message_as_output else event.output
    if output is not None:
        found.outputs.setdefault(event.node_name, []).append(output)
        if f"{found.name}@1" in (event.node_info.output_for or []):
            found.output = output
    if event.is_final_response() and text:
        found.answer = text


def assert_same(run: WorkflowRun, adk: InProcess, nodes: bool = True) -> None:
    """The DAG run of a workflow gave what ADK gave: state, output, session state, error type, outputs of each node.

    Args:
        run: The DAG run.
        adk: ADK's own run.
        nodes: False: the outputs per node are not compared.
    """
    _assert_same_end(run, adk)
    assert run.output == adk.output
    if nodes:
        told = {name: _texts(values) for name, values in adk.outputs.items()}
        assert {name: _texts(run.outputs.get(name, [])) for name in told} == told
        # A task of its own picks the output of a workflow with several ends; it speaks for the workflow, not for a node.
        assert set(run.outputs) - set(told) <= {adk.name}


def assert_same_answer(run: WorkflowRun, adk: InProcess) -> None:
    """The DAG run of an agent gave what ADK gave: state, answer, session state, error type."""
    _assert_same_end(run, adk)
    answer = run.output if run.output is None or isinstance(run.output, str) else json.dumps(run.output)
    assert answer == adk.answer


def _assert_same_end(run: WorkflowRun, adk: InProcess) -> None:
    assert (run.state, run.error and run.error[0]) == (adk.state, adk.error and adk.error[0]), (run.error, adk.error)
    assert run.session_state == adk.session_state


def _texts(values: list[Any]) -> list[str]:
    return sorted(json.dumps(recorded(value), sort_keys=True) for value in values)
