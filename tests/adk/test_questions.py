"""Which node asks a person, in which way, and when nobody is asked although an agent's words look like it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Literal

import pytest
from google.adk import Context, Event, Workflow
from google.adk.agents.llm_agent import LlmAgent
from google.adk.events.request_input import RequestInput
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.workflow import START, node
from google.genai import types

from adk_airflow.runtime.adk.questions import Question
from adk_airflow.testing import WorkflowRun, run_workflow

Mode = Literal["tasks", "embedded"]
both = pytest.mark.parametrize("mode", ["tasks", "embedded"])


class Asks(BaseLlm):
    """A model that answers everything with a question."""

    model: str = "asks"

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
        await asyncio.sleep(0)
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="Which colour?")]))


def helper() -> LlmAgent:
    return LlmAgent(name="helper", mode="task", model=Asks())


def caller(*, wait_for_output: bool, raise_on_wait: bool, output: Any = None) -> Any:
    agent = helper()

    @node(rerun_on_resume=True)
    async def dyn(ctx: Context) -> Any:
        found = await ctx.run_node(agent, node_input="x", raise_on_wait=raise_on_wait)
        return output if found is None else found

    dyn.wait_for_output = wait_for_output
    return dyn


def error_of(run: WorkflowRun) -> tuple[str, str]:
    assert run.error is not None, run
    return run.error


@both
def test_a_task_agent_that_a_node_runs_and_waits_for(mode: Mode) -> None:
    later = node(lambda: "later", name="later")
    wf = Workflow(name="wf", edges=[(START, caller(wait_for_output=True, raise_on_wait=True), later)])
    kind, words = error_of(run_workflow(wf, mode=mode))

    assert kind == "HumanInputNotSupportedError"
    assert "node wf@1/dyn@1/helper@1 is an agent in task mode that asks a person: 'Which colour?'" in words


@both
@pytest.mark.parametrize("raise_on_wait", [True, False])
def test_nobody_is_asked_where_adk_goes_on_without_the_agents_result(mode: Mode, raise_on_wait: bool) -> None:
    wf = Workflow(name="wf", edges=[(START, caller(wait_for_output=False, raise_on_wait=raise_on_wait))])
    run = run_workflow(wf, mode=mode)

    assert (run.state, run.output) == ("success", None)


@both
def test_nobody_is_asked_where_the_node_has_an_output_of_its_own(mode: Mode) -> None:
    wf = Workflow(name="wf", edges=[(START, caller(wait_for_output=True, raise_on_wait=False, output="default"))])
    run = run_workflow(wf, mode=mode)

    assert (run.state, run.output) == ("success", "default")


@both
def test_a_task_agent_in_a_nested_workflow(mode: Mode) -> None:
    inner = Workflow(name="inner", edges=[(START, helper())])
    _, words = error_of(run_workflow(Workflow(name="wf", edges=[(START, inner)]), mode=mode))

    assert "node wf@1/inner@1/helper@1 is an agent in task mode that asks a person: 'Which colour?'" in words


@both
def test_a_task_agent_as_the_body_of_a_parallel_worker(mode: Mode) -> None:
    items = node(lambda: ["a"], name="items")
    wf = Workflow(name="wf", edges=[(START, items, node(helper(), parallel_worker=True))])
    _, words = error_of(run_workflow(wf, mode=mode))

    assert "node wf@1/helper@1/helper@1 is an agent in task mode that asks a person: 'Which colour?'" in words


@both
def test_another_node_of_a_task_agents_name_asks_nobody(mode: Mode) -> None:
    """In a nested workflow there is an agent ``helper``, which is not reached; beside it a function of that name."""

    def writes(ctx: Context) -> None:
        ctx.state["seen"] = True

    router = node(lambda: Event(route="elsewhere"), name="router")
    inner = Workflow(name="inner", edges=[(START, router), (router, {"never": helper()})])
    run = run_workflow(Workflow(name="wf", edges=[(START, (node(writes, name="helper"), inner))]), mode=mode)

    assert (run.state, run.session_state) == ("success", {"seen": True})


def asking(message: str) -> Any:
    @node(name="ask")
    async def body(ctx: Context) -> Any:
        yield RequestInput(interrupt_id="well", message=message)

    return body


@both
def test_the_node_of_a_loop_that_asks_is_named_with_its_question(mode: Mode) -> None:
    a, ask, judge = node(lambda: 1, name="a"), asking("Approve?"), node(lambda: Event(route="again"), name="judge")
    wf = Workflow(name="wf", edges=[(START, a, ask, judge), (judge, {"again": a, "done": node(lambda: 2, name="end")})])
    _, words = error_of(run_workflow(wf, mode=mode))

    assert "node wf@1/ask@1 asks a person for input: 'Approve?'" in words


@both
def test_two_branches_that_ask_are_told_apart(mode: Mode) -> None:
    def ask(name: str) -> Any:
        @node(name=name)
        async def body(ctx: Context) -> Any:
            yield RequestInput(interrupt_id=f"id_{name}", message=f"{name}?")

        return body

    _, words = error_of(run_workflow(Workflow(name="wf", edges=[(START, (ask("left"), ask("right")))]), mode=mode))

    asked = [f"node wf@1/{name}@1 asks a person for input: '{name}?'" for name in ("left", "right")]
    assert any(text in words for text in asked) if mode == "tasks" else all(text in words for text in asked)


@both
def test_a_tool_that_wants_a_confirmation_as_a_node_asks_for_input_as_adk_does(mode: Mode) -> None:
    def pay(amount: int) -> str:
        return "paid"

    give = node(lambda: {"amount": 3}, name="give")
    wf = Workflow(name="wf", edges=[(START, give, node(FunctionTool(pay, require_confirmation=True)))])
    _, words = error_of(run_workflow(wf, mode=mode))

    assert "node wf@1/pay@1 asks a person for input: 'Please approve or reject the tool call pay()" in words


class Calls(BaseLlm):
    """A model that calls the function that it is named after."""

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
        await asyncio.sleep(0)
        part = types.Part(function_call=types.FunctionCall(name=self.model, args={"request": "x"}))
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def approve(request: str) -> None:
    """Asks for an approval."""


@both
def test_an_agent_whose_helper_asks_is_not_named_beside_it(mode: Mode) -> None:
    agent = LlmAgent(name="agent", mode="task", model=Calls(model="helper"), sub_agents=[helper()])
    _, words = error_of(run_workflow(Workflow(name="wf", edges=[(START, agent)]), mode=mode))

    assert words.count(" asks a person") == 1
    assert "/helper@" in words
    assert "'Which colour?'" in words


@both
def test_nor_is_one_whose_long_running_tool_waits(mode: Mode) -> None:
    agent = LlmAgent(name="agent", mode="task", model=Calls(model="approve"), tools=[LongRunningFunctionTool(approve)])
    _, words = error_of(run_workflow(Workflow(name="wf", edges=[(START, agent)]), mode=mode))

    assert "node wf@1/agent@1 waits for the answer of the long-running tool 'approve', which" in words


def test_a_request_for_credentials_tells_nothing_of_its_arguments() -> None:
    assert str(Question("wf@1/a@1", "credential", "", "id")) == "node wf@1/a@1 asks a person for credentials"
