"""Makes the Airflow tasks of a Plan, in the DAG or task group that is open."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from airflow.sdk import DAG, Label, TaskGroup

from adk_airflow.errors import NodeOverrideError
from adk_airflow.operators.spec import TaskSpec
from adk_airflow.runtime import failures
from adk_airflow.runtime import source as sources
from adk_airflow.runtime.record import budget
from adk_airflow.runtime.record.paths import is_below
from adk_airflow.translator import kinds
from adk_airflow.translator.graph import Graph
from adk_airflow.translator.names import check_ids
from adk_airflow.translator.options import check_default_args
from adk_airflow.translator.plan import Plan, PlannedTask, path_of

_RUN_MODELS = ("node", "region", "item", "workflow")

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
class Scope:
    """The nodes of one workflow, as the specs of its tasks need them.

    Attributes:
        output_tasks: For each node the full id of the task that leaves its output.
        number: The nodes' places in the plan.
        before: The nodes with an edge to a node.
        after: Those that an edge of a node enters, in the plan's order.
        never_skipped: Those that START has an edge to, and those of regions.
    """

    output_tasks: dict[str, str] = field(default_factory=dict)
    number: dict[str, int] = field(default_factory=dict)
    before: dict[str, set[str]] = field(default_factory=dict)
    after: dict[str, list[str]] = field(default_factory=dict)
    never_skipped: set[str] = field(default_factory=set)

    def add(self, name: str, output_task: str, before: Collection[str]) -> None:
        """Adds a node."""
        self.output_tasks[name] = output_task
        self.number[name] = len(self.number)
        self.before[name] = set(before)
        for other in before:
            self.after.setdefault(other, []).append(name)


@dataclass(frozen=True)
class Builder:
    """Makes the tasks of a plan in the DAG or task group that is open."""

    plan: Plan
    reference: str
    app_name: str
    prefix: str
    start: Mapping[str, Any]
    default_args: Mapping[str, Any]
    _spenders_of: dict[str, tuple[str, ...]] = field(default_factory=dict, init=False)
    saved: Graph | None = None

    def full(self, task_id: str) -> str:
        return self.prefix + task_id

    def full_ids(self, ids: Mapping[str, str]) -> dict[str, str]:
        return {name: self.full(task_id) for name, task_id in ids.items()}

    @cached_property
    def scopes(self) -> dict[tuple[str, ...], Scope]:
        """The outermost workflow, and those nested in it whose nodes are tasks, by the names of the workflows on the way."""
        found: dict[tuple[str, ...], Scope] = {}
        for path, task_id in self.plan.output_tasks.items():
            *around, name = path.split("/")
            before = self.plan.predecessors.get(path, ())
            found.setdefault(tuple(around), Scope()).add(name, self.full(task_id), before)
        for task in self.plan.tasks:
            # A region may be entered at several nodes, so that one of them was not triggered does not skip it.
            apart = task.nodes if task.kind == "region" else [task.node] if task.starts else []
            found.setdefault(task.scope, Scope()).never_skipped.update(apart)
        return found

    def spec(self, task: PlannedTask) -> TaskSpec:
        """What the task stands for."""
        scope, kind = task.scope, task.kind
        runs = task.nodes if kind == "region" else (task.node,)
        nested = kind == "output"
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
            output_tasks=self.scopes[scope].output_tasks if in_graph else {},
            skips=self._skips(scope, runs) if in_graph else {},
            first_tasks=tuple(self._first_tasks(runs)) if task.starts and task.upstream else (),
            inner_tasks=self.scopes[(*scope, task.node) if nested else ()].output_tasks if kind in ("output", "result") else {},
            items_task=of_worker[0] if of_worker else "",
            run_task=of_worker[1] if kind == "collect" else "",
            shares=self._shares(task),
            ends_run=task.task_id == self.plan.result,
            fingerprint=self.saved.inside(scope).fingerprint if self.saved else "",
        )

    def _shares(self, task: PlannedTask) -> dict[str, tuple[str, ...]]:
        """For each budget of a task that others spend, too, the tasks that do."""
        paths = dict.fromkeys(path for name in budget.LIMITS for path in budget.by_path(task.arguments.get(name)))
        return {path: tasks for path in paths if len(tasks := self._spenders(path)) > 1 or task.kind == "item"}

    def _spenders(self, path: str) -> tuple[str, ...]:
        """The tasks that may spend the budget of a node; of the empty path that of the run."""
        if path not in self._spenders_of:
            tasks = [task for task in self.plan.tasks if task.kind in _RUN_MODELS]
            found = [task.task_id for task in tasks if any(is_below(own, path) for own in task.paths)]
            self._spenders_of[path] = tuple(map(self.full, found))
        return self._spenders_of[path]

    def _first_tasks(self, names: Collection[str]) -> list[str]:
        """The first tasks of the nodes before ``names``, near or far, that only START triggers."""
        found: dict[str, None] = {}
        todo = [before for name in names for before in self.plan.predecessors[name]]
        while todo:
            name = todo.pop()
            if name not in found and name not in names:
                found[name] = None
                todo.extend(self.plan.predecessors[name])
        return [self.full(self.plan.first_tasks[name]) for name in found if not self.plan.predecessors[name]]

    def _skips(self, scope: tuple[str, ...], names: Collection[str]) -> dict[str, str]:
        """The nodes whose only way in is from these; START's own are never skipped."""
        here, own = self.scopes[scope], set(names)
        after = {name: None for own_name in names for name in here.after.get(own_name, ())}
        return {
            name: self.full(self.plan.first_tasks[path_of(scope, name)])
            for name in (sorted(after, key=here.number.__getitem__) if len(own) > 1 else after)
            if name not in own and name not in here.never_skipped and here.before[name] <= own
        }

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
    saved: Graph | None = None,
) -> Built:
    """Makes the tasks of ``plan``.

    Args:
        plan: What to make.
        workflow: What the user gave: ``package.module:attribute``, or an object.
        app_name: Name of the ADK App where the user gave none; unique in Airflow.
        prefix: Full id of the open task group with a dot, or nothing.
        start: ``input`` and ``state`` for the tasks that START has an edge to.
        default_args: Those of the DAG or task group that is open.
        saved: The graph, where it was not read from the workflow itself; each task then compares.

    Raises:
        NodeOverrideError: Airflow refuses an argument that the user gave for a node, or a default argument breaks the
            translation.
        UnsupportedWorkflowError: With the prefix the id of a task is longer than Airflow takes.
    """
    check_ids(plan, prefix)
    check_default_args(plan.workflow, default_args)
    reference = workflow if isinstance(workflow, str) else sources.register(app_name, workflow)
    builder = Builder(plan, reference, app_name, prefix, start, default_args, saved)
    tasks: dict[str, Any] = {}
    groups: dict[str, TaskGroup] = {}
    tooltips = _tooltips(plan)
    for task in plan.tasks:
        group = task.task_id.rpartition(".")[0]
        try:
            with _open_group(group, groups, tooltips):
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


def _open_group(path: str, groups: dict[str, TaskGroup], tooltips: Mapping[str, str]) -> contextlib.AbstractContextManager[Any]:
    """The task group at ``path`` (``outer.inner``), made with those around it when it is new; nothing for no path."""
    if not path:
        return contextlib.nullcontext()
    if path not in groups:
        around, _, name = path.rpartition(".")
        with _open_group(around, groups, tooltips):
            groups[path] = TaskGroup(group_id=name, tooltip=tooltips.get(path, ""))
    return groups[path]


def _tooltips(plan: Plan) -> dict[str, str]:
    """What the UI says of each task group: the first of its tasks that says something."""
    found: dict[str, str] = {}
    for task in plan.tasks:
        if text := kinds.of_task(task).tooltip(task):
            found.setdefault(task.task_id.rpartition(".")[0], text)
    return found
