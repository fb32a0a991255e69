"""A wrong argument is refused where the DAG is made, and the right ones reach the tasks."""

from __future__ import annotations

import re
from typing import Any

import pytest
from airflow.sdk import DAG
from google.adk import Workflow
from google.adk.workflow import node

from adk_airflow import AdkDag, AdkWorkflowOperator
from adk_airflow.errors import NodeOverrideError, WorkflowLoadError
from adk_airflow.testing import run_dag
from tests.dag.nodes import const, show


def test_the_workflow_operator_takes_objects_too() -> None:
    with DAG("with_an_object", schedule=None) as dag:
        AdkWorkflowOperator(task_id="t", workflow=Workflow(name="wf", edges=[("START", const("a", 1), show("b"))]))

    run = run_dag(dag)

    assert (run.state, run.outputs) == ("success", {"wf": ["b:1"]})


def test_what_is_no_workflow_is_refused_at_once() -> None:
    with pytest.raises(WorkflowLoadError, match=r"workflow '3' is no Workflow but a int"):
        AdkWorkflowOperator(task_id="t", workflow=3)


def test_node_arguments_reach_the_nodes_operator_and_a_wrong_one_is_named() -> None:
    wf = Workflow(name="wf", edges=[("START", show("a"), node(lambda node_input: 1, name="each", parallel_worker=True))])
    dag = AdkDag(wf, schedule=None, nodes={"a": {"retries": 2, "queue": "gpu"}, "each": {"pool": "slow"}})

    assert (dag.get_task("a").retries, dag.get_task("a").queue) == (2, "gpu")
    assert dag.get_task("each.run").partial_kwargs["pool"] == "slow"
    assert dag.task_ids == ["a", "each.items", "each.run", "each.collect"]


@pytest.mark.parametrize("name", ["a", "each", "spin", "inner/b"])
@pytest.mark.parametrize(
    ("argument", "says"),
    [
        ({"pol": "x"}, "have no argument 'pol'. Did you mean 'pool'?"),
        ({"priority_weight": "high"}, "Airflow refuses {'priority_weight': 'high'}: "),
        ({"execution_timeout": 5}, "Airflow refuses {'execution_timeout': 5}: execution_timeout must be timedelta"),
    ],
)
def test_a_wrong_argument_is_refused_with_the_node_and_the_nearest_right_name(name: str, argument: Any, says: str) -> None:
    spin, inner = show("spin"), Workflow(name="inner", edges=[("START", show("b"))])
    each = node(lambda node_input: 1, name="each", parallel_worker=True)
    wf = Workflow(name="wf", edges=[("START", show("a"), each, inner, spin), (spin, {"again": spin})])

    with pytest.raises(NodeOverrideError, match=rf"node '{name}': .*{re.escape(says)}"):
        AdkDag(wf, schedule=None, nodes={name: argument})
