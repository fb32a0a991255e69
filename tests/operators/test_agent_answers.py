"""Whose answer is AdkAgentOperator's: of agents with one name, side by side, as tools, and of a task that goes on asking."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from airflow.sdk import DAG, task
from google.adk.agents import BaseAgent, LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.events.event import Event
from google.adk.tools import LongRunningFunctionTool, exit_loop
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types
from pydantic import BaseModel

from adk_airflow import AdkAgentOperator, AdkToolOperator
from adk_airflow.testing import WorkflowRun, run_dag
from tests.operators.agents import MODEL, by_agent, named
from tests.servers.gemini import GeminiRequest, GeminiServer, call, raw, structured
from tests.servers.replies import Call, Reply

Ask = Callable[..., WorkflowRun]
Start = Callable[[Callable[[GeminiRequest], Any]], GeminiServer]


class Plan(BaseModel):
    steps: int = 1


class Review(BaseModel):
    verdict: str


PLAN, REVIEW = structured({"steps": 2}), structured({"verdict": "good"})


def worker(role: str, **kwargs: Any) -> LlmAgent:
    """An agent with a name that another one has, too."""
    return LlmAgent(name="worker", model=MODEL, description=role, instruction=f"You are {role}.", **kwargs)


def said(text: str) -> Callable[..., types.Content]:
    return lambda callback_context: types.Content(role="model", parts=[types.Part(text=text)])


def both(request: GeminiRequest) -> Any:
    return {"planner": PLAN, "critic": REVIEW}[next(role for role in ("planner", "critic") if role in request.system)]


def planner_and_critic(kind: Any) -> tuple[BaseAgent, BaseAgent]:
    return (
        kind(name="a", sub_agents=[worker("planner", output_schema=Plan)]),
        kind(name="b", sub_agents=[worker("critic", output_schema=Review)]),
    )


# Of agents that have the same name


@pytest.mark.parametrize("order", [1, -1], ids=["planner first", "critic first"])
def test_of_a_sequence_it_is_read_by_the_schema_of_the_one_that_spoke_last(gemini: Start, ask: Ask, order: int) -> None:
    gemini(both)
    run = ask(SequentialAgent(name="root", sub_agents=list(planner_and_critic(SequentialAgent))[::order]))

    assert run.outputs["root"] == [{"verdict": "good"} if order == 1 else {"steps": 2}]


def test_deep_in_a_tree(gemini: Start, ask: Ask) -> None:
    gemini(both)
    planner, critic = planner_and_critic(SequentialAgent)
    deep = SequentialAgent(name="deep", sub_agents=[LoopAgent(name="loop", max_iterations=2, sub_agents=[critic])])

    assert ask(SequentialAgent(name="root", sub_agents=[planner, deep])).outputs["root"] == [{"verdict": "good"}]


def test_side_by_side(gemini: Start, ask: Ask) -> None:
    gemini(both)
    run = ask(ParallelAgent(name="root", sub_agents=list(planner_and_critic(SequentialAgent))))

    assert run.outputs["root"] == [{"a": {"steps": 2}, "b": {"verdict": "good"}}]


def test_in_a_loop_it_is_the_last_round(gemini: Start, ask: Ask) -> None:
    gemini(both)
    run = ask(LoopAgent(name="root", max_iterations=2, sub_agents=list(planner_and_critic(SequentialAgent))))

    assert run.outputs["root"] == [{"verdict": "good"}]


def test_of_a_transfer(gemini: Start, ask: Ask) -> None:
    gemini(by_agent({"desk": call("transfer_to_agent", {"agent_name": "reviews"}), "planner": PLAN, "critic": REVIEW}))
    plans = SequentialAgent(name="plans", sub_agents=[worker("planner", output_schema=Plan)])
    reviews = SequentialAgent(name="reviews", sub_agents=[worker("critic", output_schema=Review)])

    assert ask(named("desk", sub_agents=[plans, reviews])).outputs["desk"] == [{"verdict": "good"}]


def test_of_an_agent_tool_with_the_name_of_its_caller(gemini: Start, ask: Ask) -> None:
    def caller(request: GeminiRequest) -> Any:
        return "reviewed" if request.function_responses else call("worker", {"request": "review"})

    gemini(by_agent({"caller": caller, "critic": REVIEW}))

    assert ask(worker("caller", tools=[AgentTool(worker("critic", output_schema=Review))])).outputs["worker"] == ["reviewed"]


def test_of_a_helper_with_the_name_of_one_that_comes_later(gemini: Start, ask: Ask) -> None:
    def boss(request: GeminiRequest) -> Any:
        if request.function_responses:
            return call("transfer_to_agent", {"agent_name": "reviews"}) if len(request.function_responses) == 1 else "?"
        return call("worker", {"request": "plan"})

    gemini(by_agent({"boss": boss, "planner": PLAN, "critic": REVIEW}))
    helper = worker("planner", output_schema=Plan, mode="single_turn")
    reviews = SequentialAgent(name="reviews", sub_agents=[worker("critic", output_schema=Review)])

    assert ask(named("boss", sub_agents=[helper, reviews])).outputs["boss"] == [{"verdict": "good"}]


def test_a_callbacks_words_are_those_of_its_agent(gemini: Start, ask: Ask) -> None:
    gemini(both)
    planner, _ = planner_and_critic(SequentialAgent)
    critic = worker("critic", output_schema=Review, after_agent_callback=said('{"verdict": "changed"}'))
    run = ask(SequentialAgent(name="root", sub_agents=[planner, SequentialAgent(name="b", sub_agents=[critic])]))

    assert run.outputs["root"] == [{"verdict": "changed"}]


# Of agents side by side


@pytest.mark.parametrize(
    "names",
    [("news", "news_local"), ("news_local", "news"), ("agent_1", "agent_10"), ("a", "both"), ("both", "a")],
    ids=" and ".join,
)
def test_each_answer_stands_under_its_own_name(gemini: Start, ask: Ask, names: tuple[str, str]) -> None:
    gemini(by_agent({name: f"from {name}" for name in names}))
    agents = ParallelAgent(name="both", sub_agents=[named(name) for name in names])

    assert ask(agents).outputs["both"] == [{name: f"from {name}" for name in names}]


def test_agents_side_by_side_in_agents_side_by_side(gemini: Start, ask: Ask) -> None:
    names = ("a", "b", "a_b", "d")
    gemini(by_agent({name: f"from {name}" for name in names}))
    a, b, c, d = map(named, names)
    inner = ParallelAgent(name="inner", sub_agents=[a, b])
    steps = SequentialAgent(name="inner_steps", sub_agents=[ParallelAgent(name="p", sub_agents=[c, d])])

    assert ask(ParallelAgent(name="p", sub_agents=[inner, steps])).outputs["p"] == [
        {"inner": {"a": "from a", "b": "from b"}, "inner_steps": {"a_b": "from a_b", "d": "from d"}}
    ]


def test_two_parallel_agents_with_one_name_one_after_the_other(gemini: Start, ask: Ask) -> None:
    gemini(lambda request: request.system.split("You are ")[1].split(".")[0])

    def step(name: str) -> SequentialAgent:
        sides = [SequentialAgent(name=side, sub_agents=[worker(f"{name} {side}")]) for side in ("left", "right")]
        return SequentialAgent(name=name, sub_agents=[ParallelAgent(name="sides", sub_agents=sides)])

    run = ask(SequentialAgent(name="root", sub_agents=[step("first"), step("second")]))

    assert run.outputs["root"] == [{"left": "second left", "right": "second right"}]


def test_the_one_that_comes_after_them_answers(gemini: Start, ask: Ask) -> None:
    """Also where ADK gives its event the branch of one of them: after a transfer."""
    gemini(
        by_agent(
            {
                "desk": call("transfer_to_agent", {"agent_name": "steps"}),
                "left": "one",
                "right": "two",
                "summariser": "one and two",
            }
        )
    )
    parallel = ParallelAgent(name="parallel", sub_agents=[named("left"), named("right")])
    steps = SequentialAgent(name="steps", sub_agents=[parallel, named("summariser")])

    assert ask(named("desk", sub_agents=[steps])).outputs["desk"] == ["one and two"]


@pytest.mark.parametrize("kind", [SequentialAgent, LoopAgent])
def test_when_the_one_after_them_says_nothing_it_is_theirs(gemini: Start, ask: Ask, kind: Any) -> None:
    gemini(by_agent({"left": "one", "right": "two", "judge": call("exit_loop")}))
    parallel = ParallelAgent(name="parallel", sub_agents=[named("left"), named("right")])

    run = ask(kind(name="root", sub_agents=[parallel, named("judge", tools=[exit_loop])]))

    assert run.outputs["root"] == [{"left": "one", "right": "two"}]


def test_of_a_transfer_to_them(gemini: Start, ask: Ask) -> None:
    gemini(by_agent({"desk": call("transfer_to_agent", {"agent_name": "parallel"}), "left": "one", "right": "two"}))
    parallel = ParallelAgent(name="parallel", sub_agents=[named("left"), named("right")])

    assert ask(named("desk", sub_agents=[parallel])).outputs["desk"] == [{"left": "one", "right": "two"}]


@pytest.mark.parametrize("callback", ["before_agent_callback", "after_agent_callback"])
@pytest.mark.parametrize("of_root", [True, False], ids=["of the root", "of the parallel agent"])
def test_what_a_callback_puts_in_their_place(gemini: Start, ask: Ask, callback: str, of_root: bool) -> None:
    gemini(by_agent({"left": "one", "right": "two"}))
    given = {callback: said("instead")}
    parallel = ParallelAgent(name="p", sub_agents=[named("left"), named("right")], **({} if of_root else given))

    assert ask(SequentialAgent(name="root", sub_agents=[parallel], **(given if of_root else {}))).outputs["root"] == ["instead"]


class Quiet(BaseAgent):
    """An agent without a model whose events name no branch, and maybe another author."""

    author: str = ""

    async def _run_async_impl(self, ctx: Any) -> AsyncIterator[Event]:
        yield Event(author=self.author or self.name, message=f"from {self.name}")


def test_agents_whose_events_name_no_branch(gemini: Start, ask: Ask) -> None:
    gemini(by_agent({"right": "two"}))
    parallel = ParallelAgent(name="both", sub_agents=[Quiet(name="left"), named("right"), Quiet(name="other", author="x")])

    assert ask(parallel).outputs["both"] == [{"left": "from left", "right": "two", "other": None}]


class Counts(BaseAgent):
    """Gives data as its output."""

    async def _run_async_impl(self, ctx: Any) -> AsyncIterator[Event]:
        yield Event(author=self.name, output={"by": self.name})


def test_data_that_an_agent_without_a_model_gives(ask: Ask) -> None:
    steps = SequentialAgent(name="steps", sub_agents=[Counts(name="first"), Counts(name="second")])

    assert ask(Counts(name="alone")).outputs["alone"] == [{"by": "alone"}]
    assert ask(steps).outputs["steps"] == [{"by": "second"}]


def test_two_of_one_name_side_by_side_cannot_share_a_dict(gemini: Start, ask: Ask) -> None:
    gemini(both)
    run = ask(ParallelAgent(name="root", sub_agents=[worker("planner"), worker("critic")]))

    assert run.error is not None
    assert run.error[0] == "AgentAnswerError"
    assert "two of them have the same name (worker, worker)" in run.error[1]


def test_a_call_that_was_cancelled_asks_nobody(gemini: Start, ask: Ask) -> None:
    """``ParallelAgent`` stops its other agents when one of them escalates."""
    calls = asyncio.Event()

    async def look_up() -> None:
        """Takes long."""
        calls.set()
        await asyncio.sleep(600)

    async def give_up(tool_context: ToolContext) -> None:
        """Stops the others."""
        await calls.wait()
        tool_context.actions.escalate = True
        tool_context.actions.skip_summarization = True

    gemini(by_agent({"writer": "written", "left": call("look_up"), "right": call("give_up")}))
    parallel = ParallelAgent(name="p", sub_agents=[named("left", tools=[look_up]), named("right", tools=[give_up])])
    run = ask(SequentialAgent(name="root", sub_agents=[parallel, named("writer")]))

    assert (run.error, run.outputs) == (None, {"root": ["written"]})


# Of agents that are called like tools, and of tasks


@pytest.mark.parametrize("schema", [None, Plan], ids=["text", "data"])
def test_a_task_whose_helper_answered_still_asks(gemini: Start, ask: Ask, schema: Any) -> None:
    def boss(request: GeminiRequest) -> Any:
        return "Which colour?" if request.function_responses else call("helper", {"request": "help"})

    gemini(by_agent({"boss": boss, "helper": PLAN}))
    helper = named("helper", mode="single_turn", output_schema=schema)
    run = ask(named("boss", mode="task", sub_agents=[helper]))

    assert run.error is not None
    assert run.error[0] == "HumanInputNotSupportedError"
    assert "node boss@1 is an agent in task mode that asks a person: 'Which colour?'" in run.error[1]


def test_a_task_whose_helper_finished_its_own_still_asks(gemini: Start, ask: Ask) -> None:
    def boss(request: GeminiRequest) -> Any:
        return "Which colour?" if request.function_responses else call("helper", {"request": "help"})

    gemini(by_agent({"boss": boss, "helper": call("finish_task", {"result": "helped"})}))
    run = ask(named("boss", mode="task", sub_agents=[named("helper", mode="task")]))

    assert run.error is not None
    assert run.error[0] == "HumanInputNotSupportedError"


def test_a_task_that_hands_over_is_not_finished(gemini: Start, ask: Ask) -> None:
    gemini(by_agent({"boss": call("transfer_to_agent", {"agent_name": "clerk"}), "clerk": "hello"}))
    run = ask(named("boss", mode="task", sub_agents=[named("clerk")]))

    assert run.error is not None
    assert run.error[0] == "HumanInputNotSupportedError"


@pytest.mark.parametrize("helped", [True, False])
def test_a_task_that_finishes(gemini: Start, ask: Ask, helped: bool) -> None:
    def boss(request: GeminiRequest) -> Any:
        if helped and not request.function_responses:
            return call("helper", {"request": "help"})
        return call("finish_task", {"steps": 3})

    gemini(by_agent({"boss": boss, "helper": "helped"}))
    run = ask(named("boss", mode="task", output_schema=Plan, sub_agents=[named("helper", mode="single_turn")]))

    assert run.outputs["boss"] == [{"steps": 3}]


def test_a_task_that_finishes_with_nothing(gemini: Start, ask: Ask) -> None:
    gemini(lambda request: Reply(parts=("One moment.", Call("finish_task", {"result": None}))))
    run = ask(named("boss", mode="task", output_schema=str | None))

    assert (run.error, run.outputs) == (None, {})


@pytest.mark.parametrize("around", ["tool", "sequence"])
def test_a_task_that_is_no_node_of_the_run_is_run_to_its_end(gemini: Start, ask: Ask, around: str) -> None:
    """As ADK does: whatever such an agent says, nobody is asked."""

    def boss(request: GeminiRequest) -> Any:
        return "done" if request.function_responses else call("helper", {"request": "help"})

    gemini(by_agent({"helper": "Which colour?", "boss": boss, "last": "done"}))
    helper = named("helper", mode="task")
    root = (
        named("boss", tools=[AgentTool(helper)])
        if around == "tool"
        else SequentialAgent(name="boss", sub_agents=[helper, named("last")])
    )

    assert ask(root).outputs["boss"] == ["done"]


def test_a_helper_that_asks(gemini: Start, ask: Ask) -> None:
    def approve() -> None:
        """A person approves."""

    def boss(request: GeminiRequest) -> Any:
        return "done" if request.function_responses else call("helper", {"request": "help"})

    gemini(by_agent({"boss": boss, "helper": call("approve")}))
    helper = named("helper", mode="single_turn", tools=[LongRunningFunctionTool(approve)])

    for mode in ("chat", "task"):
        run = ask(named("boss", mode=mode, sub_agents=[helper.clone()]))
        assert run.error is not None
        assert run.error[0] == "HumanInputNotSupportedError"
        assert "approve" in run.error[1]


def test_what_a_helper_said_is_not_the_answer_of_a_caller_that_says_nothing(gemini: Start, ask: Ask) -> None:
    def boss(request: GeminiRequest) -> Any:
        return raw({"candidates": [{"finishReason": "STOP", "index": 0}]}) if request.function_responses else call(
            "helper", {"request": "help"}
        )  # fmt: skip

    gemini(by_agent({"boss": boss, "helper": "helped"}))
    run = ask(named("boss", sub_agents=[named("helper", mode="single_turn")]))

    assert run.outputs.get("boss", [None]) == [None]


# Of mapped tasks


class Echo(BaseAgent):
    """Says what it is asked, but to one question nothing."""

    async def _run_async_impl(self, ctx: Any) -> AsyncIterator[Event]:
        if (words := ctx.user_content.parts[0].text) != "nothing":
            yield Event(author=self.name, message=words)


def tool(value: str) -> str | None:
    return None if value == "nothing" else value


def mapped_operator(prompts: list[str]) -> Any:
    return AdkAgentOperator.partial(task_id="mapped", agent=Echo(name="echo")).expand(prompt=prompts).output


def mapped_decorator(prompts: list[str]) -> Any:
    @task.adk_agent(agent=Echo(name="echo"))
    def mapped(prompt: str) -> str:
        return prompt

    return mapped.expand(prompt=prompts)


def mapped_tool(prompts: list[str]) -> Any:
    arguments = [{"value": prompt} for prompt in prompts]
    return AdkToolOperator.partial(task_id="mapped", tool=tool).expand(arguments=arguments).output


@pytest.mark.parametrize("mapped", [mapped_operator, mapped_decorator, mapped_tool])
def test_each_answer_keeps_its_place_in_the_list(mapped: Callable[[list[str]], Any]) -> None:
    """Airflow leaves a None out of what mapped tasks return; whoever pairs answers with questions would be misled."""
    seen: dict[str, Any] = {}

    @task
    def whole(answers: Any) -> None:
        seen["whole"] = list(answers)

    @task
    def each(answer: Any, ti: Any) -> None:
        seen[ti.map_index] = answer

    with DAG("places", schedule=None) as dag:
        answers = mapped(["one", "nothing", "three"])
        whole(answers)
        each.expand(answer=answers)

    assert run_dag(dag).state == "success"
    assert seen == {"whole": ["one", None, "three"], 0: "one", 1: None, 2: "three"}


# What it holds


class Item(BaseModel):
    name: str
    quantity: int = 1
    note: str | None = None


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (Item, {"name": "tea", "quantity": "3"}),
        (Item, {"name": "tea", "note": None}),
        (list[Item], [{"name": "tea"}, {"name": "milk", "quantity": "2"}]),
        (list[str], ["tea"]),
    ],
    ids=["coerced", "defaults", "list of models", "list of text"],
)
def test_data_is_what_adk_keeps_as_output_key(gemini: Start, ask: Ask, schema: Any, text: Any) -> None:
    gemini(lambda request: json.dumps(text))
    run = ask(LlmAgent(name="clerk", model=MODEL, output_schema=schema, output_key="kept"))

    assert run.outputs["clerk"] == [run.session_state["kept"]]
