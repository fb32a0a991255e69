"""A run's input, params, configuration and dates reach the nodes, and what the nodes write to the state is merged."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from airflow.sdk import Param
from google.adk import Context, Workflow
from google.adk.workflow import JoinNode, node

from adk_airflow import AdkDag
from adk_airflow.testing import run_dag, run_workflow
from tests.dag.nodes import const, show


def test_the_user_message_reaches_the_first_nodes_and_the_last_output_is_the_runs() -> None:
    def upper(node_input: str) -> str:
        return node_input.upper()

    run = run_workflow(Workflow(name="wf", edges=[("START", upper, show("tail"))]), input="hi")

    assert (run.state, run.output) == ("success", "tail:'HI'")


def test_two_dags_of_one_id_in_one_process_each_run_their_own_workflow() -> None:
    def first(node_input: str) -> str:
        return "first"

    def second(node_input: str) -> str:
        return "second"

    dags = [AdkDag(Workflow(name="wf", edges=[("START", body)]), dag_id="twice") for body in (first, second)]

    assert [run_dag(dag).output for dag in dags] == ["first", "second"]


def test_params_are_the_initial_state_and_bind_by_name() -> None:
    def scale(node_input: int, factor: int) -> int:
        return node_input * factor

    run = run_workflow(Workflow(name="wf", edges=[("START", scale)], input_schema=int), input="5", state={"factor": 3})

    assert run.output == 15
    assert run.session_state == {"factor": 3}


def test_a_run_conf_overrides_a_param() -> None:
    def scale(factor: int) -> int:
        return factor

    dag = AdkDag(Workflow(name="wf", edges=[("START", scale)]), schedule=None, params={"factor": Param(3, type="integer")})

    assert run_dag(dag, conf={"factor": 7}).output == 7


def test_the_dates_of_the_run_are_in_the_state_of_every_node() -> None:
    def look(ctx: Context) -> dict[str, Any]:
        keys = ("dag_id", "run_id", "logical_date", "data_interval_start", "data_interval_end")
        return {key: ctx.state[f"airflow:{key}"] for key in keys}

    dag = AdkDag(Workflow(name="dated", edges=[("START", const("first", 1), look)]), schedule="@daily")
    run = run_dag(dag, logical_date=dt.datetime(2026, 3, 4, tzinfo=dt.UTC))

    assert run.output == {
        "dag_id": "dated",
        "run_id": run.run_id,
        "logical_date": "2026-03-04T00:00:00+00:00",
        "data_interval_start": "2026-03-04T00:00:00+00:00",
        "data_interval_end": "2026-03-04T00:00:00+00:00",
    }


def test_params_keep_their_types_in_whatever_dict_they_come() -> None:
    from airflow.sdk.definitions.param import ParamsDict

    params = ParamsDict({"n": Param(3, type="integer", title="N")})
    dag = AdkDag(Workflow(name="wf", edges=[("START", const("a", 1))]), schedule=None, params=params)

    assert dag.params.get_param("n").schema == {"type": "integer", "title": "N"}


def test_a_lost_update_is_reported_and_the_later_predecessor_stays() -> None:
    def writer(name: str) -> Any:
        def body(ctx: Context) -> str:
            ctx.state["k"] = name
            return name

        return node(body, name=name)

    wf = Workflow(name="wf", edges=[("START", (writer("a"), writer("b")), JoinNode(name="join"))])
    run = run_workflow(wf)

    assert run.session_state == {"k": "b"}
    assert run.lost_updates == (("k", "b", "a"),)


@pytest.mark.parametrize("mode", ["tasks", "embedded"])
def test_a_function_that_makes_the_workflow_is_called_once_when_the_dag_is_parsed(mode: Any) -> None:
    calls = []

    def make() -> Workflow:
        calls.append(1)
        return Workflow(name="made", edges=[("START", const("a", 1))])

    dag = AdkDag(make, dag_id=f"made_{mode}", mode=mode)
    assert len(calls) == 1
    assert run_dag(dag).output == 1
