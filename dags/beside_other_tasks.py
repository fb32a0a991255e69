"""ADK workflows in a DAG of other tasks: one as a task group, one in a single task, an agent at the end.

The workflows are plain ADK, in ``adk_workflows/draft.py``. The agent needs a Gemini key, as in ``agent_task.py``; it runs
only with the param ``ask`` switched on.
"""

from __future__ import annotations

from typing import Any

import pendulum
from airflow.sdk import DAG, Param, task

from adk_airflow import AdkTaskGroup, AdkWorkflowOperator

TEXT = "It was a dark and stormy night, and the rain fell in torrents, except at occasional intervals."

with DAG(
    "beside_other_tasks",
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    tags=["adk"],
    params={
        "text": Param(TEXT, type="string", title="Text"),
        "longest": Param(60, type="integer", minimum=1, title="Longest text, in characters"),
        "ask": Param(False, type="boolean", title="Ask the agent too"),
    },
) as dag:

    @task
    def text(params: dict[str, Any]) -> str:
        """An ordinary task, upstream of both."""
        return str(params["text"])

    given = text()
    group = AdkTaskGroup("adk_workflows.draft:find_longest", input=given)
    shorten = AdkWorkflowOperator(
        task_id="shorten",
        workflow="adk_workflows.draft:shorten_text",
        input=given,
        state={"longest": "{{ params.longest | int }}"},
    )

    @task.short_circuit
    def with_agent(params: dict[str, Any]) -> bool:
        """Whether the agent is asked."""
        return bool(params["ask"])

    @task.adk_agent(agent="adk_workflows.triage:root_agent")
    def triage(shortened: dict[str, Any], word: str) -> str:
        """The prompt, made of what both workflows gave."""
        return f"{shortened['text']} (about {word})"

    with_agent() >> triage(shorten.output, group.output)
