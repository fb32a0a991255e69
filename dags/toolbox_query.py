"""Looks at a customer's orders through an MCP Toolbox server, every week.

The workflow itself is plain ADK, in ``adk_workflows/toolbox_query.py``. It needs an Airflow connection ``shop_toolbox`` of the
type MCP Toolbox (the server's configuration is beside the workflow) and, where an agent looks at large totals, a key for
Gemini.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import Param

from adk_airflow import AdkDag

dag = AdkDag(
    "adk_workflows.toolbox_query:root_agent",
    dag_id="toolbox_query",
    schedule="@weekly",
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    tags=["adk", "toolbox"],
    params={
        "input": None,  # the workflow takes no message
        "customer": Param("Ada", type="string", minLength=1, title="Customer"),
        "limit": Param(100.0, type="number", minimum=0, title="Limit", description="Total from which an agent looks at it."),
    },
)
