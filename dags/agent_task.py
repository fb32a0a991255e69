"""Sorts tickets with an ADK agent, one mapped task each, between ordinary tasks.

The agent is plain ADK, in ``adk_workflows/triage.py``, and is imported in its task only. It needs a Gemini key: in the worker's
environment (``GOOGLE_API_KEY``), or in an Airflow connection that ``llm_conn_id`` names.
"""

from __future__ import annotations

from typing import Any

import pendulum
from airflow.sdk import DAG, Param, task

from adk_airflow import AdkAgentOperator

TICKETS = [
    "I was charged twice for order 1107. Please refund me today.",
    "The parcel has been in Leipzig for a week now.",
    "The app closes as soon as I open the map.",
]

with DAG(
    "agent_task",
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    tags=["adk", "agent"],
    params={"tickets": Param(TICKETS, type="array", items={"type": "string"}, title="Tickets", description="One per line.")},
) as dag:

    @task
    def tickets(params: dict[str, Any]) -> list[str]:
        """The tickets of this run."""
        return list(params["tickets"])

    triage = AdkAgentOperator.partial(task_id="triage", agent="adk_workflows.triage:root_agent").expand(prompt=tickets())

    @task
    def by_team(answers: list[dict[str, Any]]) -> dict[str, list[str]]:
        """The summaries per team, the urgent ones first."""
        found: dict[str, list[str]] = {}
        for answer in sorted(answers, key=lambda answer: not answer["urgent"]):
            found.setdefault(answer["team"], []).append(("URGENT: " if answer["urgent"] else "") + answer["summary"])
        return found

    by_team(triage.output)
