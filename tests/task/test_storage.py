"""Artifacts and memory are kept apart by DAG and task group, and shared where the user gives an App."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk import DAG
from google.adk import Context, Workflow
from google.adk.apps.app import App
from google.adk.workflow import START, node
from google.genai import types

from adk_airflow import AdkDag, AdkTaskGroup
from adk_airflow.testing import WorkflowRun, run_dag, run_workflow


def workflow(words: str) -> Workflow:
    async def save(ctx: Context) -> str:
        before = await ctx.list_artifacts()
        await ctx.save_artifact("user:note.txt", types.Part(text=words))
        return f"{ctx.session.app_name}: {before}"

    return Workflow(name="root_agent", edges=[(START, node(save))])


@pytest.mark.parametrize("mode", ["tasks", "embedded"])
def test_two_dags_of_workflows_of_one_name_do_not_share(mode: Any) -> None:
    def run(dag_id: str) -> WorkflowRun:
        return run_dag(AdkDag(workflow(dag_id), dag_id=f"{dag_id}_{mode}", mode=mode))

    assert run("one").output == f"one_{mode}: []"
    assert run("two").output == f"two_{mode}: []"
    assert run("one").output == f"one_{mode}: ['user:note.txt']"


@pytest.mark.parametrize("mode", ["tasks", "embedded"])
def test_two_task_groups_of_one_workflow_do_not_share(mode: Any) -> None:
    with DAG(f"groups_{mode}", schedule=None) as dag:
        first = AdkTaskGroup(workflow("first"), group_id="first", input="", mode=mode)
        first >> AdkTaskGroup(workflow("second"), group_id="second", input="", mode=mode)

    outputs = sorted(value for values in run_dag(dag).outputs.values() for value in values)

    assert outputs == [f"groups_{mode}/first: []", f"groups_{mode}/second: []"]


def test_an_app_is_shared_under_its_name() -> None:
    def run(dag_id: str) -> WorkflowRun:
        return run_dag(AdkDag(App(name="shared_app", root_agent=workflow(dag_id)), dag_id=dag_id))

    assert run("share_one").output == "shared_app: []"
    assert run("share_two").output == "shared_app: ['user:note.txt']"


def test_run_workflow_keeps_what_the_workflow_kept() -> None:
    assert run_workflow(workflow("x")).output == "root_agent: []"
