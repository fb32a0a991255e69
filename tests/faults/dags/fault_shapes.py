"""All ways in which agents call each other (airflow)."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param
from fault_calls import begin, end
from google.adk import Context, Event
from google.adk.agents import Agent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.tools import AgentTool, ToolContext
from google.adk.workflow import Workflow, node
from google.genai import types

from adk_airflow import AdkAgentOperator, AdkDag

COMMON: dict[str, Any] = {
    "schedule": None,
    "params": {"case": Param("none"), "input": Param("Look all numbers up.")},
    "default_args": {"retries": 20, "retry_delay": timedelta(seconds=0.1)},
}


async def look_up(number: int, line: str, tool_context: ToolContext) -> dict[str, str]:
    """Looks a number up: with another result each time, kept in the state and in an artifact."""
    case = tool_context.state["case"]
    begin(case, line, f"T{number}")
    value = uuid.uuid4().hex
    tool_context.state[f"{line}_{number}"] = value
    await tool_context.save_artifact(f"{line}-{number}.txt", types.Part.from_text(text=value))
    end(case, line, f"T{number}")
    return {"value": value}


def agent(line: str, plan: str, **options: Any) -> Agent:
    instruction = f"case={{case}} line={line} plan={plan}"
    name = line.rstrip("#")
    tools = [look_up, *options.pop("tools", [])]
    return Agent(name=name, model="gemini-2.5-flash", instruction=instruction, tools=tools, **options)


def asking(dag_id: str, asked: Any) -> DAG:
    with DAG(dag_id, **COMMON) as dag:
        AdkAgentOperator(task_id="ask", agent=asked, prompt="{{ params.input }}")
    return dag


def workflow(dag_id: str, *edges: Any, **options: Any) -> AdkDag:
    return AdkDag(Workflow(name=dag_id.removeprefix("fault_"), edges=list(edges)), dag_id=dag_id, **options, **COMMON)


several = asking("fault_several_calls", agent("several", "T1+T2+T3,T4"))
tool = AgentTool(agent("helper", "T1,T2"))
agent_tool = asking("fault_agent_tool", agent("asker", "helper(),T1", tools=[tool]))
transfer = asking("fault_transfer", agent("router", ">clerk", sub_agents=[agent("clerk", "T1,T2")]))
sequence = asking("fault_sequence", SequentialAgent(name="sequence", sub_agents=[agent("first", "T1"), agent("then", "T1")]))
parallel = asking(
    "fault_parallel", ParallelAgent(name="parallel", sub_agents=[agent("here", "T1,T2"), agent("there", "T1,T2")])
)
loop = asking("fault_loop_agent", LoopAgent(name="again", max_iterations=3, sub_agents=[agent("turning", "T1,T2")]))


def three() -> list[str]:
    return ["item 1", "item 2", "item 3"]


def collect(node_input: list[str]) -> str:
    return " | ".join(map(str, node_input))


items = workflow(
    "fault_agent_items",
    ("START", node(three, name="three"), node(agent("item#", "T1"), name="each", parallel_worker=True), node(collect)),
    nodes={"each": {"batch_size": 3}},
)


def turn(ctx: Context) -> Event:
    at = ctx.state.get("at", 0) + 1
    return Event(output=f"turn {at}", route="on" if at <= 3 else "done", state={"at": at})


def ended(node_input: str) -> str:
    return f"ended at {node_input}"


def agent_loop(dag_id: str, **options: Any) -> AdkDag:
    turning, asked = node(turn, name="begin"), agent("turn#", "T1")
    return workflow(dag_id, ("START", turning, {"on": asked, "done": node(ended, name="ended")}), (asked, turning), **options)


region = agent_loop("fault_agent_loop")
embedded = agent_loop("fault_agent_loop_embedded", mode="embedded")
child = agent("child#", "T1")


@node(name="one_by_one", rerun_on_resume=True)
async def one_by_one(ctx: Context) -> str:
    return " | ".join([str(await ctx.run_node(child, f"child {at}")) for at in (1, 2, 3)])


@node(name="all_at_once", rerun_on_resume=True)
async def all_at_once(ctx: Context) -> str:
    return " | ".join(map(str, await asyncio.gather(*(ctx.run_node(child, f"child {at}") for at in (1, 2, 3)))))


dynamic = workflow("fault_agent_children", ("START", one_by_one))
gathered = workflow("fault_agent_gathered", ("START", all_at_once))
nested = workflow(
    "fault_nested", ("START", Workflow(name="inner", edges=[("START", agent("inside", "T1"), agent("after", "T1"))]))
)
nested_embedded = workflow(
    "fault_nested_embedded",
    ("START", Workflow(name="inner", edges=[("START", agent("inside", "T1"), agent("after", "T1"))])),
    mode="embedded",
)
