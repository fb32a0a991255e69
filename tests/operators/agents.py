"""Agents and tools that the tests name by reference, so that they are imported in the task."""

from __future__ import annotations

from typing import Any

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool
from google.adk.workflow import START, Workflow

MODEL = "gemini-2.5-flash"

greeter = LlmAgent(name="greeter", model=MODEL, instruction="Greet in a {tone?} tone.", output_key="greeting")
app = App(name="greetings", root_agent=greeter)


def make_greeter() -> LlmAgent:
    return LlmAgent(name="made", model=MODEL)


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
