"""What ``nodes=`` takes for each node, and which arguments no task of a workflow can do with."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from adk_airflow.errors import NodeOverrideError

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from airflow.sdk import RetryPolicy

NodeMode = Literal["mapped", "embedded"]


class NodeOptions(TypedDict, total=False):
    """What a user may give for a node: eight arguments of adk-airflow, then those of Airflow's ``BaseOperator``.

    Of a parallel worker they are for the mapped task, of a nested workflow for the tasks of all its nodes.

    Attributes:
        mode: ``"embedded"``: the node runs together with its embedded neighbours in one task. ``"mapped"``: a parallel worker
            has a task per item, as it has anyway.
        batch_size: Of a parallel worker: how many items one mapped task runs, at least 1.
        max_iterations: Of a node in a loop: how often it may run, at least 1; one more fails with ``LoopLimitError``.
        llm_conn_id: Airflow connection whose credentials the node's agents use.
        max_llm_calls: So many calls of models at most in a run, 1 or more, of the node with all that it runs: all items of a
            parallel worker, all nodes of a nested workflow, all tries. The next one is a ``BudgetExceededError``.
        max_tokens: So many tokens, input and output; when they are spent, no model is asked any more.
        max_cost: So much money, by ``[adk_airflow] prices``; likewise.
        durable: False: a retry does afresh what the node had done; else what it had finished is answered.
    """

    mode: NodeMode
    batch_size: int
    max_iterations: int
    llm_conn_id: str
    durable: bool
    max_llm_calls: int
    max_tokens: int
    max_cost: float

    allow_nested_operators: bool
    depends_on_past: bool
    doc: str | None
    doc_json: str | None
    doc_md: str | None
    doc_rst: str | None
    doc_yaml: str | None
    email: str | Collection[str] | None
    email_on_failure: bool
    email_on_retry: bool
    end_date: datetime | None
    execution_timeout: timedelta | None
    executor: str | None
    executor_config: dict[str, Any] | None
    ignore_first_depends_on_past: bool
    inlets: Any
    logger_name: str | None
    map_index_template: str
    max_active_tis_per_dag: int
    max_active_tis_per_dagrun: int
    max_retry_delay: timedelta | float | None
    on_execute_callback: Callable[..., Any] | Collection[Callable[..., Any]] | None
    on_failure_callback: Callable[..., Any] | Collection[Callable[..., Any]] | None
    on_retry_callback: Callable[..., Any] | Collection[Callable[..., Any]] | None
    on_skipped_callback: Callable[..., Any] | Collection[Callable[..., Any]] | None
    on_success_callback: Callable[..., Any] | Collection[Callable[..., Any]] | None
    outlets: Any
    owner: str
    params: Mapping[str, Any] | None
    pool: str | None
    pool_slots: int
    post_execute: Callable[..., Any] | None
    pre_execute: Callable[..., Any] | None
    priority_weight: int
    queue: str
    render_template_as_native_obj: bool | None
    resources: dict[str, Any] | None
    retries: int | None
    retry_delay: timedelta | float
    retry_exponential_backoff: float
    retry_policy: RetryPolicy | None
    run_as_user: str | None
    start_date: datetime | None
    task_display_name: str | None
    wait_for_downstream: bool
    wait_for_past_depends_before_skipping: bool
    weight_rule: Any


NAMES = frozenset(NodeOptions.__annotations__)

# Arguments of Airflow's, the value that a task of a workflow cannot do with, and why.
_BREAKS = {
    "do_xcom_push": (False, "the tasks of a workflow hand their outputs on in XComs"),
    "multiple_outputs": (True, "an output would be taken apart into XComs of its own, beside those that the tasks hand on"),
}


def refusal(name: str) -> str:
    """Why an argument that is none of ``NodeOptions`` is refused."""
    if name in _BREAKS:
        value, why = _BREAKS[name]
        return f"{name} cannot be given: with {name}={value}, {why}"
    if name in _decided():
        return f"{name} is decided by the translation and cannot be given"
    near = difflib.get_close_matches(name, NAMES, n=1)
    return f"Airflow's operators have no argument {name!r}" + (f". Did you mean {near[0]!r}?" if near else "")


def _decided() -> set[str]:
    """All other arguments of the operators that a workflow's nodes become."""
    from adk_airflow.operators.graph import AdkNodeOperator
    from adk_airflow.operators.spec import TaskSpec
    from adk_airflow.operators.worker import AdkItemOperator
    from adk_airflow.operators.workflow import AdkWorkflowOperator

    found = {field.name for field in dataclasses.fields(TaskSpec)}
    for operator in (AdkNodeOperator, AdkItemOperator, AdkWorkflowOperator):
        for cls in operator.__mro__:
            if "__init__" in vars(cls) and cls is not object:
                found |= inspect.signature(vars(cls)["__init__"]).parameters.keys()
    return found


def check_default_args(workflow: str, default_args: Mapping[str, Any]) -> None:
    """Refuses default arguments of a DAG or a task group that the tasks of a workflow cannot do with.

    Args:
        workflow: The workflow's name.
        default_args: As Airflow will give them to the tasks.

    Raises:
        NodeOverrideError: One of them has the value that breaks the translation.
    """
    for name, (value, why) in _BREAKS.items():
        if name in default_args and bool(default_args[name]) is value:
            raise NodeOverrideError(
                f"workflow {workflow!r}: default_args has {name}={default_args[name]!r}, but {why}. Give it to the other tasks"
                " of the DAG instead."
            )
