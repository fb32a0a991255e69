"""What an agent and its App bring along reaches ADK untouched, one test each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.context_cache_config import ContextCacheConfig
from google.adk.apps.app import App, EventsCompactionConfig
from google.adk.code_executors import UnsafeLocalCodeExecutor
from google.adk.models.llm_response import LlmResponse
from google.adk.planners import PlanReActPlanner
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from adk_airflow.testing import WorkflowRun
from tests.operators.agents import MODEL, Shop
from tests.servers.gemini import GeminiRequest, GeminiServer, call, error

Ask = Callable[..., WorkflowRun]
Start = Callable[[Callable[[GeminiRequest], Any]], GeminiServer]


def test_callbacks(gemini: Start, ask: Ask) -> None:
    called = []

    def before_agent(callback_context: Any) -> None:
        called.append("before_agent")
        callback_context.state["topic"] = "bees"

    def before_model(callback_context: Any, llm_request: Any) -> None:
        called.append("before_model")

    def after_model(callback_context: Any, llm_response: LlmResponse) -> LlmResponse | None:
        called.append("after_model")
        if llm_response.content is None or not (llm_response.content.parts or [types.Part()])[0].text:
            return None
        return LlmResponse(content=types.Content(role="model", parts=[types.Part(text="changed")]))

    def before_tool(tool: Any, args: dict[str, Any], tool_context: Any) -> None:
        called.append(f"before_tool {tool.name}")

    def after_tool(tool: Any, args: dict[str, Any], tool_context: Any, tool_response: Any) -> dict[str, Any]:
        called.append(f"after_tool {tool.name}")
        return {"price": 99}

    def after_agent(callback_context: Any) -> None:
        called.append("after_agent")

    server = gemini(lambda request: "told" if request.function_responses else call("price", {"item": "hive"}))
    agent = LlmAgent(
        name="shopper",
        model=MODEL,
        instruction="About {topic}.",
        tools=[Shop()],
        before_agent_callback=before_agent,
        before_model_callback=before_model,
        after_model_callback=after_model,
        before_tool_callback=before_tool,
        after_tool_callback=after_tool,
        after_agent_callback=after_agent,
    )

    assert ask(agent).outputs["shopper"] == ["changed"]
    model = ["before_model", "after_model"]
    assert called == ["before_agent", *model, "before_tool price", "after_tool price", *model, "after_agent"]
    assert "About bees." in server.requests[0].system
    assert server.requests[1].function_responses[0]["response"] == {"price": 99}


def test_a_planner(gemini: Start, ask: Ask) -> None:
    server = gemini(lambda request: "/*PLANNING*/ look it up /*FINAL_ANSWER*/ forty-two")
    run = ask(LlmAgent(name="thinker", model=MODEL, planner=PlanReActPlanner(), output_key="answer"))

    assert "/*PLANNING*/" in server.requests[0].system
    assert run.outputs["thinker"] == [run.session_state["answer"]]
    assert run.outputs["thinker"][0].strip() == "forty-two"


def test_a_code_executor(gemini: Start, ask: Ask) -> None:
    def script(request: GeminiRequest) -> str:
        return "The result is 42." if "42" in str(request.contents) else "```tool_code\nprint(6 * 7)\n```"

    server = gemini(script)
    run = ask(LlmAgent(name="coder", model=MODEL, code_executor=UnsafeLocalCodeExecutor()))

    assert run.outputs["coder"] == ["The result is 42."]
    assert len(server.requests) == 2


class Observer(BasePlugin):
    """Notes its callbacks and the configs that ADK runs with."""

    def __init__(self) -> None:
        super().__init__(name="observer")
        self.called: list[str] = []
        self.cache: Any = None

    async def before_run_callback(self, *, invocation_context: Any) -> None:
        self.called.append("before_run")
        self.cache = invocation_context.context_cache_config

    async def on_user_message_callback(self, *, invocation_context: Any, user_message: Any) -> Any:
        self.called.append("on_user_message")
        return types.Content(role="user", parts=[types.Part(text=user_message.parts[0].text.upper())])

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        self.called.append("before_model")

    async def after_run_callback(self, *, invocation_context: Any) -> None:
        self.called.append("after_run")

    async def close(self) -> None:
        self.called.append("close")


def test_the_plugins_and_the_cache_config_of_an_app(gemini: Start, ask: Ask) -> None:
    gemini(lambda request: f"you said {request.last_text}")
    observer, cache = Observer(), ContextCacheConfig(min_tokens=10_000, ttl_seconds=60)
    agent = LlmAgent(name="echo", model=MODEL)
    run = ask(App(name="observed", root_agent=agent, plugins=[observer], context_cache_config=cache))

    assert run.outputs["echo"] == ["you said HELLO"]
    assert observer.called == ["on_user_message", "before_run", "before_model", "after_run", "close"]
    assert observer.cache == cache


def test_the_compaction_config_of_an_app(gemini: Start, ask: Ask) -> None:
    server = gemini(lambda request: "a summary" if "ummar" in str(request.body) else "an answer")
    compaction = EventsCompactionConfig(compaction_interval=1, overlap_size=0)
    run = ask(App(name="compacted", root_agent=LlmAgent(name="echo", model=MODEL), events_compaction_config=compaction))

    assert run.outputs["echo"] == ["an answer"]
    assert len(server.requests) == 2


@pytest.mark.parametrize("fails", [False, True], ids=["when it succeeds", "when it fails"])
def test_an_agents_toolset_is_closed(gemini: Start, ask: Ask, fails: bool) -> None:
    def script(request: GeminiRequest) -> Any:
        if request.function_responses:
            return error(400, "INVALID_ARGUMENT", "no") if fails else "it costs 4"
        return call("price", {"item": "hive"})

    gemini(script)
    shop = Shop()
    run = ask(LlmAgent(name="shopper", model=MODEL, tools=[shop]), params={"customer": "Ada"})

    assert run.state == ("failed" if fails else "success")
    assert shop.log == ["opened for Ada", "price of hive", "closed"]
    assert run.session_state["last_item"] == "hive"
