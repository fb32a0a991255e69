"""Agents and tools that the tests name by reference, so that they are imported in the task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool
from google.adk.workflow import START, Workflow

from tests.servers.gemini import GeminiRequest

MODEL = "gemini-2.5-flash"

greeter = LlmAgent(name="greeter", model=MODEL, instruction="Greet in a {tone?} tone.", output_key="greeting")
app = App(name="greetings", root_agent=greeter)


def make_greeter() -> LlmAgent:
    return LlmAgent(name="made", model=MODEL)


def named(name: str, **kwargs: Any) -> LlmAgent:
    return LlmAgent(name=name, model=MODEL, description=name, instruction=f"You are {name}.", **kwargs)


def by_agent(answers: dict[str, Any]) -> Callable[[GeminiRequest], Any]:
    """Answers each agent, known by its instruction, with its own words, or with what a function makes of its request."""

    def script(request: GeminiRequest) -> Any:
        name = next(name for name in answers if f"You are {name}." in request.system)
        return answers[name](request) if callable(answers[name]) else answers[name]

    return script


def nothing() -> None:
    """Does nothing."""


workflow = Workflow(name="a_workflow", edges=[(START, nothing)])


def add(a: int, b: int) -> dict[str, int]:
    """Adds two numbers."""
    return {"sum": a + b}


class Shop(BaseToolset):
    """A toolset that notes what becomes of it."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.log: list[str] = []

    async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
        self.log.append(f"opened for {readonly_context.state.get('customer', 'nobody')}")
        return [FunctionTool(self.price), FunctionTool(self.broken), FunctionTool(self.slow)]

    async def price(self, item: str, tool_context: Any) -> dict[str, Any]:
        """The price of an item."""
        self.log.append(f"price of {item}")
        tool_context.state["last_item"] = item
        return {"item": item, "price": len(item)}

    async def broken(self) -> None:
        """Fails."""
        raise ConnectionError("the shop is closed")

    async def slow(self) -> None:
        """Takes a minute."""
        import asyncio

        self.log.append("slow started")
        await asyncio.sleep(60)

    async def close(self) -> None:
        self.log.append("closed")


shops: list[Shop] = []


def open_shop() -> Shop:
    shops.append(Shop())
    return shops[-1]


class Counter(BaseAgent):
    """An agent without a model."""

    async def _run_async_impl(self, ctx: Any) -> Any:
        from google.adk.events.event import Event
        from google.adk.events.event_actions import EventActions

        seen = ctx.session.state.get("seen", 0) + 1
        yield Event(author=self.name, message=f"seen {seen}", actions=EventActions(state_delta={"seen": seen}))
