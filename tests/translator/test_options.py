"""``nodes=`` and the DAG's own arguments: what is taken, and what is refused because tasks of a workflow cannot do with it."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from airflow.sdk import DAG, BaseOperator, TaskGroup
from google.adk import Workflow
from google.adk.workflow import JoinNode, node

from adk_airflow import AdkDag, AdkTaskGroup, NodeOptions, plan_workflow
from adk_airflow.errors import NodeOverrideError, UnsupportedWorkflowError
from adk_airflow.testing import run_dag, run_workflow

# What a translation decides, or cannot do with; the rest of BaseOperator's arguments is a user's to give.
NOT_A_USERS = {
    "dag", "default_args", "do_xcom_push", "kwargs", "multiple_outputs", "self", "sla", "task_group", "task_id", "trigger_rule",
}  # fmt: skip


def step(name: str, **kwargs: Any) -> Any:
    def body(node_input: Any) -> Any:
        return node_input

    return node(body, name=name, **kwargs)


def chain(**kwargs: Any) -> Workflow:
    return Workflow(name="wf", edges=[("START", step("a"), step("b"))], **kwargs)


def worker(**kwargs: Any) -> Workflow:
    return Workflow(name="wf", edges=[("START", step("each", parallel_worker=True, **kwargs))])


def test_options_list_every_argument_of_airflows_operator_but_those_that_are_not_a_users() -> None:
    ours = {"mode", "batch_size", "max_iterations", "llm_conn_id", "durable", "max_llm_calls", "max_tokens", "max_cost"}
    airflows = set(inspect.signature(BaseOperator.__init__).parameters)

    assert set(NodeOptions.__annotations__) - ours == airflows - NOT_A_USERS


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"retires": 2}, "Airflow's operators have no argument 'retires'. Did you mean 'retries'?"),
        ({"zzz": 2}, "Airflow's operators have no argument 'zzz'"),
        ({"do_xcom_push": False}, "do_xcom_push cannot be given: with do_xcom_push=False, the tasks of a workflow hand"),
        ({"multiple_outputs": True}, "multiple_outputs cannot be given"),
        ({"default_args": {"do_xcom_push": False}}, "default_args is decided by the translation"),
        ({"trigger_rule": "all_done"}, "trigger_rule is decided by the translation"),
        ({"spec": None}, "spec is decided by the translation"),
        ({"scope": ()}, "scope is decided by the translation"),
        ({"session_id": "s"}, "session_id is decided by the translation"),
        ({"durable": "no"}, "durable 'no' is neither True nor False"),
        ({"map_index_template": "x"}, "map_index_template is for parallel workers, this is a function"),
        ({"max_active_tis_per_dagrun": 0}, "max_active_tis_per_dagrun 0 is not an integer of 1 or more"),
    ],
)
def test_a_plan_refuses_what_a_dag_would_refuse(options: Any, says: str) -> None:
    with pytest.raises(NodeOverrideError, match=says) as planned:
        plan_workflow(chain(), nodes={"a": options})
    with pytest.raises(NodeOverrideError) as made:
        AdkDag(chain(), "refused", nodes={"a": options})

    assert str(made.value) == str(planned.value)


# -- limits of a parallel worker -----------------------------------------------------------------------------


def at_once(dag: DAG) -> Any:
    return dag.task_dict["each.run"].partial_kwargs.get("max_active_tis_per_dagrun")  # type: ignore[attr-defined]


def test_a_workers_limit_may_be_lowered_and_not_raised() -> None:
    assert at_once(AdkDag(worker(max_parallel_workers=3), "lower", nodes={"each": {"max_active_tis_per_dagrun": 2}})) == 2
    assert at_once(AdkDag(worker(), "free", nodes={"each": {"max_active_tis_per_dagrun": 9}})) == 9
    with pytest.raises(NodeOverrideError, match=r"max_active_tis_per_dagrun=4 is more than .* max_parallel_workers=3"):
        plan_workflow(worker(max_parallel_workers=3), nodes={"each": {"max_active_tis_per_dagrun": 4}})


@pytest.mark.parametrize(("default", "expected"), [(2, 2), (5, 3), (None, 3)])
def test_of_a_workers_limit_and_the_default_of_all_tasks_the_lower_counts(default: int | None, expected: int) -> None:
    dag = AdkDag(worker(max_parallel_workers=3), "both", default_args={"max_active_tis_per_dagrun": default})

    assert at_once(dag) == expected


def test_a_default_limit_is_that_of_a_worker_without_one() -> None:
    assert at_once(AdkDag(worker(), "default", default_args={"max_active_tis_per_dagrun": 2})) == 2


# -- the DAG's arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize("default_args", [{"do_xcom_push": False}, {"multiple_outputs": True}])
@pytest.mark.parametrize("mode", ["tasks", "embedded"])
def test_default_arguments_that_break_the_translation_are_refused_with_the_reason(default_args: Any, mode: Any) -> None:
    name = next(iter(default_args))
    says = f"workflow 'wf': default_args has {name}=.*, but .*XComs"

    with pytest.raises(NodeOverrideError, match=says):
        AdkDag(worker(), "broken", default_args=default_args, mode=mode)
    with DAG("around", schedule=None, default_args=default_args), pytest.raises(NodeOverrideError, match=says):
        AdkTaskGroup(worker(), "inside", mode=mode)
    with (
        DAG("around_groups", schedule=None),
        TaskGroup("outer", default_args=default_args),
        pytest.raises(NodeOverrideError, match=says),
    ):
        AdkTaskGroup(worker(), "inside", mode=mode)
    with DAG("of_its_own", schedule=None), pytest.raises(NodeOverrideError, match=says):
        AdkTaskGroup(worker(), "inside", mode=mode, default_args=default_args)


def test_a_group_may_take_back_a_default_of_its_dag() -> None:
    with DAG("taken_back", schedule=None, default_args={"do_xcom_push": False}) as dag:
        AdkTaskGroup(chain(), "inside", default_args={"do_xcom_push": True})

    assert all(task.do_xcom_push for task in dag.tasks)


def test_default_arguments_that_the_translation_decides_change_nothing() -> None:
    defaults = {
        "trigger_rule": "all_done", "map_index_template": "x", "input": "other", "state": {"k": 2}, "depends_on_past": True,
        "wait_for_downstream": True, "ignore_first_depends_on_past": False, "weight_rule": "upstream", "retries": 1,
    }  # fmt: skip
    dag = AdkDag(worker(), "defaults", default_args=defaults)

    run = run_dag(dag, conf={"input": ["x", "y"]})

    assert (run.state, run.output) == ("success", ["x", "y"])
    rules = {task.task_id: task.trigger_rule for task in dag.tasks}
    assert rules == {"each.items": "all_success", "each.run": "all_success", "each.collect": "none_failed_min_one_success"}


def test_native_rendering_and_macros_leave_values_as_they_are() -> None:
    values = ["[1, 2]", "{{ 1 + 1 }}", "{{ broken", "007"]
    macros = {"adk_label": "mine", "params": "mine"}
    dag = AdkDag(worker(), "native", render_template_as_native_obj=True, user_defined_macros=macros)

    assert run_dag(dag, conf={"input": values}).output == values


def test_fail_fast_is_for_workflows_whose_tasks_all_wait_for_success() -> None:
    def joined() -> Workflow:
        return Workflow(name="wf", edges=[("START", (step("a"), step("b")), JoinNode(name="join"))])

    assert run_dag(AdkDag(chain(), "fast", fail_fast=True), conf={"input": "x"}).state == "success"
    assert run_dag(AdkDag(joined(), "fast_embedded", fail_fast=True, mode="embedded"), conf={"input": "x"}).state == "success"
    says = "node 'join': its task 'join' has the trigger rule 'none_failed_min_one_success', and Airflow's fail_fast"
    with pytest.raises(UnsupportedWorkflowError, match=says):
        AdkDag(joined(), "too_fast", fail_fast=True)
    with DAG("fast_around", schedule=None, fail_fast=True), pytest.raises(UnsupportedWorkflowError, match=says):
        AdkTaskGroup(joined(), "inside")


def test_no_more_tasks_at_once_than_the_workflow_allows() -> None:
    assert AdkDag(chain(max_concurrency=2), "fewer", max_active_tasks=1).max_active_tasks == 1
    with pytest.raises(UnsupportedWorkflowError, match="has max_concurrency=2, so max_active_tasks=3 is too much"):
        AdkDag(chain(max_concurrency=2), "more", max_active_tasks=3)


# -- input and state -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["text", {"a": 1}, [1, "b"], 5, 1.5, True, None])
def test_a_run_takes_any_json_as_input(value: Any) -> None:
    def give(node_input: Any) -> Any:
        return node_input

    workflow = Workflow(name="wf", edges=[("START", node(give, name="give"))])
    run = run_dag(AdkDag(workflow, "any_input"), conf={"input": value})

    assert run.state == "success"
    assert run.output == run_workflow(workflow, input=value, mode="embedded").output


@pytest.mark.parametrize("mode", ["tasks", "embedded"])
def test_a_group_without_input_and_state_takes_the_runs_params(mode: Any) -> None:
    def both(node_input: str, tone: str) -> Any:
        return [node_input, tone]

    with DAG("params_in", schedule=None, params={"input": "hello", "tone": "formal"}) as dag:
        AdkTaskGroup(Workflow(name="wf", edges=[("START", node(both, name="both"))]), "g", mode=mode)
    run = run_dag(dag, conf={"tone": "warm"})

    assert next(iter(run.outputs.values()))[-1] == ["hello", "warm"]


@pytest.mark.parametrize("mode", ["tasks", "embedded"])
def test_an_empty_input_and_an_empty_state_are_empty(mode: Any) -> None:
    def both(node_input: str, tone: str = "none") -> Any:
        return [node_input, tone]

    with DAG("params_out", schedule=None, params={"input": "hello", "tone": "formal"}) as dag:
        AdkTaskGroup(Workflow(name="wf", edges=[("START", node(both, name="both"))]), "g", mode=mode, input="", state={})

    assert next(iter(run_dag(dag).outputs.values()))[-1] == ["", "none"]
