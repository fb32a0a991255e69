"""Tasks that write to artifacts, memory and sessions, some of them after their supervisor was lost (airflow)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param
from fault_calls import begin, end, loses_its_supervisor, write
from google.adk import Context, Event
from google.adk.agents import Agent
from google.adk.tools import ToolContext
from google.adk.workflow import Workflow, node
from google.genai import types

from adk_airflow import AdkAgentOperator, AdkDag

LATE, SIZE = "LATEWORDS", 200_000
PARAMS = {"case": Param("none"), "input": Param("Look all numbers up.")}


def content(words: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part.from_text(text=words)])


async def tried(case: str, what: str, work: Any) -> None:
    """Writes down how an attempt to write ended."""
    try:
        await work
    except Exception as error:
        write(case, "refused", "late", f"{what}: {type(error).__name__}: {error}")
        raise
    write(case, "written", "late", what)


async def save(ctx: Context) -> str:
    """Saves and remembers the same whether it is in time or late."""
    case = ctx.state["case"]
    begin(case, "save", "work")
    words = LATE if loses_its_supervisor(case, "save", "work") else "in time"
    failed = []
    for what, work in {
        "artifact": ctx.save_artifact("report.txt", types.Part.from_text(text=words)),
        "memory": ctx.add_events_to_memory(events=[Event(author="save", content=content(words))]),
    }.items():
        try:
            await tried(case, what, work)
        except Exception:
            failed.append(what)
    end(case, "save", "work")
    return f"{words}, not written: {failed}"


COMMON: dict[str, Any] = {
    "schedule": None,
    "params": PARAMS,
    "default_args": {"retries": 2, "retry_delay": timedelta(seconds=0.1)},
}
late_dag = AdkDag(Workflow(name="late", edges=[("START", node(save, name="save"))]), dag_id="fault_late", **COMMON)


def looking(saves: bool) -> Any:
    async def look_up(number: int, line: str, tool_context: ToolContext) -> dict[str, str]:
        """Looks a number up."""
        case = tool_context.state["case"]
        begin(case, line, f"T{number}")
        words = LATE if loses_its_supervisor(case, line, f"T{number}") else f"number {number}"
        try:
            if saves:
                await tool_context.save_artifact("big.bin", types.Part.from_bytes(data=bytes(SIZE), mime_type="x/y"))
        except Exception:
            write(case, "fail", line, f"T{number}")
            raise
        end(case, line, f"T{number}")
        return {"value": words}

    return look_up


def agent(name: str, steps: int, *, saves: bool = False) -> Agent:
    instruction = f"case={{case}} line={name} plan={','.join(f'T{at}' for at in range(1, steps + 1))}"
    return Agent(name=name, model="gemini-2.5-flash", instruction=instruction, tools=[looking(saves)])


with DAG("fault_session", **COMMON) as session_dag:
    AdkAgentOperator(task_id="ask", agent=agent("kept", 1), prompt="{{ params.input }}", session_id="{{ params.case }}")

# The delay is the time in which the cause of the first failure goes away.
SLOW = {**COMMON, "default_args": {"retries": 2, "retry_delay": timedelta(seconds=15)}}
with DAG("fault_store", **SLOW) as store_dag:
    AdkAgentOperator(task_id="ask", agent=agent("saving", 2, saves=True), prompt="{{ params.input }}")
with DAG("fault_no_store", **SLOW) as no_store_dag:
    AdkAgentOperator(task_id="ask", agent=agent("plain", 2), prompt="{{ params.input }}")
