"""A workflow with every kind of node, and an agent and a tool for tasks of their own: what a task may have to import."""

from __future__ import annotations

from typing import Any

from google.adk import Agent, Context, Event
from google.adk.tools import FunctionTool
from google.adk.workflow import JoinNode, RetryConfig, Workflow, node
from google.genai import types
from pydantic import BaseModel


class Place(BaseModel):
    name: str


def weather(city: str) -> dict[str, str]:
    """The weather in a city."""
    return {"weather": f"rain in {city}"}


async def first(ctx: Context, node_input: Any) -> Event:
    await ctx.save_artifact("note.txt", types.Part(text="kept"))
    await ctx.load_artifact("note.txt")
    await ctx.search_memory("anything")
    ctx.state["place"] = Place(name="Oslo")
    return Event(output=["a", "b"], route="on")


def each(node_input: str) -> str:
    return node_input.upper()


def again(ctx: Context, node_input: Any) -> Event:
    ctx.state["turns"] = ctx.state.get("turns", 0) + 1
    return Event(output=node_input, route="again" if ctx.state["turns"] < 2 else "done")


async def dynamic(ctx: Context, node_input: Any) -> Any:
    return await ctx.run_node(node(each, name="inside"), "x")


def end(node_input: Any) -> str:
    return "ended"


def never(node_input: Any) -> None:
    raise AssertionError("the other route was taken")


def build() -> Workflow:
    start, workers = node(first, name="first"), node(each, name="workers", parallel_worker=True, max_parallel_workers=2)
    turn, meet = node(again, name="turn", retry_config=RetryConfig(max_attempts=2)), JoinNode(name="meet")
    tool = node(FunctionTool(weather), name="tool")
    asked = Agent(name="asked", model="gemini-2.5-flash", instruction="Ask for the weather.", tools=[weather])
    place = Agent(name="place", model="gemini-2.5-flash", instruction="Name a place.", output_schema=Place)
    nested = Workflow(name="nested", edges=[("START", node(each, name="inner"))], input_schema=str)
    return Workflow(
        name="imports",
        edges=[
            ("START", start, {"on": workers, "off": node(never, name="never")}),
            (workers, meet),
            ("START", node(lambda: {"city": "Oslo"}, name="city"), tool, meet),
            ("START", asked, place, meet),
            ("START", node(lambda: "text", name="word"), nested, meet),
            (meet, node(dynamic, name="dynamic", rerun_on_resume=True), turn),
            (turn, {"again": turn, "done": node(end, name="end")}),
        ],
    )


root_agent = build()
agent = Agent(name="alone", model="gemini-2.5-flash", instruction="Ask for the weather.", tools=[weather])
tool = FunctionTool(weather)
