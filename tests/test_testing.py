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
from airflow.sdk import DAG, Param, task
from airflow.sdk.exceptions import ParamValidationError
from google.adk import Workflow
from google.adk.agents import LlmAgent

from adk_airflow import AdkDag, AdkWorkflowOperator
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


def test_a_runs_conf_is_gone_in_the_next_run() -> None:
    def look(tone: str, place: dict[str, Any]) -> list[Any]:
        return [tone, place]

    place = {"city": "Rome", "streets": ["one"]}
    params = {"tone": "warm", "place": Param(place, type="object")}
    dag = AdkDag(Workflow(name="wf", edges=[("START", look)]), "conf_again", schedule=None, params=params)
    confs: list[dict[str, Any]] = [{"tone": "x", "place": {"city": "Oslo"}}, {}, {"tone": "y", "other": 1}, {}]

    outputs = [run_dag(dag, conf=conf).output for conf in confs]

    assert outputs == [["x", {"city": "Oslo"}], ["warm", place], ["y", place], ["warm", place]]
    assert dag.params.dump() == {"input": "", "tone": "warm", "place": place}


def test_a_refused_conf_is_gone_in_the_next_run_too() -> None:
    def look(factor: int) -> int:
        return factor

    params = {"factor": Param(3, type="integer")}
    dag = AdkDag(Workflow(name="wf", edges=[("START", look)]), "refused_conf", schedule=None, params=params)
    with pytest.raises(ParamValidationError):
        run_dag(dag, conf={"factor": "many"})

    assert run_dag(dag).output == 3


def test_the_params_of_a_task_and_what_a_task_does_to_them_end_with_the_run() -> None:
    seen: list[Any] = []
    default = ["a"]
    with DAG("params_of_a_task", schedule=None, params={"names": Param(default, type="array")}) as dag:

        @task(params={"tone": "warm"})
        def look(params: Any = None) -> None:
            seen.append([params["tone"], list(params["names"])])
            params["names"].append("b")

        look()
        look.expand_kwargs([{}])
    file = dag.fileloc
    for conf in ({"tone": "x"}, {}):
        run_dag(dag, conf=conf)

    assert seen[0] == ["x", ["a"]]
    assert ["warm", ["a"]] in seen
    assert default == ["a"]
    assert dag.fileloc == file


def test_a_workflow_can_be_run_twice_with_other_input_and_state() -> None:
    def look(node_input: str, names: list[str]) -> list[Any]:
        names.append(node_input)
        return names

    workflow, names = Workflow(name="wf", edges=[("START", look)]), ["a"]

    outputs = [run_workflow(workflow, input=text, state={"names": names}).output for text in ("one", "two")]

    assert outputs == [["a", "one"], ["a", "two"]]
    assert names == ["a"]


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


def test_the_error_of_a_task_that_failed_before_its_nodes_ran_is_there() -> None:
    with DAG("before_nodes", schedule=None) as dag:
        AdkWorkflowOperator(task_id="t", workflow="no_such_module:root_agent")
    error = run_dag(dag).error
    assert error is not None
    assert error[0] == "WorkflowLoadError"
    assert error[1].startswith("workflow 'no_such_module:root_agent': there is no module 'no_such_module'.")

    with DAG("before_tasks", schedule=None) as dag:
        AdkWorkflowOperator(task_id="t", workflow=WORKFLOW, input="{{ nothing.at_all }}")
    assert run_dag(dag).error == ("UndefinedError", "'nothing' is undefined")


def test_the_error_of_a_missing_provider_and_of_a_plain_task_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_ODD", "odd://host")
    agent = LlmAgent(name="a", model="m")
    error = run_workflow(Workflow(name="wf", edges=[("START", agent)]), llm_conn_id="odd").error
    assert error is not None
    assert error[0] == "ModelConnectionError"
    assert "no installed provider makes models of connection 'odd', whose type is 'odd'." in error[1]

    with DAG("plain_fails", schedule=None) as dag:

        @task
        def up() -> None:
            raise LookupError("no such file\nat all")

        up() >> AdkWorkflowOperator(task_id="t", workflow=WORKFLOW)
    assert run_dag(dag).error == ("LookupError", "no such file\nat all")
