"""The example DAG with two connections: each agent uses its own, in its task only, and no key is left anywhere."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.models.xcom import XComModel
from airflow.sdk import DAG
from airflow.utils.session import create_session
from sqlalchemy import select

from adk_airflow.testing import WorkflowRun, run_dag
from tests.servers.gemini import GeminiRequest, GeminiServer, error, structured

pytest.importorskip(
    "adk_airflow_google_genai", reason="the provider google_genai is not installed: pip install adk-airflow-google-genai"
)

DAGS = Path(__file__).parents[2] / "dags"
KEYS = {"google_genai_default": "key-of-the-writer-0123456789", "google_genai_editor": "key-of-the-editor-0123456789"}
RELEASE = {"headline": "Free buns", "text": "A bakery opens."}


@pytest.fixture(scope="module")
def dag() -> DAG:
    """The DAG as Airflow finds it: with the DAGs folder at the end of the path."""
    sys.path.append(str(DAGS))
    try:
        import gemini_connection

        found: DAG = gemini_connection.dag
        return found
    finally:
        sys.path.remove(str(DAGS))


@pytest.fixture
def run(dag: DAG, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[WorkflowRun, list[GeminiRequest]]]:
    """Runs the DAG with both connections leading to a server, whose keys are `KEYS`."""

    def script(request: GeminiRequest) -> Any:
        if request.api_key not in KEYS.values():
            return error(403, "PERMISSION_DENIED", f"Consumer 'api_key:{request.api_key}' has been suspended.")
        return structured(RELEASE) if request.response_schema else "A long release."

    def run_with(**keys: str) -> tuple[WorkflowRun, list[GeminiRequest]]:
        monkeypatch.setenv("GOOGLE_API_KEY", "key-of-the-environment")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        with GeminiServer(script) as server:
            for conn_id, key in {**KEYS, **keys}.items():
                connection = {"conn_type": "google_genai", "password": key, "host": server.url}
                monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(connection))
            return run_dag(dag, conf={"input": "We open a bakery."}), server.requests

    return run_with


def stored(run: WorkflowRun) -> str:
    """Everything that the run left in Airflow's XComs."""
    with create_session() as session:
        rows = session.scalars(select(XComModel).where(XComModel.run_id == run.run_id)).all()
        assert rows
        return " ".join(str(row.value) for row in rows)


def test_each_agent_uses_its_own_connection(run, capfd) -> None:
    result, requests = run()
    assert result.error is None
    assert result.output == RELEASE
    assert [(request.model, request.api_key) for request in requests] == [
        ("gemini-2.5-flash", KEYS["google_genai_default"]),
        ("gemini-2.5-pro", KEYS["google_genai_editor"]),
    ]
    shown = f"{result!r} {stored(result)} {capfd.readouterr()}"
    assert not [key for key in KEYS.values() if key in shown]


def test_a_wrong_key_is_one_error_that_names_the_connection_and_never_the_key(run, capfd) -> None:
    wrong = "wrong-key-0123456789"
    result, requests = run(google_genai_editor=wrong)
    assert result.state == "failed"
    assert result.task_states == {"writer": ["success"], "editor": ["failed"]}
    kind, message = result.error
    assert kind == "GoogleGenAIConnectionError"
    assert message.startswith("Connection 'google_genai_editor': Google refuses the API key (403 PERMISSION_DENIED")
    assert [request.api_key for request in requests] == [KEYS["google_genai_default"], wrong]
    assert wrong not in f"{result!r} {stored(result)} {capfd.readouterr()}"
