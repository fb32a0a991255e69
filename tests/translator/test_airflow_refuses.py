"""What Airflow refuses is refused with the plan already, and what it must have before a run is listed."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk import DAG
from google.adk.workflow import Workflow, node

from adk_airflow import AdkDag, AdkTaskGroup, plan_workflow
from adk_airflow.dag import describe
from adk_airflow.errors import NodeOverrideError, UnsupportedWorkflowError
from adk_airflow.translator.show import as_text

LONG = "n" * 261


def named(name: str, **kwargs: Any) -> Any:
    return node(lambda node_input: node_input, name=name, **kwargs)


@pytest.mark.parametrize(
    ("edges", "says"),
    [
        ([("START", named(LONG))], "has 261 characters, with the groups around it, and Airflow takes at most 250"),
        (
            [("START", named("g" * 201, parallel_worker=True))],
            "has 201 characters, and Airflow takes at most 200 for a task group",
        ),
        (
            [("START", Workflow(name="h" * 120, edges=[("START", named("i" * 140))]))],
            "has 261 characters, with the groups around it, and Airflow takes at most 250",
        ),
        (
            [("START", named("a\u00b7b"))],
            "its task's id 'a\u00b7b' has '\u00b7', and Airflow takes letters, digits and underscores",
        ),
    ],
)
def test_an_id_that_airflow_refuses_is_refused_with_the_plan(edges: Any, says: str) -> None:
    workflow = Workflow(name="wf", edges=edges)
    for make in (plan_workflow, AdkDag):
        with pytest.raises(UnsupportedWorkflowError, match=says):
            make(workflow)
    assert len(plan_workflow(workflow, mode="embedded").tasks) == 1


def test_the_longest_ids_that_airflow_takes_are_taken() -> None:
    edges: Any = [("START", named("n" * 250), named("g" * 200, parallel_worker=True))]
    dag = AdkDag(Workflow(name="w" * 250, edges=edges), schedule=None)
    dag.validate()  # type: ignore[no-untyped-call]

    assert max(len(task) for task in dag.task_ids) == 250


def test_an_id_that_is_too_long_in_its_task_group_is_refused_there() -> None:
    workflow = Workflow(name="wf", edges=[("START", named("n" * 245))])
    with DAG("of_group", schedule=None), pytest.raises(UnsupportedWorkflowError, match="has 253 characters, with the groups"):
        AdkTaskGroup(workflow, "a_group")


def test_a_workflow_whose_name_can_be_no_id_needs_another_for_its_dag_or_group() -> None:
    workflow = Workflow(name=LONG, edges=[("START", named("a"))])
    with pytest.raises(
        UnsupportedWorkflowError, match="its name has 261 characters, and the id of a DAG at most 250: give dag_id"
    ):
        AdkDag(workflow)
    with (
        DAG("of_group", schedule=None),
        pytest.raises(UnsupportedWorkflowError, match="a task group at most 200: give group_id"),
    ):
        AdkTaskGroup(workflow)
    assert AdkDag(workflow, "short").task_ids == ["a"]
    assert "* another id for its DAG: its name has 261 characters" in as_text(plan_workflow(workflow))


@pytest.mark.parametrize(
    "given",
    [{"pool_slots": 0}, {"priority_weight": "x"}, {"retries": "x"}, {"execution_timeout": 3}, {"start_date": "2026"}],
)
@pytest.mark.parametrize("name", ["a", "b"])
def test_an_argument_that_airflow_refuses_is_refused_with_the_plan(given: Any, name: str) -> None:
    workflow = Workflow(name="wf", edges=[("START", named("a"), named("b", parallel_worker=True))])
    with pytest.raises(NodeOverrideError, match=f"workflow 'wf', node '{name}': Airflow refuses "):
        plan_workflow(workflow, nodes={name: given})


def test_a_plan_lists_what_airflow_must_have_before_it_runs() -> None:
    workflow = Workflow(name="wf", edges=[("START", named("a"), named("b", parallel_worker=True))])
    nodes: Any = {"a": {"pool": "own pool", "llm_conn_id": "gemini"}, "b": {"pool": "own pool", "queue": "gpu"}}
    plan = plan_workflow(workflow, nodes=nodes)

    assert plan.needs == (
        "the pool 'own pool', without which tasks stay `scheduled`: airflow pools set 'own pool' SLOTS DESCRIPTION"
        " (for a, b.run)",
        "the connection 'gemini' (for a)",
        "a worker that listens to the queue 'gpu' (for b.run)",
    )
    assert "Before it runs, Airflow needs:\n* the pool 'own pool'" in as_text(plan)
    assert "Before it runs, Airflow needs:\n\n* the pool 'own pool'" in describe(plan)
    assert plan_workflow(workflow, nodes={"a": {"pool": "default_pool"}}).needs == ()
