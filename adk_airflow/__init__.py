"""adk-airflow: run Google ADK workflows on a schedule, as Apache Airflow DAGs.

The public names are imported on first use (PEP 562), so ``import adk_airflow`` costs nothing when a DAG file is parsed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adk_airflow import records
    from adk_airflow.agents_folder import load_agents
    from adk_airflow.dag import AdkDag, AdkTaskGroup
    from adk_airflow.operators.agent import AdkAgentOperator
    from adk_airflow.operators.retries import AdkRetryPolicy
    from adk_airflow.operators.tool import AdkToolOperator
    from adk_airflow.operators.workflow import AdkWorkflowOperator
    from adk_airflow.runtime.adk.tool_node import as_node
    from adk_airflow.translator import NodeOptions, Plan, plan_workflow

__version__ = "0.1.0"

__all__ = [
    "AdkAgentOperator",
    "AdkDag",
    "AdkRetryPolicy",
    "AdkTaskGroup",
    "AdkToolOperator",
    "AdkWorkflowOperator",
    "NodeOptions",
    "Plan",
    "__version__",
    "as_node",
    "load_agents",
    "plan_workflow",
    "records",
]

_HOME = {
    "AdkAgentOperator": "adk_airflow.operators.agent",
    "AdkDag": "adk_airflow.dag",
    "AdkRetryPolicy": "adk_airflow.operators.retries",
    "AdkTaskGroup": "adk_airflow.dag",
    "AdkToolOperator": "adk_airflow.operators.tool",
    "AdkWorkflowOperator": "adk_airflow.operators.workflow",
    "NodeOptions": "adk_airflow.translator",
    "Plan": "adk_airflow.translator",
    "as_node": "adk_airflow.runtime.adk.tool_node",
    "load_agents": "adk_airflow.agents_folder",
    "plan_workflow": "adk_airflow.translator",
}


def __getattr__(name: str) -> Any:
    if name == "records":
        return import_module("adk_airflow.records")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'adk_airflow' has no attribute {name!r}")
