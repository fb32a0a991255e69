"""What ends a task in Airflow ends the node in it: a time limit, a person's mark in the UI."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import signal
import threading
import time
from typing import Any

import pytest
from google.adk import Workflow
from google.adk.workflow import node

from adk_airflow import AdkDag
from adk_airflow.testing import run_dag, run_workflow
from tests.dag.nodes import show


@pytest.mark.parametrize("mode", ["tasks", "embedded"])
@pytest.mark.parametrize("blocks", [True, False])
def test_airflows_timeout_ends_a_node_that_waits(mode: str, blocks: bool) -> None:
    async def wait() -> str:
        await asyncio.sleep(60)
        return "late"

    def block() -> str:
        time.sleep(60)
        return "late"

    wf = Workflow(name="wf", edges=[("START", node(block if blocks else wait, name="wait"))])
    limit = {"execution_timeout": dt.timedelta(seconds=1)}
    began = time.monotonic()
    dag = AdkDag(wf, schedule=None, mode=mode, default_args=limit)
    run = run_dag(dag)

    assert run.state == "failed"
    assert time.monotonic() - began < 30
    if mode == "embedded":
        assert [(row["path"], row["status"]) for row in run.node_runs["wf"]] == [("wf@1/wait@1", "cancelled")]


@pytest.mark.parametrize("blocks", [True, False])
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, {"tail": ["upstream_failed"], "wait": ["failed"]}),
        ({"nodes": {"wait": {"mode": "embedded"}, "tail": {"mode": "embedded"}}}, {"wait_region": ["failed"]}),
        ({"mode": "embedded"}, {"wf": ["failed"]}),
    ],
)
def test_a_task_that_airflow_cancels_ends_at_once(
    arguments: dict[str, Any], expected: dict[str, list[str]], blocks: bool
) -> None:
    def cancel() -> None:
        os.kill(os.getpid(), signal.SIGTERM)  # what the supervisor sends when the task is marked in the UI

    async def wait() -> str:
        asyncio.get_running_loop().call_later(0.1, cancel)
        await asyncio.sleep(60)
        return "late"

    def block() -> str:
        threading.Timer(0.1, cancel).start()
        time.sleep(60)
        return "late"

    began = time.monotonic()
    run = run_workflow(
        Workflow(name="wf", edges=[("START", node(block if blocks else wait, name="wait"), show("tail"))]), **arguments
    )

    assert {name: states for name, states in run.task_states.items() if name != "workflow_result"} == expected
    assert time.monotonic() - began < 30
