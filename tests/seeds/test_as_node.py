"""Seed 002, clause by clause: each as a DAG run and in ADK's own Runner, with equal results."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps.app import App
from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.events.event import Event
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools import (
    FunctionTool,
    LongRunningFunctionTool,
    VertexAiSearchTool,
    google_search,
    preload_memory,
    transfer_to_agent,
    url_context,
)
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.enterprise_search_tool import EnterpriseWebSearchTool
from google.adk.tools.google_maps_grounding_tool import GoogleMapsGroundingTool
from google.adk.workflow import START, RetryConfig, Workflow
from google.genai import types

from adk_airflow import as_node, plan_workflow
from adk_airflow.errors import ToolLoadError, UnsupportedToolError
from adk_airflow.testing import WorkflowRun, run_workflow


@dataclass
class InProcess:
    """What ADK's own Runner gave: its events, the workflow's output, the state afterwards, the error."""

    events: list[Event] = field(default_factory=list)
    output: Any = None
    session_state: dict[str, Any] = field(default_factory=dict)
    error: tuple[str, str] | None = None


def in_process(workflow: Workflow, input: str = "", state: Mapping[str, Any] | None = None) -> InProcess:
    return asyncio.run(_in_process(workflow, input, dict(state or {})))


async def _in_process(workflow: Workflow, text: str, state: dict[str, Any]) -> InProcess:
    sessions = InMemorySessionService()
    await sessions.create_session(app_name="seed", user_id="airflow", session_id="s", state=state)
    runner = Runner(
        app=App(name="seed", root_agent=workflow), session_service=sessions, artifact_service=InMemoryArtifactService()
    )
    found = InProcess()
    message = types.Content(role="user", parts=[types.Part(text=text)])
    try:
        async for event in runner.run_async(user_id="airflow", session_id="s", new_message=message):
            found.events.append(event)
            output = event.output
            if output is None and event.node_info.message_as_output and event.content:
                output = "".join(part.text or "" for part in event.content.parts or [])
            if output is not None and f"{workflow.name}@1" in (event.node_info.output_for or []):
                found.output = output
    except Exception as error:
        found.error = (type(error).__name__, str(error))
    session = await sessions.get_session(app_name="seed", user_id="airflow", session_id="s")
    assert session is not None
    found.session_state = dict(session.state)
    await runner.close()
    return found


def both_ways(workflow: Workflow, input: str = "", state: Mapping[str, Any] | None = None) -> tuple[WorkflowRun, InProcess]:
    """Runs the workflow twice and asserts that the DAG run gave what ADK gave, also in type."""
    run, adk = run_workflow(workflow, input=input, state=state), in_process(workflow, input, state)
    assert (run.state, run.error) == ("failed" if adk.error else "success", adk.error)
    if adk.error is None:
        assert (run.output, type(run.output)) == (adk.output, type(adk.output))
    assert run.session_state == adk.session_state
    return run, adk


def after(value: Any, *steps: Any) -> Workflow:
    """A workflow whose first node outputs the value."""

    def give() -> Event:
        return Event(output=value)  # a Content that is returned as it is would be a message, not an output

    return Workflow(name="seed_002", edges=list(pairwise([START, give, *steps])))


class Echo(BaseTool):
    """Returns the arguments that reached it, whatever it declares."""

    def __init__(self) -> None:
        super().__init__(name="echo", description="Returns its arguments.")

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        return {"got": args}


def add(a: int, b: int) -> dict[str, int]:
    """Adds two numbers."""
    return {"sum": a + b}


def show(node_input: Any) -> str:
    """What reached the node after the tool."""
    return f"next got {json.dumps(node_input)}"


def content(text: str) -> types.Content:
    return types.Content(role="model", parts=[types.Part(text=text)])


# A fixed step


def test_the_predecessors_output_becomes_the_arguments_and_the_result_the_nodes_output() -> None:
    run, _ = both_ways(after({"a": 1, "b": 2}, as_node(add), show))

    assert run.outputs["add"] == [{"sum": 3}]
    assert run.output == 'next got {"sum": 3}'


def test_an_agent_wrapped_as_a_tool_is_a_step(gemini: Any) -> None:
    server = gemini(lambda request: f"In French: {request.last_text}")
    translator = LlmAgent(name="translator", model="gemini-2.5-flash", description="Translates to French.")

    run, _ = both_ways(after({"request": "good day"}, as_node(AgentTool(translator))))

    assert run.output == "In French: good day"
    assert len(server.requests) == 2


# Input


@pytest.mark.parametrize(
    "given",
    [{"a": 1, "b": [2]}, '{"a": 1, "b": [2]}', ' \n{"a": 1, "b": [2]} ', content('{"a": 1, "b": [2]}')],
    ids=["map", "string", "string with space around", "Content"],
)
def test_a_map_or_text_of_a_json_object_is_the_arguments(given: Any) -> None:
    run, _ = both_ways(after(given, as_node(Echo())))

    assert run.output == {"got": {"a": 1, "b": [2]}}


def test_the_user_message_is_such_a_content() -> None:
    workflow = Workflow(name="seed_002", edges=[(START, as_node(add))])

    assert both_ways(workflow, input='{"a": 40, "b": 2}')[0].output == {"sum": 42}


@pytest.mark.parametrize(
    "given",
    [None, "", " \n\t", "null", " null ", content(""), content("  "), content("null"), types.Content(role="model", parts=[])],
    ids=["None", "empty", "blank", "null", "null with space", "Content empty", "Content blank", "Content null", "no parts"],
)
def test_nothing_blank_or_null_calls_the_tool_without_arguments(given: Any) -> None:
    run, _ = both_ways(after(given, as_node(Echo())))

    assert run.output == {"got": {}}


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ("tell me a joke", "text that is no JSON"),
        (content("tell me a joke"), "text that is no JSON"),
        ("[1, 2]", "JSON text of a list"),
        ([1, 2], "a list"),
        (7, "a int"),
        ("7", "JSON text of a int"),
        (1.5, "a float"),
        (True, "a bool"),
        ('"a string"', "JSON text of a str"),
    ],
    ids=["text", "Content of text", "JSON array", "list", "number", "JSON number", "float", "bool", "JSON string"],
)
def test_anything_else_fails_the_node(given: Any, what: str) -> None:
    def one_parameter(text: str) -> str:
        return text

    run, _ = both_ways(after(given, as_node(one_parameter)))

    assert run.error is not None
    assert run.error[0] == "ToolInputError"
    assert f"node 'one_parameter': its input is {what}" in run.error[1]
    assert "JSON object" in run.error[1]


def test_a_required_parameter_that_the_input_lacks_is_read_from_state() -> None:
    run, _ = both_ways(after({"a": 1}, as_node(add)), state={"b": 41, "c": 0})

    assert run.output == {"sum": 42}


def test_what_the_input_has_is_not_read_from_state() -> None:
    assert both_ways(after({"a": 1, "b": 2}, as_node(add)), state={"a": 10, "b": 10})[0].output == {"sum": 3}


def test_a_parameter_that_is_not_required_is_not_read_from_state() -> None:
    def greet(name: str, tone: str = "kind") -> str:
        return f"{tone} {name}"

    assert both_ways(after({"name": "Ada"}, as_node(greet)), state={"tone": "rude"})[0].output == "kind Ada"


# Validation


def test_the_node_declares_no_schema() -> None:
    node = as_node(add)

    assert (node.input_schema, node.output_schema) == (None, None)


def test_the_arguments_reach_the_tool_unchecked() -> None:
    class Strict(Echo):
        def _get_declaration(self) -> types.FunctionDeclaration:
            number = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
            return types.FunctionDeclaration(name="echo", description="", parameters_json_schema=number)

    run, _ = both_ways(after({"a": "no number", "more": None}, as_node(Strict())))

    assert run.output == {"got": {"a": "no number", "more": None}}


# Output


@pytest.mark.parametrize(
    "value",
    [{"a": [1, None]}, [1, "two"], "text", "", 0, 1.5, False, {}, [], (1, 2)],
    ids=lambda value: repr(value),
)
def test_the_return_value_is_the_output_unchanged(value: Any) -> None:
    def tool() -> Any:
        return value

    run, _ = both_ways(after(None, as_node(tool)))

    assert (run.output, type(run.output)) == (value, type(value))


def nothing() -> None:
    """A tool that returns nothing."""


def test_a_tool_that_returns_nothing_gives_no_output() -> None:
    run, adk = both_ways(after(None, as_node(nothing), show))

    assert "nothing" not in run.outputs
    assert run.output == "next got null"
    assert not [event for event in adk.events if event.node_name == "nothing" and event.output is not None]


def test_a_long_running_tool_that_defers_its_result_gives_no_output_and_does_not_wait() -> None:
    run, _ = both_ways(after(None, as_node(LongRunningFunctionTool(nothing)), show))

    assert run.output == "next got null"


async def remember(text: str, tool_context: Any) -> str:
    """Writes state and an artifact."""
    tool_context.state["text"] = text
    await tool_context.save_artifact("note.txt", types.Part(text=text))
    return "written"


async def recall(ctx: Any) -> str:
    note = await ctx.load_artifact("note.txt")
    return f"{ctx.state['text']} / {note.text}"


def test_state_and_artifact_changes_travel_on_the_output_event() -> None:
    run, adk = both_ways(after({"text": "bees"}, as_node(remember), recall))

    assert run.output == "bees / bees"
    assert run.session_state["text"] == "bees"
    (event,) = [event for event in adk.events if event.output == "written"]
    assert event.actions.state_delta == {"text": "bees"}
    assert event.actions.artifact_delta == {"note.txt": 0}


PLACEHOLDER = {"error": "This tool call requires confirmation, please approve or reject."}


def test_a_tool_that_requires_confirmation_gives_its_placeholder_error() -> None:
    run, adk = both_ways(after({"a": 1, "b": 2}, as_node(FunctionTool(add, require_confirmation=True)), show))

    assert run.outputs["add"] == [PLACEHOLDER]
    assert run.output == f"next got {json.dumps(PLACEHOLDER)}"
    assert not any(event.long_running_tool_ids or event.actions.requested_tool_confirmations for event in adk.events)


def test_a_confirmation_that_the_tool_asks_for_is_dropped() -> None:
    def careful(tool_context: Any) -> str:
        tool_context.request_confirmation(hint="really?")
        return "not sure"

    run, adk = both_ways(after(None, as_node(careful)))

    assert run.output == "not sure"
    assert not any(event.long_running_tool_ids or event.actions.requested_tool_confirmations for event in adk.events)


def test_a_transfer_is_dropped() -> None:
    run, adk = both_ways(after({"agent_name": "somebody"}, as_node(FunctionTool(transfer_to_agent)), show))

    assert run.output == "next got null"
    assert not any(event.actions.transfer_to_agent for event in adk.events)


def test_skip_summarization_is_dropped() -> None:
    def terse(tool_context: Any) -> str:
        tool_context.actions.skip_summarization = True
        return "as it is"

    run, adk = both_ways(after(None, as_node(terse)))

    assert run.output == "as it is"
    assert not any(event.actions.skip_summarization for event in adk.events)


# Errors


class Unreliable(BaseTool):
    """Fails until it was called so often."""

    def __init__(self, failures: int) -> None:
        super().__init__(name="unreliable", description="")
        self.failures, self.calls = failures, 0

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        self.calls += 1
        if self.calls <= self.failures:
            raise ConnectionError(f"call {self.calls} failed")
        return self.calls


def test_an_exception_fails_the_node() -> None:
    def broken() -> None:
        raise ConnectionError("nobody answers")

    run, _ = both_ways(after(None, as_node(broken), show))

    assert run.error == ("ConnectionError", "nobody answers")
    assert run.task_states["show"] == ["upstream_failed"]


RETRY = RetryConfig(max_attempts=3, initial_delay=0.01, jitter=0)


def test_the_retry_policy_runs_the_tool_again() -> None:
    for way in (run_workflow, in_process):
        tool = Unreliable(2)

        assert way(after(None, as_node(tool, retry_config=RETRY))).output == 3  # type: ignore[operator]
        assert tool.calls == 3


def test_the_retry_policy_gives_up() -> None:
    for way in (run_workflow, in_process):
        tool = Unreliable(9)

        assert way(after(None, as_node(tool, retry_config=RETRY))).error == ("ConnectionError", "call 3 failed")  # type: ignore[operator]
        assert tool.calls == 3


def test_the_timeout_applies() -> None:
    async def sleepy() -> None:
        await asyncio.sleep(5)

    run, _ = both_ways(after(None, as_node(sleepy, timeout=0.05)))

    assert run.error is not None
    assert run.error[0] == "NodeTimeoutError"


def test_an_error_map_reaches_the_next_node_like_any_other_value() -> None:
    run, _ = both_ways(after({"a": 1}, as_node(add), show))

    (error_map,) = run.outputs["add"]
    assert list(error_map) == ["error"]
    assert "mandatory" in error_map["error"]
    assert run.output == f"next got {json.dumps(error_map)}"


# Identity


def test_each_call_makes_a_new_node() -> None:
    tool = FunctionTool(add)

    assert as_node(tool) is not as_node(tool)


def test_two_nodes_of_one_tool_share_its_name_which_the_graph_refuses() -> None:
    with pytest.raises(ValueError, match=r"(?s)[Dd]uplicate.*add"):
        after({"a": 1, "b": 2}, as_node(add), show, as_node(add))


def test_one_node_serves_at_several_places() -> None:
    def left() -> dict[str, int]:
        return {"a": 1, "b": 2}

    def right() -> dict[str, int]:
        return {"a": 3, "b": 4}

    adding = as_node(add)
    run = run_workflow(Workflow(name="seed_002", edges=[(START, (left, right)), (left, adding), (right, adding)]))

    assert run.outputs["add"] == [{"sum": 3}, {"sum": 7}]


def test_another_name_makes_another_place() -> None:
    def again(node_input: dict[str, int]) -> dict[str, int]:
        return {"a": node_input["sum"], "b": 1}

    run, _ = both_ways(after({"a": 1, "b": 2}, as_node(add), again, as_node(add, name="add_again")))

    assert (run.outputs["add"], run.outputs["add_again"]) == ([{"sum": 3}], [{"sum": 4}])


def test_a_tool_whose_name_cannot_name_a_node_needs_one() -> None:
    tool = FunctionTool(add)
    tool.name = "add-numbers"

    with pytest.raises(ToolLoadError, match=r"as_node\(tool, name='...'\)"):
        as_node(tool)
    assert run_workflow(after({"a": 1, "b": 2}, as_node(tool, name="add_numbers"))).output == {"sum": 3}


# Tools that run inside the model

MODEL_SIDE = [
    google_search,
    url_context,
    VertexAiSearchTool(data_store_id="projects/p/locations/global/collections/c/dataStores/d"),
    EnterpriseWebSearchTool(),
    GoogleMapsGroundingTool(),
    preload_memory,
]


@pytest.mark.parametrize("tool", MODEL_SIDE, ids=lambda tool: tool.name)
def test_a_tool_that_runs_inside_the_model_is_refused_when_the_node_is_made(tool: BaseTool) -> None:
    with pytest.raises(
        UnsupportedToolError, match=rf"tool '{tool.name}': .*Give it to an LlmAgent .* use that agent as the node"
    ):
        as_node(tool)


@pytest.mark.parametrize("tool", MODEL_SIDE, ids=lambda tool: tool.name)
def test_and_when_the_plan_is_made_of_adks_own_node(tool: BaseTool) -> None:
    workflow = Workflow(name="seed_002", edges=[(START, tool)])

    with pytest.raises(UnsupportedToolError, match=rf"workflow 'seed_002', node '{tool.name}': .*Give it to an LlmAgent"):
        plan_workflow(workflow)


def test_such_a_tool_serves_in_an_agent_that_is_the_node(gemini: Any) -> None:
    server = gemini(lambda request: "found it")
    searcher = LlmAgent(name="searcher", model="gemini-2.5-flash", tools=[google_search])

    run, _ = both_ways(after("bees", searcher))

    assert run.output == "found it"
    assert all({"googleSearch": {}} in request.body["tools"] for request in server.requests)


# The call's id


def test_the_tool_gets_a_function_call_id_of_its_own_for_each_run() -> None:
    def which(tool_context: Any) -> str:
        return str(tool_context.function_call_id)

    def left() -> None: ...

    def right() -> None: ...

    asking = as_node(which)
    workflow = Workflow(name="seed_002", edges=[(START, (left, right)), (left, asking), (right, asking)])
    run, adk = run_workflow(workflow), in_process(workflow)

    for ids in (run.outputs["which"], [event.output for event in adk.events if event.node_name == "which" and event.output]):
        assert len(set(ids)) == 2
        assert "None" not in ids
        assert "" not in ids
