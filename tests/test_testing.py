"""What users get wrong first with ``adk_airflow.testing`` is told to them."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google.adk import Workflow

from adk_airflow import AdkDag
from adk_airflow.testing import current_dag, run_dag, run_workflow


def upper(node_input: str) -> str:
    return node_input.upper()


WORKFLOW = Workflow(name="wf", edges=[("START", upper)])


def test_an_async_test_is_told_to_be_a_plain_one() -> None:
    async def test() -> None:
        run_workflow(WORKFLOW, input="hi")

    with pytest.raises(RuntimeError, match="must be a plain function, not `async def`"):
        asyncio.run(test())


def test_a_workflow_is_no_dag() -> None:
    dag: Any = WORKFLOW
    with pytest.raises(TypeError, match=r"run_dag\(\) takes a DAG, not a Workflow; run_workflow\(\) takes a workflow"):
        run_dag(dag)


def test_a_dag_can_be_run_again_also_for_a_date_without_a_time_zone() -> None:
    dag = AdkDag(WORKFLOW, "run_again", schedule="@daily", start_date=dt.datetime(2026, 1, 1))
    runs = [run_dag(dag, conf={"input": text}, logical_date=dt.datetime(2026, 1, 2)) for text in ("one", "two")]

    assert [run.output for run in runs] == ["ONE", "TWO"]
    assert current_dag() is None


def test_without_a_home_the_helper_says_what_to_call(tmp_path: Path) -> None:
    code = "from adk_airflow.testing import run_workflow; from tests.test_testing import WORKFLOW; run_workflow(WORKFLOW)"
    settings = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**settings, "AIRFLOW_HOME": str(tmp_path)},
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )

    assert "call use_airflow_home() in conftest.py" in done.stderr.splitlines()[-1]
