"""Makes the Airflow tasks of a Plan, in the DAG or task group that is open."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from airflow.sdk import DAG, Label, TaskGroup

from adk_airflow.errors import NodeOverrideError
from adk_airflow.operators.spec import TaskSpec
from adk_airflow.runtime import failures
from adk_airflow.runtime import source as sources
from adk_airflow.translator import kinds
from adk_airflow.translator.names import check_ids
from adk_airflow.translator.options import check_default_args
from adk_airflow.translator.plan import Plan, PlannedTask, path_of

# Why a task that several lead to has its trigger rule.
_RULES = {
    "none_failed_min_one_success": "It waits for all tasks before it, also for those that are skipped: any of them may have"
    " triggered it. Where none has, it skips itself.",
    "none_failed": "The run itself triggers it, and it waits for all tasks before it, also for those that are skipped.",
}


@dataclass
class Built:
    """The tasks that were made, by the ids that the plan gives them."""

    tasks: dict[str, Any]
    result: Any


@dataclass(frozen=True)
class Builder:
    """Makes the tasks of a plan in the DAG or task group that is open."""

    plan: Plan
    reference: str
    app_name: str
    prefix: str
    start: Mapping[str, Any]
    default_args: Mapping[str, Any]

    def full(self, task_id: str) -> str:
        return self.prefix + task_id

    def full_ids(self, ids: Mapping[str, str]) -> dict[str, str]:
        return {name: self.full(task_id) for name, task_id in ids.items()}

    def spec(self, task: PlannedTask) -> TaskSpec:
        """What the task stands for."""
        scope, kind = task.scope, task.kind
        runs = task.nodes if kind == "region" else (task.node,)
        nested = kind == "output"
        inner = self.plan.output_tasks_in((*scope, task.node) if nested else ())
        in_graph = kind in ("node", "region", "items", "collect", "input", "output")
        of_worker = [self.full(before.task_id) for before in task.upstream] if kind in ("item", "collect") else []
        return TaskSpec(
            workflow=self.reference,
            app_name=self.app_name,
            node=task.node,
            kind=task.node_kind if kind in ("node", "item") else "",
            scope=scope,
            starts=task.starts,
            nested=nested,
            nodes=task.nodes if kind in ("output", "result") else tuple(runs),
            output_tasks=self.full_ids(self.plan.ancestors(scope, tuple(runs))) if in_graph else {},
            skips=self.full_ids(self._skips(scope, runs)) if in_graph else {},
            first_tasks=tuple(map(self.full, self._first_tasks(runs))) if task.starts and task.upstream else (),
            inner_tasks=self.full_ids(inner) if kind in ("output", "result") else {},
            items_task=of_worker[0] if of_worker else "",
            run_task=of_worker[1] if kind == "collect" else "",
        )

    def _first_tasks(self, names: Collection[str]) -> list[str]:
        """The first tasks of the nodes before ``names`` that only START triggers."""
        return [
            self.plan.first_tasks[name] for name in self.plan.ancestors((), tuple(names)) if not self.plan.predecessors[name]
        ]

    def _skips(self, scope: tuple[str, ...], names: Collection[str]) -> dict[str, str]:
        """The nodes whose only way in is from these; START's own are never skipped."""
        apart = {task.node for task in self.plan.tasks if task.starts and task.scope == scope}
        # A region may be entered at several nodes, so that one of them was not triggered does not skip it.
        apart |= {node for task in self.plan.tasks if task.kind == "region" and task.scope == scope for node in task.nodes}
        found = {}
        for name in self.plan.output_tasks_in(scope):
            before = self.plan.predecessors.get(path_of(scope, name), ())
            if before and set(before) <= set(names) and name not in names and name not in apart:
                found[name] = self.plan.first_tasks[path_of(scope, name)]
        return found

    def make(self, task: PlannedTask, made: Mapping[str, Any]) -> Any:
        """The operator of one planned task; ``made`` are those before it."""
        arguments: dict[str, Any] = {
            "task_id": task.task_id.rpartition(".")[2],
            "trigger_rule": task.trigger_rule,
            "doc_md": failures.masked(page_of(task, self.plan.workflow)),
            **(self.start if task.starts else {}),
        }
        return kinds.of_task(task).build(self, task, arguments, made)


