"""The example DAGs of the operators."""

from __future__ import annotations

import importlib
import json
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from adk_airflow.testing import run_dag
from tests.servers.gemini import GeminiRequest, GeminiServer, call, structured, text

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
    ticket = request.last_text
    team = "billing" if "charged" in ticket else "delivery" if "parcel" in ticket else "technology"
    return structured({"team": team, "urgent": "today" in ticket, "summary": ticket.split(".")[0]})


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


def test_sql_analyst(
    load: Callable[[str], DAG], gemini: Callable[..., GeminiServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow's own SQL tools, which read the connection on the agent's event loop."""
    shop = tmp_path / "shop.db"
    with sqlite3.connect(shop) as database:
        database.execute("CREATE TABLE orders (customer TEXT, total REAL)")
        database.executemany("INSERT INTO orders VALUES (?, ?)", [("Ada", 12.5), ("Grace", 99.0), ("Ada", 7.0)])
        database.execute("CREATE TABLE salaries (name TEXT)")
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps({"conn_type": "sqlite", "host": str(shop)}))
    steps = [
        call("get_schema", {"table_name": "orders"}),
        call("query", {"sql": "SELECT name FROM salaries"}),
        call("query", {"sql": "SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer ORDER BY n DESC"}),
    ]

    def analyst(request: GeminiRequest) -> Any:
        done = sum(1 for content in request.contents for part in content["parts"] if "functionResponse" in part)
        return steps[done] if done < len(steps) else text(f"From the query: {request.function_responses[0]['response']}")

    server = gemini(analyst)
    run = run_dag(load("sql_analyst"), conf={"question": "Who orders most?"})

    assert run.state == "success"
    assert server.requests[0].last_text == "Who orders most?"
    assert {"list_tables", "get_schema", "query", "check_query"} <= set(server.requests[0].tools)
    answers = [request.function_responses[0]["response"] for request in server.requests[1:]]
    assert "total" in answers[0]["result"]
    assert "salaries" in answers[1]["error"]
    assert "Ada" in run.outputs["sql_analyst"][0]
    assert "2" in run.outputs["sql_analyst"][0]


def test_beside_other_tasks(load: Callable[[str], DAG], gemini: Callable[..., GeminiServer]) -> None:
    server = gemini(sort_ticket)
    run = run_dag(load("beside_other_tasks"), conf={"text": "my  parcel is somewhere in Leipzig", "longest": 20, "ask": True})

    assert run.state == "success"
    assert run.task_states["find_longest.measure.run"] == ["success"] * 6
    assert run.outputs["find_longest.longest_word"] == ["somewhere"]
    assert run.outputs["shorten_text"] == [{"text": "my parcel is", "rounds": 3}]
    assert [row["node"] for row in run.node_runs["shorten"]].count("shorten") == 3
    assert [request.last_text for request in server.requests] == ["my parcel is (about somewhere)"]
    assert run.outputs["triage"][0]["team"] == "delivery"

    quiet = run_dag(load("beside_other_tasks"), conf={"ask": False})
    assert (quiet.state, quiet.task_states["triage"]) == ("success", ["skipped"])


@pytest.mark.parametrize("name", ["agent_task", "tool_task", "sql_analyst"])
def test_the_example_is_parsed_without_its_agent_or_tool(load: Callable[[str], DAG], name: str) -> None:
    for module in ("adk_workflows.triage", "adk_workflows.rates", "adk_workflows.sql_analyst"):
        sys.modules.pop(module, None)
    sys.modules.pop(name, None)

    assert load(name).dag_id == name
    assert not {"adk_workflows.triage", "adk_workflows.rates", "adk_workflows.sql_analyst"} & set(sys.modules)
