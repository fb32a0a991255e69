"""``AdkWorkflowOperator(max_iterations=...)``: limits that would have no effect are refused, with the nearest right name."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk import DAG
from google.adk import Event, Workflow
from google.adk.workflow import node

from adk_airflow import AdkWorkflowOperator
from adk_airflow.errors import NodeOverrideError
from adk_airflow.testing import run_dag


def again() -> Event:
    return Event(route="again")


def looping() -> Workflow:
    spin, draft, end = node(again, name="spin"), node(again, name="draft"), node(lambda: "end", name="end")
    inner = Workflow(name="inner", edges=[("START", spin, {"again": spin})])
    return Workflow(name="wf", edges=[("START", draft, {"again": draft, "on": inner}), (inner, end)])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"darft": 3}, "workflow 'wf' has no node 'darft', which max_iterations names. Did you mean 'draft'?"),
        ({"spin": 3}, "workflow 'wf' has no node 'spin', which max_iterations names. Did you mean 'inner/spin'?"),
        ({"zzz": 3}, "workflow 'wf' has no node 'zzz', which max_iterations names. It has: "),
        ({"end": 3}, "workflow 'wf', node 'end': max_iterations is for nodes of a loop, and this one is in none"),
        ({"inner": 3}, "workflow 'wf', node 'inner': max_iterations is for nodes of a loop, and this one is in none"),
        (3, "workflow 'wf': max_iterations takes a dict of limits by node name, not 3"),
        ({"draft": 0}, "workflow 'wf', node 'draft': max_iterations 0 is not an integer of 1 or more"),
        ({"draft": "3"}, "workflow 'wf', node 'draft': max_iterations '3' is not an integer of 1 or more"),
    ],
)
def test_a_limit_without_effect_is_refused(given: Any, says: str) -> None:
    with DAG("limits", schedule=None), pytest.raises(NodeOverrideError) as raised:
        AdkWorkflowOperator(task_id="all", workflow=looping(), max_iterations=given)

    assert says in str(raised.value)


def test_of_a_workflow_that_is_named_it_is_refused_in_the_task() -> None:
    with DAG("named_limits", schedule=None) as dag:
        AdkWorkflowOperator(task_id="all", workflow=f"{__name__}:looping", max_iterations={"darft": 3})
    run = run_dag(dag)

    assert run.state == "failed"
    assert run.task_states == {"all": ["failed"]}


def test_a_limit_ends_the_loop() -> None:
    with DAG("limited", schedule=None) as dag:
        AdkWorkflowOperator(task_id="all", workflow=looping(), max_iterations={"draft": 3, "inner/spin": 1})
    run = run_dag(dag)

    assert run.error is not None
    assert run.error[0] == "LoopLimitError"
