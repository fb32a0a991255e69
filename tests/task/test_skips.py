"""Which tasks are skipped, why, and that Airflow remembers it."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.models.xcom import XComModel
from airflow.sdk import DAG, task
from airflow.sdk.exceptions import AirflowSkipException
from airflow.sdk.execution_time.xcom import XCom
from airflow.utils.session import create_session
from google.adk import Event, Workflow
from google.adk.workflow import START, node

from adk_airflow import AdkDag, AdkTaskGroup
from adk_airflow.testing import run_dag, run_workflow


def skip_myself(node_input: Any) -> None:
    raise AirflowSkipException("not today")


def always(node_input: str) -> str:
    return f"always:{node_input}"


def after_a_node_that_skips_itself() -> Workflow:
    maybe, end = node(skip_myself, name="maybe"), node(always)
    return Workflow(name="wf", edges=[(START, (maybe, end)), (maybe, end)])


def test_a_node_that_skips_itself_leaves_what_start_triggers_too() -> None:
    run = run_workflow(after_a_node_that_skips_itself(), input="hi")

    assert run.task_states == {"always": ["success"], "maybe": ["skipped"]}
    assert run.outputs == {"always": ["always:hi"]}


def test_likewise_in_a_task_group_whose_turn_has_come() -> None:
    with DAG("grouped", schedule=None) as dag:

        @task
        def before() -> str:
            return "hi"

        AdkTaskGroup(after_a_node_that_skips_itself(), input=before())

    assert run_dag(dag).outputs == {"wf.always": ["always:hi"]}


def test_a_group_that_a_branch_skips_is_skipped_as_a_whole() -> None:
    with DAG("branching", schedule=None) as dag:

        @task.branch
        def choose() -> str:
            return "other"

        @task
        def other() -> None: ...

        first, end = node(lambda: 1, name="first"), node(always)
        choose() >> [other(), AdkTaskGroup(Workflow(name="wf", edges=[(START, (first, end)), (first, end)]))]

    states = run_dag(dag).task_states

    assert (states["wf.first"], states["wf.always"], states["other"]) == (["skipped"], ["skipped"], ["success"])


@pytest.mark.parametrize("how", ["short_circuit", "upstream"])
def test_a_group_that_is_skipped_otherwise_is_skipped_as_a_whole(how: str) -> None:
    with DAG("skipping", schedule=None) as dag:
        if how == "short_circuit":

            @task.short_circuit(ignore_downstream_trigger_rules=False)
            def before() -> bool:
                return False
        else:

            @task
            def before() -> None:
                raise AirflowSkipException("no")

        first, end = node(lambda: 1, name="first"), node(always)
        before() >> AdkTaskGroup(Workflow(name="wf", edges=[(START, (first, end)), (first, end)]))

    states = run_dag(dag).task_states

    assert (states["wf.first"], states["wf.always"]) == (["skipped"], ["skipped"])


def test_airflow_remembers_whom_a_route_left_out() -> None:
    """So a skipped task that is cleared is skipped again without a process: ``NotPreviouslySkippedDep`` reads this XCom."""
    router, left, right = node(lambda: Event(route="left"), name="router"), node(always), node(lambda: 2, name="right")
    dag = AdkDag(Workflow(name="wf", edges=[(START, router), (router, {"left": left, "right": right})]), dag_id="remembers")
    run = run_dag(dag)

    assert run.task_states["right"] == ["skipped"]
    with create_session() as session:
        rows = session.query(XComModel).filter_by(dag_id="remembers", run_id=run.run_id, key="skipmixin_key").all()
        assert {row.task_id: XCom.deserialize_value(row) for row in rows} == {"router": {"skipped": ["right"]}}
