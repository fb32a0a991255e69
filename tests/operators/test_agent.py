"""AdkAgentOperator: what it asks, what it returns, and how it fails. The model is a local server of Gemini's API."""

from __future__ import annotations

import copy
import functools
import json
import os
import signal
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from airflow.sdk import DAG, task
from airflow.serialization.serialized_objects import DagSerialization
from google.adk.agents import LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.tools import LongRunningFunctionTool, exit_loop
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool
from pydantic import BaseModel

from adk_airflow import AdkAgentOperator
from adk_airflow.errors import AgentLoadError
from adk_airflow.testing import WorkflowRun, run_dag
from tests.operators import agents
from tests.operators.agents import by_agent, named
from tests.servers.gemini import GeminiRequest, GeminiServer, call, error, raw, slow, structured

Ask = Callable[..., WorkflowRun]
Start = Callable[[Callable[[GeminiRequest], Any]], GeminiServer]
MODEL = agents.MODEL


def echo(request: GeminiRequest) -> str:
    return f"you said: {request.last_text}"


# What it is asked


def test_the_prompt_is_a_template(gemini: Start, ask: Ask) -> None:
    gemini(echo)
    run = ask("tests.operators.agents:greeter", "run {{ dag_run.dag_id }} for {{ params.who }}", params={"who": "Ada"})

    assert run.outputs == {"greeter": ["you said: run asking for Ada"]}
    assert run.session_state == {"who": "Ada", "greeting": "you said: run asking for Ada"}


def test_it_stands_beside_ordinary_tasks(gemini: Start) -> None:
    gemini(echo)
    seen = []

    @task
    def before() -> str:
        return "from before"

    @task
    def after(answer: str) -> None:
        seen.append(answer)

    with DAG("beside", schedule=None) as dag:
        after(AdkAgentOperator(task_id="ask", agent=agents.greeter, prompt=before()).output)
    run = run_dag(dag)

    assert run.state == "success"
    assert seen == ["you said: from before"]


def test_it_is_mapped(gemini: Start) -> None:
    gemini(echo)
    with DAG("mapped", schedule=None) as dag:
        AdkAgentOperator.partial(task_id="ask", agent=agents.greeter).expand(prompt=["one", "two"])
    run = run_dag(dag)

    assert run.outputs["greeter"] == ["you said: one", "you said: two"]
    assert run.task_states == {"ask": ["success", "success"]}


class City(BaseModel):
    name: str
    country: str | None = None


def test_an_input_reaches_the_agent_as_checked_json(gemini: Start, ask: Ask) -> None:
    server = gemini(echo)
    geographer = LlmAgent(name="geographer", model=MODEL, input_schema=City)

    for given in ({"name": "Rome", "country": "{{ params.country }}"}, City(name="Rome", country="Italy")):
        assert ask(geographer, None, input=given, params={"country": "Italy"}).state == "success"

    assert [json.loads(request.last_text) for request in server.requests] == [{"name": "Rome", "country": "Italy"}] * 2


def test_an_input_that_does_not_fit_fails_before_the_model_is_asked(gemini: Start, ask: Ask) -> None:
    server = gemini(echo)
    run = ask(LlmAgent(name="geographer", model=MODEL, input_schema=City), None, input={"country": "Italy"})

    assert run.state == "failed"
    assert server.requests == []


def test_without_a_prompt_the_runs_input_is_the_message(gemini: Start, ask: Ask) -> None:
    gemini(echo)

    assert ask(agents.greeter, None, params={"input": "from the form"}).outputs["greeter"] == ["you said: from the form"]


def test_a_prompt_and_an_input_are_refused() -> None:
    with pytest.raises(TypeError, match="'ask' takes a prompt or an input, not both"):
        AdkAgentOperator(task_id="ask", agent=agents.greeter, prompt="a", input={"b": 1})


def test_the_state_is_what_the_agent_finds(gemini: Start, ask: Ask) -> None:
    server = gemini(echo)
    run = ask(agents.greeter, state={"tone": "{{ params.tone }}"}, params={"tone": "dry"})

    assert "Greet in a dry tone." in server.requests[0].system
    assert run.session_state == {"tone": "dry", "greeting": "you said: hello"}


# Which agent


def test_an_app_and_a_function_that_makes_the_agent(gemini: Start, ask: Ask) -> None:
    gemini(echo)

    assert ask("tests.operators.agents:app").outputs == {"greeter": ["you said: hello"]}
    assert ask("tests.operators.agents:make_greeter").outputs == {"made": ["you said: hello"]}


@pytest.mark.parametrize(
    ("agent", "why"),
    [
        ("tests.operators.agents:nobody", "has no attribute 'nobody'"),
        ("tests.operators.nowhere:agent", "there is no module 'tests.operators.nowhere'"),
        ("greeter", "is not of the form 'package.module:attribute'"),
        ("tests.operators.agents:MODEL", "is no agent but a str"),
        (agents.workflow, "Use AdkDag, AdkTaskGroup or AdkWorkflowOperator"),
    ],
)
def test_what_is_no_agent_is_named_with_the_reason(agent: Any, why: str) -> None:
    operator = AdkAgentOperator(task_id="ask", agent=agent, prompt="x")

    with pytest.raises(AgentLoadError, match=why):
        operator.load()


