"""The example DAGs of the operators."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from adk_airflow.testing import run_dag
from tests.servers.gemini import GeminiRequest, GeminiServer, structured

DAGS = Path(__file__).parents[2] / "dags"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], DAG]:
    """Loads an example as Airflow finds it: with the DAGs folder at the end of the path."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(DAGS)])

    def of(name: str) -> DAG:
        found: DAG = importlib.import_module(name).dag
        return found

    return of


def sort_ticket(request: GeminiRequest) -> Any:
    text = request.last_text
    team = "billing" if "charged" in text else "delivery" if "parcel" in text else "technology"
    return structured({"team": team, "urgent": "today" in text, "summary": text.split(".")[0]})


def test_agent_task(load: Callable[[str], DAG], gemini: Callable[..., GeminiServer]) -> None:
    server = gemini(sort_ticket)
    run = run_dag(load("agent_task"))

    assert run.state == "success"
    assert run.task_states == {"tickets": ["success"], "triage": ["success"] * 3, "by_team": ["success"]}
    assert sorted(answer["team"] for answer in run.outputs["triage"]) == ["billing", "delivery", "technology"]
    assert [answer["urgent"] for answer in run.outputs["triage"] if answer["team"] == "billing"] == [True]
    assert all(request.response_schema for request in server.requests)


def test_tool_task(load: Callable[[str], DAG]) -> None:
    run = run_dag(load("tool_task"), conf={"amounts": [10, 90], "target": "JPY"})

    assert run.task_states == {"total": ["success"], "in_target": ["success"], "and_back": ["success"]}
    assert run.outputs["convert"] == [{"amount": 16900.0, "currency": "JPY"}, {"amount": 100.0, "currency": "EUR"}]
    assert run.session_state["converted"] == ["16900.0 JPY"]


@pytest.mark.parametrize("name", ["agent_task", "tool_task"])
def test_the_example_is_parsed_without_its_agent_or_tool(load: Callable[[str], DAG], name: str) -> None:
    for module in ("adk_workflows.triage", "adk_workflows.rates"):
        sys.modules.pop(module, None)
    sys.modules.pop(name, None)

    assert load(name).dag_id == name
    assert not {"adk_workflows.triage", "adk_workflows.rates"} & set(sys.modules)
