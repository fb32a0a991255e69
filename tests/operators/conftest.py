from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from airflow.sdk import DAG

from adk_airflow import AdkAgentOperator, AdkToolOperator
from adk_airflow.testing import WorkflowRun, run_dag


@pytest.fixture
def ask() -> Callable[..., WorkflowRun]:
    """Runs one AdkAgentOperator in a DAG of its own."""

    def run(agent: Any, prompt: Any = "hello", *, params: dict[str, Any] | None = None, **kwargs: Any) -> WorkflowRun:
        with DAG("asking", schedule=None, params=params or {}) as dag:
            AdkAgentOperator(task_id="ask", agent=agent, prompt=prompt, **kwargs)
        return run_dag(dag)

    return run


@pytest.fixture
def use() -> Callable[..., WorkflowRun]:
    """Runs one AdkToolOperator in a DAG of its own."""

    def run(*, params: dict[str, Any] | None = None, **kwargs: Any) -> WorkflowRun:
        with DAG("using", schedule=None, params=params or {}) as dag:
            AdkToolOperator(task_id="use", **kwargs)
        return run_dag(dag)

    return run
