"""Runs two agents whose Gemini credentials are Airflow connections: one for the DAG, another for one of its agents.

The workflow is plain ADK, in ``adk_workflows/press_release.py``. Needs ``adk-airflow-google-genai`` and two connections
(Admin, Connections): ``google_genai_default`` of type Gemini API, and ``google_genai_editor`` of that type or of type
Vertex AI (Gemini). With one connection for both, leave ``nodes`` out.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import Param

from adk_airflow import AdkDag

dag = AdkDag(
    "adk_workflows.press_release:root_agent",
    dag_id="gemini_connection",
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    tags=["adk", "gemini"],
    llm_conn_id="google_genai_default",
    nodes={"editor": {"llm_conn_id": "google_genai_editor"}},
    params={
        "input": Param(
            "We open a second bakery on Monday, beside the station. The first hundred buns are free.",
            type="string",
            minLength=1,
            title="News",
            description="What the press release is about.",
        ),
    },
)
