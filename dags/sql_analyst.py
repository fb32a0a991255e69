"""Asks a database in words, every morning: an ADK agent with Airflow's SQL tools.

The agent is in ``adk_workflows/sql_analyst.py`` and is imported in its task only. It needs
``apache-airflow-providers-common-ai[common-sql,sql]``, a connection ``shop`` to a database with a table ``orders``, and a
Gemini key as ``agent_task.py`` does.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import DAG, Param

from adk_airflow import AdkAgentOperator

with DAG(
    "sql_analyst",
    schedule="0 7 * * *",
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    tags=["adk", "agent", "sql"],
    params={"question": Param("Which customer ordered most?", title="Question", description="About the table orders.")},
) as dag:
    AdkAgentOperator(task_id="answer", agent="adk_workflows.sql_analyst:root_agent", prompt="{{ params.question }}")