def test_an_agent_object_is_stored_by_its_name_alone() -> None:
    secret = LlmAgent(name="spy", model=MODEL, instruction="The password is 1234.")
    with DAG("stored", schedule=None) as dag:
        AdkAgentOperator.partial(task_id="mapped", agent=secret).expand(prompt=["one"])
        AdkAgentOperator(task_id="single", agent=secret, prompt="one")
    stored = json.dumps(DagSerialization.to_dict(dag))

    assert "<LlmAgent spy>" in stored
    assert "1234" not in stored


def test_an_agent_that_cannot_be_copied_does_not_hinder_a_copy_of_the_dag() -> None:
    lock = threading.Lock()
    locked = LlmAgent(name="locked", model=MODEL, before_agent_callback=functools.partial(lambda lock, **_: None, lock))
    operator = AdkAgentOperator(task_id="ask", agent=locked, prompt="one")

    copied = copy.deepcopy(operator)

    assert copied.load().workflow is operator.load().workflow


# What it returns


def test_structured_output_is_validated_and_plain(gemini: Start, ask: Ask) -> None:
    server = gemini(lambda request: structured({"name": "Rome", "country": None}))
    run = ask(LlmAgent(name="geographer", model=MODEL, output_schema=City, output_key="city"))

    assert run.outputs["geographer"] == [{"name": "Rome"}]
    assert run.session_state["city"] == {"name": "Rome"}
    assert server.requests[0].response_schema is not None


def test_structured_output_that_does_not_fit_fails_the_task(gemini: Start, ask: Ask) -> None:
    gemini(lambda request: structured({"country": "Italy"}))
    run = ask(LlmAgent(name="geographer", model=MODEL, output_schema=City))

    assert run.error is not None
    assert run.error[0] == "ValidationError"


def test_of_a_transfer_the_answer_is_that_of_the_agent_it_went_to(gemini: Start, ask: Ask) -> None:
    gemini(
        by_agent(
            {
                "billing": lambda request: structured({"name": "bill"}),
                "desk": call("transfer_to_agent", {"agent_name": "billing"}),
            }
        )
    )
    run = ask(named("desk", sub_agents=[named("billing", output_schema=City)]))

    assert run.outputs["desk"] == [{"name": "bill"}]


def test_a_single_turn_sub_agent_answers_its_caller(gemini: Start, ask: Ask) -> None:
    def boss(request: GeminiRequest) -> Any:
        if request.function_responses:
            return f"they say {request.function_responses[0]['response']['result']}"
        return call("worker", {"request": "work"})

    gemini(by_agent({"worker": "done", "boss": boss}))
    run = ask(named("boss", sub_agents=[named("worker", mode="single_turn")]))

    assert run.outputs["boss"] == ["they say done"]


def test_a_task_is_delegated_and_comes_back(gemini: Start, ask: Ask) -> None:
    def boss(request: GeminiRequest) -> Any:
        if request.function_responses:
            return f"the task gave {request.function_responses[0]['response']['name']}"
        return call("scout", {"request": "find a city"})

    gemini(by_agent({"scout": call("finish_task", {"name": "Rome"}), "boss": boss}))
    run = ask(named("boss", sub_agents=[named("scout", mode="task", output_schema=City)]))

    assert run.outputs["boss"] == ["the task gave Rome"]


def test_of_a_task_mode_agent_the_answer_is_the_tasks_result(gemini: Start, ask: Ask) -> None:
    gemini(lambda request: call("finish_task", {"name": "Rome"}))
    run = ask(named("scout", mode="task", output_schema=City))

    assert run.outputs["scout"] == [{"name": "Rome"}]


def test_of_a_sequence_the_answer_is_the_last_ones(gemini: Start, ask: Ask) -> None:
    gemini(by_agent({"first": "one", "second": "two"}))
    run = ask(SequentialAgent(name="both", sub_agents=[named("first", output_key="a"), named("second", output_key="b")]))

    assert run.outputs["both"] == ["two"]
    assert run.session_state == {"a": "one", "b": "two"}


def test_of_a_parallel_agent_the_answer_is_a_dict(gemini: Start, ask: Ask) -> None:
    gemini(by_agent({"left": "one", "right": "two"}))
    both = ParallelAgent(name="both", sub_agents=[named("left"), named("right")])

    assert ask(both).outputs["both"] == [{"left": "one", "right": "two"}]


def test_of_a_tool_that_skips_its_summary_the_answer_is_the_tools(gemini: Start, ask: Ask) -> None:
    gemini(by_agent({"worker": "done", "boss": call("worker", {"request": "work"})}))
    boss = named("boss", tools=[AgentTool(named("worker"), skip_summarization=True)])

    assert ask(boss).outputs["boss"] == ["done"]