def build(
    plan: Plan,
    workflow: Any,
    *,
    app_name: str,
    prefix: str = "",
    start: Mapping[str, Any],
    default_args: Mapping[str, Any],
) -> Built:
    """Makes the tasks of ``plan``.

    Args:
        plan: What to make.
        workflow: What the user gave: ``package.module:attribute``, or an object.
        app_name: Name of the ADK App where the user gave none; unique in Airflow.
        prefix: Full id of the open task group with a dot, or nothing.
        start: ``input`` and ``state`` for the tasks that START has an edge to.
        default_args: Those of the DAG or task group that is open.

    Raises:
        NodeOverrideError: Airflow refuses an argument that the user gave for a node, or a default argument breaks the
            translation.
        UnsupportedWorkflowError: With the prefix the id of a task is longer than Airflow takes.
    """
    check_ids(plan, prefix)
    check_default_args(plan.workflow, default_args)
    reference = workflow if isinstance(workflow, str) else sources.register(app_name, workflow)
    builder = Builder(plan, reference, app_name, prefix, start, default_args)
    tasks: dict[str, Any] = {}
    groups: dict[str, TaskGroup] = {}
    for task in plan.tasks:
        group = task.task_id.rpartition(".")[0]
        try:
            with _open_group(group, groups, plan):
                tasks[task.task_id] = builder.make(task, tasks)
        except (TypeError, ValueError, AttributeError) as error:
            if not task.arguments:
                raise
            raise NodeOverrideError(
                f"workflow {plan.workflow!r}, node {path_of(task.scope, task.node)!r}: Airflow refuses"
                f" {dict(task.arguments)!r}: {error}"
            ) from error
    for task in plan.tasks:
        for before in task.upstream:
            if task.kind == "item":
                continue  # mapping over its output made this dependency
            label = Label(before.label) if before.label else None
            tasks[before.task_id].set_downstream(tasks[task.task_id], edge_modifier=label)
    return Built(dict(tasks), tasks[plan.result])


def page_of(task: PlannedTask, workflow: str) -> str:
    """What Airflow shows under "Docs" of a task: what its node is, in its author's words, and why the task is as it is."""
    runs = f"Nodes `{'`, `'.join(task.nodes)}`" if task.kind == "region" else f"Node `{path_of(task.scope, task.node)}`"
    of_all = task.kind in ("result", "workflow")
    what = f"ADK workflow `{workflow}`." if of_all else f"{runs} ({task.node_kind}) of the ADK workflow `{workflow}`."
    why = [f"*{task.why[:1].upper()}{task.why[1:].removesuffix('.')}.*"] if task.why else []
    rule = [f"*{_RULES[task.trigger_rule]}*"] if task.trigger_rule in _RULES and task.kind in ("node", "region") else []
    return "\n\n".join(text for text in (what, task.doc or task.description, *why, *rule) if text)


def check_arguments(plan: Plan) -> None:
    """Makes the tasks of a plan in a DAG that nobody sees, so that Airflow checks the arguments that the user gave.

    Raises:
        NodeOverrideError: It refuses one.
    """
    with DAG("checked", schedule=None, auto_register=False):
        build(plan, "checked:checked", app_name="checked", start={"input": None, "state": None}, default_args={})


def _open_group(path: str, groups: dict[str, TaskGroup], plan: Plan) -> contextlib.AbstractContextManager[Any]:
    """The task group at ``path`` (``outer.inner``), made with those around it when it is new; nothing for no path."""
    if not path:
        return contextlib.nullcontext()
    if path not in groups:
        around, _, name = path.rpartition(".")
        with _open_group(around, groups, plan):
            groups[path] = TaskGroup(group_id=name, tooltip=_tooltip(path, plan))
    return groups[path]


def _tooltip(path: str, plan: Plan) -> str:
    inside = (task for task in plan.tasks if task.task_id.rpartition(".")[0] == path)
    return next((text for task in inside if (text := kinds.of_task(task).tooltip(task))), "")
