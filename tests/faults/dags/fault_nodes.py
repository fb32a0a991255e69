"""Nodes that run often: loops, items of a batch, nodes that a node makes (airflow)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from airflow.sdk import Param
from fault_calls import begin, end, round_of
from google.adk import Context, Event
from google.adk.workflow import Workflow, node

from adk_airflow import AdkDag

COMMON: dict[str, Any] = {
    "schedule": None,
    "params": {"case": Param("none"), "input": Param("go"), "count": Param(200)},
    "default_args": {"retries": 12, "retry_delay": timedelta(seconds=0.1)},
}
STEPS = 40
CHILDREN = 10


def step(ctx: Context) -> Event:
    """One iteration; the fortieth is the last."""
    at = ctx.state.get("at", 0) + 1
    begin(ctx.state["case"], "loop", str(at))
    end(ctx.state["case"], "loop", str(at))
    return Event(output=at, route="again" if at < STEPS else "done", state={"at": at})


def finish(node_input: int) -> str:
    return f"ended after {node_input}"


def loop(name: str, **options: Any) -> AdkDag:
    body = node(step, name="step")
    edges = [("START", body, {"again": body, "done": node(finish, name="finish")})]
    return AdkDag(Workflow(name=name, edges=edges), dag_id=name, **options, **COMMON)


loop_dag = loop("fault_loop")
embedded_loop_dag = loop("fault_loop_embedded", mode="embedded")


def numbers(ctx: Context) -> list[int]:
    return list(range(int(ctx.state["count"])))


async def work(node_input: int, ctx: Context) -> int:
    """One item; four at once."""
    case, line = ctx.state["case"], f"item{node_input}"
    begin(case, line, "work")
    await asyncio.sleep(0.002)
    end(case, line, "work")
    return node_input + 1000 * round_of(case)


def total(node_input: list[int]) -> int:
    return sum(node_input)


def batch(name: str, size: int) -> AdkDag:
    each = node(work, name="each", parallel_worker=True, max_parallel_workers=4)
    edges = [("START", node(numbers, name="numbers"), each, node(total, name="total"))]
    return AdkDag(Workflow(name=name, edges=edges), dag_id=name, nodes={"each": {"batch_size": size}}, **COMMON)


batch_dag = batch("fault_batch", 200)
mapped_dag = batch("fault_mapped", 2)


async def child(node_input: int, ctx: Context) -> int:
    begin(ctx.state["case"], "children", str(node_input))
    end(ctx.state["case"], "children", str(node_input))
    return node_input * 3


child_node = node(child, name="child")


@node(name="parent", rerun_on_resume=True)
async def parent(ctx: Context) -> int:
    """Runs its children one after the other."""
    return sum([await ctx.run_node(child_node, number) for number in range(1, CHILDREN + 1)])


dynamic_dag = AdkDag(Workflow(name="dynamic", edges=[("START", parent)]), dag_id="fault_dynamic", **COMMON)