def test_of_a_loop_the_answer_is_the_last_text(gemini: Start, ask: Ask) -> None:
    def critic(request: GeminiRequest) -> Any:
        return call("exit_loop") if "two" in json.dumps(request.contents) else "again"

    def writer(request: GeminiRequest) -> Any:
        return "draft two" if "again" in json.dumps(request.contents) else "draft one"

    gemini(by_agent({"writer": writer, "critic": critic}))
    loop = LoopAgent(name="loop", max_iterations=5, sub_agents=[named("writer"), named("critic", tools=[exit_loop])])

    assert ask(loop).outputs["loop"] == ["draft two"]


def test_an_agent_without_a_model(ask: Ask) -> None:
    run = ask(agents.Counter(name="counter"), params={"seen": 4})

    assert run.outputs["counter"] == ["seen 5"]
    assert run.session_state == {"seen": 5}


# How it fails


def test_an_error_of_the_model_is_the_tasks_error(gemini: Start, ask: Ask) -> None:
    gemini(lambda request: error(403, "PERMISSION_DENIED", "not for you"))
    run = ask(agents.greeter)

    assert run.error is not None
    assert run.error[0] == "ClientError"
    assert "not for you" in run.error[1]


def test_an_answer_that_was_blocked_is_no_answer(gemini: Start, ask: Ask) -> None:
    gemini(lambda request: raw({"candidates": [{"finishReason": "SAFETY", "index": 0}]}))
    run = ask(agents.greeter)

    assert run.error is not None
    assert run.error[0] == "AgentAnswerError"
    assert "agent 'greeter' gave no answer: the model call of 'greeter' ended with SAFETY" in run.error[1]


def test_what_a_failed_run_wrote_before_is_kept(gemini: Start, ask: Ask) -> None:
    gemini(by_agent({"first": "one", "second": error(400, "INVALID_ARGUMENT", "no")}))
    run = ask(SequentialAgent(name="both", sub_agents=[named("first", output_key="a"), named("second", output_key="b")]))

    assert run.state == "failed"
    assert run.session_state == {"a": "one"}


def stop_me(**_: Any) -> None:
    os.kill(os.getpid(), signal.SIGTERM)  # what the supervisor sends when the task is marked in the UI


@pytest.mark.parametrize(
    ("agent", "limit"),
    [(named("slow", before_model_callback=stop_me), {}), (named("slow"), {"execution_timeout": timedelta(seconds=1)})],
    ids=["cancelled", "timed out"],
)
def test_a_task_that_ends_early_does_not_wait_for_the_model(gemini: Start, ask: Ask, agent: Any, limit: Any) -> None:
    gemini(lambda request: slow("too late", 120))
    run = ask(agent, **limit)

    assert (run.state, run.outputs) == ("failed", {})


def ticket() -> None:
    """Opens a ticket that a person answers."""


def pending() -> dict[str, str]:
    """Starts something that goes on."""
    return {"status": "started"}


def wipe() -> str:
    """Deletes everything."""
    return "gone"


@pytest.mark.parametrize(
    ("agent", "answers", "what"),
    [
        (
            named("desk", tools=[LongRunningFunctionTool(ticket)]),
            call("ticket"),
            "node desk@1 waits for the answer of the long-running tool 'ticket'",
        ),
        (
            named("desk", tools=[FunctionTool(wipe, require_confirmation=True)]),
            call("wipe"),
            "node desk@1 asks a person to confirm a tool call: 'wipe: ",
        ),
        (named("desk", mode="task"), "which city?", "node desk@1 is an agent in task mode that asks a person: 'which city?'"),
        (
            named("desk", sub_agents=[named("scout", mode="task")]),
            call("scout", {"request": "find"}),
            "is an agent in task mode that asks a person: 'which city?'",
        ),
    ],
    ids=["long-running tool", "confirmation", "task that asks", "delegated task that asks"],
)
def test_a_question_to_a_person_is_a_clear_error(gemini: Start, ask: Ask, agent: Any, answers: Any, what: str) -> None:
    gemini(by_agent({"scout": "which city?", "desk": answers}))
    run = ask(agent)

    assert run.error is not None
    assert run.error[0] == "HumanInputNotSupportedError"
    assert run.error[1].startswith("agent 'desk': node desk@1")
    assert what in run.error[1]


@pytest.mark.parametrize("kind", [SequentialAgent, ParallelAgent, LoopAgent])
def test_a_question_of_a_step_names_the_step(gemini: Start, ask: Ask, kind: Any) -> None:
    gemini(by_agent({"desk": call("ticket")}))
    run = ask(kind(name="steps", sub_agents=[named("desk", tools=[LongRunningFunctionTool(ticket)])]))

    assert run.error is not None
    assert run.error[1].startswith("agent 'steps': node desk waits for the answer of the long-running tool 'ticket'")


def test_a_long_running_tool_that_answers_at_once_is_no_question(gemini: Start, ask: Ask) -> None:
    gemini(
        lambda request: f"it is {request.function_responses[0]['response']}" if request.function_responses else call("pending")
    )

    assert ask(named("desk", tools=[LongRunningFunctionTool(pending)])).outputs["desk"] == ["it is {'status': 'started'}"]
