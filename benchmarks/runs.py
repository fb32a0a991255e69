"""What a whole workflow in one task costs, beside ADK in the same process and a task that does nothing."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from typing import Any

from benchmarks.measure import Row, alternate

ITERATIONS = 1000
NODES = 50


def rows(rounds: int) -> list[Row]:
    """A loop of 1,000 iterations, and a chain of 50 nodes."""
    from adk_airflow.testing import use_airflow_home

    with tempfile.TemporaryDirectory(prefix="bench-") as home:
        use_airflow_home(home)
        against = "ADK in-process plus one plain task"
        found = []
        for name, make, at_most in (
            (f"loop of {ITERATIONS:,} iterations, embedded", loop, 1.3),
            (f"whole workflow of {NODES} nodes in one task", chain, 1.15),
        ):
            seconds = alternate({"ours": lambda make=make: _in_a_task(make), "adk": lambda make=make: _in_adk(make)}, rounds)  # type: ignore[misc]
            found.append(Row(name, against, "s", seconds["ours"], seconds["adk"], at_most))
        return found


def loop() -> Any:
    """A node that triggers itself."""
    from google.adk import Context, Event
    from google.adk.workflow import Workflow, node

    def step(ctx: Context) -> Event:
        turns = ctx.state.get("turns", 0) + 1
        return Event(output=turns, route="again" if turns < ITERATIONS else "done", state={"turns": turns})

    turn = node(step, name="turn")
    return Workflow(name="loop", edges=[("START", turn, {"again": turn, "done": node(lambda: "ended", name="end")})])


def chain() -> Any:
    """Nodes that hand on what they are given."""
    from google.adk.workflow import Workflow, node

    def step(node_input: Any) -> str:
        return "done"

    return Workflow(name="chain", edges=[("START", *(node(step, name=f"step_{at}") for at in range(NODES)))])


def _in_a_task(make: Callable[[], Any]) -> float:
    from adk_airflow.testing import run_workflow

    workflow = make()
    began = time.perf_counter()
    run = run_workflow(workflow, mode="embedded")
    assert run.state == "success", run.error
    return time.perf_counter() - began


def _in_adk(make: Callable[[], Any]) -> float:
    from airflow.sdk import DAG, task

    from adk_airflow.testing import run_dag

    with DAG("plain", schedule=None) as dag:
        task(lambda: "done", task_id="plain")()
    workflow = make()
    began = time.perf_counter()
    asyncio.run(_adk(workflow))
    run_dag(dag)
    return time.perf_counter() - began


async def _adk(workflow: Any) -> None:
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    runner = InMemoryRunner(node=workflow, app_name="app")
    await runner.session_service.create_session(app_name="app", user_id="u", session_id="s")
    message = types.Content(role="user", parts=[types.Part(text="go")])
    async for _ in runner.run_async(user_id="u", session_id="s", new_message=message):
        pass
    await runner.close()
