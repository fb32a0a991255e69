"""One DAG for each ADK project in ``adk_agents/``: drop in another and it is scheduled as well.

``diary`` asks Gemini and needs its key, for instance in ``adk_agents/diary/.env``; ``word_count`` needs nothing.
"""

from __future__ import annotations

import pendulum

from adk_airflow import load_agents

dags = load_agents(
    "adk_agents/",
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    tags=["adk"],
    agents={"diary": {"schedule": "@daily", "max_active_runs": 1}},
)
