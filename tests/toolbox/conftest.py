"""Connections to the real Toolbox server, a Gemini server that answers from a script, and a look at what stays open."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from google.adk.workflow import Workflow

from adk_airflow.testing import WorkflowRun, run_workflow
from tests.servers.fixtures import gemini  # noqa: F401
from tests.servers.toolbox import toolbox  # noqa: F401


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes an Airflow connection of the type `mcp_toolbox`."""

    def make(conn_id: str, **fields: Any) -> None:
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps({"conn_type": "mcp_toolbox", **fields}))

    return make


@pytest.fixture
def run_until() -> Callable[[Any, Callable[[], bool]], WorkflowRun]:
    """Runs a node and cancels it when a condition holds, as ADK does when a node beside it fails."""

    def run(step: Any, holds: Callable[[], bool], given: Any = "") -> WorkflowRun:
        async def alarm() -> None:
            while not holds():
                await asyncio.sleep(0.02)
            raise InterruptedError("the alarm")

        workflow = Workflow(name="cut_short", edges=[("START", step), ("START", alarm)])
        run = run_workflow(workflow, input=given, mode="embedded")
        assert (run.state, run.error) == ("failed", ("InterruptedError", "the alarm"))
        return run

    return run
