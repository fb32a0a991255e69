"""``AdkDag`` and ``AdkTaskGroup``: an ADK workflow as a whole DAG, or as a task group in one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import DAG, Param, ParamsDict, TaskGroup  # type: ignore[attr-defined]  # its stub lacks ParamsDict
from airflow.sdk.definitions.taskgroup import MappedTaskGroup

from adk_airflow.errors import UnsupportedWorkflowError
from adk_airflow.translator import Plan, plan_dag
from adk_airflow.translator.build import build
from adk_airflow.translator.names import dag_id_fault, group_id_fault, shown
from adk_airflow.translator.options import NodeOptions
from adk_airflow.translator.plan import Mode


class AdkDag(DAG):
    """A DAG made of an unchanged ADK workflow.

    The run's ``params["input"]`` (text, or data that becomes JSON text) is the user message, and there is always such a param
    unless you give ``params={"input": None}`` for a workflow that needs no message; every other param is a key
    of the initial session state, so a node's function takes it as a parameter by that name. Each node also finds the run
    in ``ctx.state``: ``airflow:dag_id``, ``airflow:run_id``, ``airflow:logical_date``, ``airflow:data_interval_start`` and
    ``airflow:data_interval_end`` (ISO 8601 or None).

    Args:
        workflow: A Workflow, an App around one, a function that returns either, or ``"package.module:attribute"``. With a
            string, a workflow that google-adk refuses becomes an import error that names it.
        dag_id: The DAG's id; the workflow's name if not given.
        mode: ``"tasks"``: a task per node. ``"embedded"``: the whole workflow in one task, loops and all.
        nodes: Per node name or path (``inner/a``), what ``NodeOptions`` lists: arguments of any operator (``pool``, ``queue``,
            ``executor``, ``retries``, ...), ``mode``, ``llm_conn_id``, for a parallel worker ``batch_size``, for a node of a
            loop ``max_iterations``.
        llm_conn_id: Airflow connection whose credentials the workflow's agents use; in ``nodes`` per node. See
            ``docs/connections.md``.
        max_llm_calls: So many calls of models at most in a run, all tasks and tries counted; the next one is a
            ``BudgetExceededError``. In ``nodes`` per node. See ``docs/usage.md``.
        max_tokens: So many tokens, input and output, in a run; when they are spent, no model is asked any more.
        max_cost: So much money, by ``[adk_airflow] prices``; likewise.
        session_id: With ``mode="embedded"``: an ADK session that outlives the run, templated; see ``docs/services.md``.
        **kwargs: Every argument of ``airflow.sdk.DAG``.

    Attributes:
        plan: What the workflow became.
        output: The workflow's output, for tasks that come after it in the same DAG.

    Raises:
        WorkflowLoadError: There is no such workflow or google-adk refuses it.
        UnsupportedWorkflowError: It cannot become tasks, or not with these arguments of the DAG; the message says what to do.
        NodeOverrideError: ``nodes`` names an unknown node or asks for something it cannot do, or ``default_args`` has what the
            tasks of a workflow cannot do with.
    """

    def __init__(
        self,
        workflow: Any,
        dag_id: str | None = None,
        *,
        mode: Mode = "tasks",
        nodes: Mapping[str, NodeOptions] | None = None,
        llm_conn_id: str | None = None,
        max_llm_calls: int | None = None,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        session_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        limits = {"max_llm_calls": max_llm_calls, "max_tokens": max_tokens, "max_cost": max_cost}
        plan, saved = plan_dag(workflow, mode=mode, nodes=nodes, llm_conn_id=llm_conn_id, limits=limits)
        if dag_id is None and (fault := dag_id_fault(plan.workflow)):
            raise UnsupportedWorkflowError(f"workflow {shown(plan.workflow)}: {fault}.")
        dag_id = dag_id or plan.workflow
        given = kwargs.pop("params", None) or {}
        params = {key: given.get_param(key) if isinstance(given, ParamsDict) else given[key] for key in given}
        if params.setdefault("input", input_param("The user message that starts the workflow.")) is None:
            del params["input"]
        if plan.max_active_tasks is not None:
            _check_limit(plan, kwargs.setdefault("max_active_tasks", plan.max_active_tasks))
        _check_fail_fast(plan, bool(kwargs.get("fail_fast")))
        kwargs.setdefault("description", plan.description or f"ADK workflow {plan.workflow}")
        kwargs.setdefault("doc_md", describe(plan))
        super().__init__(dag_id, params=params, **kwargs)
        self.plan = plan
        registers, self.auto_register = self.auto_register, False
        with self:
            start = {"input": None, "state": None, **_kept_session(plan, session_id)}
            built = build(plan, workflow, app_name=dag_id, start=start, default_args=self.default_args, saved=saved)
            self.auto_register = registers  # Airflow looks at it at the end of this block; half a DAG is none
        self.output = built.result.output
        self.add_result(self.output)


class AdkTaskGroup(TaskGroup):
    """A task group made of an unchanged ADK workflow, beside any other tasks of a DAG.

    Args:
        workflow: As for ``AdkDag``.
        group_id: The group's id; the workflow's name if not given.
        input: The user's input: text, data, or the output of an upstream task (``task.output``). None: the run's
            ``params["input"]``. Templated.
        state: The initial session state; an upstream task's output is allowed as a value. None: the run's other params.
            Templated.
        mode: As for ``AdkDag``.
        nodes: As for ``AdkDag``.
        llm_conn_id: As for ``AdkDag``.
        max_llm_calls: As for ``AdkDag``, in this group.
        max_tokens: As for ``AdkDag``, in this group.
        max_cost: As for ``AdkDag``, in this group.
        session_id: As for ``AdkDag``.
        **kwargs: Every argument of ``airflow.sdk.TaskGroup``.

    Attributes:
        plan: What the workflow became.
        output: The workflow's output, for downstream tasks.

    Raises:
        WorkflowLoadError: As for ``AdkDag``.
        UnsupportedWorkflowError: As for ``AdkDag``; or the workflow has a ``max_concurrency``, or the group is in a mapped one.
        NodeOverrideError: As for ``AdkDag``; ``default_args`` may be the DAG's or the group's.
    """

    def __init__(
        self,
        workflow: Any,
        group_id: str | None = None,
        *,
        input: Any = None,
        state: dict[str, Any] | None = None,
        mode: Mode = "tasks",
        nodes: Mapping[str, NodeOptions] | None = None,
        llm_conn_id: str | None = None,
        max_llm_calls: int | None = None,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        session_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        limits = {"max_llm_calls": max_llm_calls, "max_tokens": max_tokens, "max_cost": max_cost}
        plan, saved = plan_dag(workflow, mode=mode, nodes=nodes, llm_conn_id=llm_conn_id, limits=limits)
        kwargs.setdefault("tooltip", plan.description or f"ADK workflow {plan.workflow}")
        if group_id is None and (fault := group_id_fault(plan.workflow)):
            raise UnsupportedWorkflowError(f"workflow {shown(plan.workflow)}: {fault}.")
        super().__init__(group_id or plan.workflow, **kwargs)
        if mode == "tasks":
            _check_group(plan.workflow, plan, self)
        _check_fail_fast(plan, self.dag.fail_fast)
        self.plan = plan
        full_id = str(self.group_id)
        with self:
            app_name = f"{self.dag.dag_id}/{full_id}"  # no DAG's id has a slash
            built = build(
                plan,
                workflow,
                app_name=app_name,
                prefix=f"{full_id}." if self.prefix_group_id else "",
                start={"input": input, "state": state, **_kept_session(plan, session_id)},
                default_args={**self.dag.default_args, **self.default_args},
                saved=saved,
            )
        self.output = built.result.output


def _check_limit(plan: Plan, max_active_tasks: int) -> None:
    """Refuses to run more nodes at once than the workflow allows.

    Raises:
        UnsupportedWorkflowError: ``max_active_tasks`` is more than the workflow's ``max_concurrency``.
    """
    if plan.max_active_tasks is not None and max_active_tasks > plan.max_active_tasks:
        raise UnsupportedWorkflowError(
            f"workflow {plan.workflow!r} has max_concurrency={plan.max_active_tasks}, so max_active_tasks={max_active_tasks} is"
            " too much. Leave it out, or use mode='embedded'."
        )


def _check_fail_fast(plan: Plan, fail_fast: bool) -> None:
    """Refuses what Airflow would, in words that name the node.

    Raises:
        UnsupportedWorkflowError: The DAG has ``fail_fast``, and a task has another trigger rule than ``all_success``.
    """
    if fail_fast and (other := [task for task in plan.tasks if task.trigger_rule != "all_success"]):
        raise UnsupportedWorkflowError(
            f"workflow {plan.workflow!r}, node {other[0].node!r}: its task {other[0].task_id!r} has the trigger rule"
            f" {other[0].trigger_rule!r}, and Airflow's fail_fast allows only 'all_success'. Leave fail_fast out, or use"
            " mode='embedded'."
        )


def _check_group(name: str, plan: Plan, group: TaskGroup) -> None:
    """Refuses what a group of tasks cannot keep.

    Raises:
        UnsupportedWorkflowError: The workflow limits its concurrency, or the group is in a mapped one.
    """
    if plan.max_active_tasks is not None:
        raise UnsupportedWorkflowError(
            f"workflow {name!r} has max_concurrency={plan.max_active_tasks}, and Airflow limits tasks of a DAG, not of a"
            " group. Use AdkDag, or mode='embedded'."
        )
    around = group.parent_group
    while around is not None:
        if isinstance(around, MappedTaskGroup):
            raise UnsupportedWorkflowError(
                f"workflow {name!r}: a task group of its nodes cannot be in the mapped task group {around.group_id!r}."
                " Use mode='embedded': one task, which can be mapped."
            )
        around = around.parent_group


def _kept_session(plan: Plan, session_id: str | None) -> dict[str, Any]:
    """The operator arguments for it.

    Raises:
        UnsupportedWorkflowError: The workflow's nodes are tasks of their own.
    """
    if session_id is None:
        return {}
    if plan.mode != "embedded":
        raise UnsupportedWorkflowError(
            f"workflow {plan.workflow!r}: session_id needs mode='embedded'. Between tasks the state travels in XComs, and no"
            " session holds the run as a whole."
        )
    return {"session_id": session_id}


def describe(plan: Plan) -> str:
    """The plan as the DAG's documentation: which node became which task."""
    lines = [f"ADK workflow **{plan.workflow}**" + (f": {plan.description}" if plan.description else "")]
    lines += ["", "| ADK node | kind | Airflow task |", "|---|---|---|"]
    lines += [f"| {task.node} | {task.node_kind} | `{task.task_id}` |" for task in plan.tasks]
    if plan.needs:
        lines += ["", "Before it runs, Airflow needs:", "", *(f"* {need}" for need in plan.needs)]
    if plan.warnings:
        lines += ["", "What can differ from one ADK process:", "", *(f"* {text}" for text in plan.warnings)]
    return "\n".join(lines)


def input_param(description: str) -> Param:
    """The param of a run's input: text, or any data, which becomes JSON text."""
    # Text comes first: Airflow's form for a run asks for the first type.
    types = ["string", "object", "array", "number", "boolean", "null"]
    return Param("", type=types, title="Input", description=description)
