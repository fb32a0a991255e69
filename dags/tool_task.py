"""Calls an ADK tool without any model: as an operator with templated arguments, and with arguments that a function makes.

The tool is plain ADK, in ``adk_workflows/rates.py``, and is imported in its task only.
"""

from __future__ import annotations

from typing import Any

import pendulum
from airflow.sdk import DAG, Param, task

from adk_airflow import AdkToolOperator

with DAG(
    "tool_task",
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    tags=["adk", "tool"],
    params={
        "amounts": Param([12.5, 99], type="array", items={"type": "number"}, title="Amounts in euros"),
        "target": Param("USD", type="string", enum=["USD", "JPY"], title="Target currency"),
    },
) as dag:

    @task
    def total(params: dict[str, Any]) -> float:
        """What is to be converted."""
        return float(sum(params["amounts"]))

    in_target = AdkToolOperator(
        task_id="in_target",
        tool="adk_workflows.rates:convert",
        arguments={"amount": total(), "source": "EUR", "target": "{{ params.target }}"},
    )

    @task.adk_tool(tool="adk_workflows.rates:convert")
    def and_back(converted: dict[str, Any]) -> dict[str, Any]:
        """The arguments of the second call: the first one's result."""
        return {"amount": converted["amount"], "source": converted["currency"], "target": "EUR"}

    and_back(in_target.output)
