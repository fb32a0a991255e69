"""Makes the Airflow tasks of a Plan, in the DAG or task group that is open."""

from __future__ import annotations

import contextlib
import difflib
import functools
import inspect
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from airflow.sdk import DAG, Label, TaskGroup

from adk_airflow.errors import NodeOverrideError
from adk_airflow.operators.nested import AdkNestedInputOperator, AdkNestedOutputOperator
from adk_airflow.operators.node import AdkNodeOperator, AdkRegionOperator
from adk_airflow.operators.parallel import AdkCollectOperator, AdkItemOperator, AdkItemsOperator
from adk_airflow.operators.workflow import AdkResultOperator, AdkWorkflowOperator
from adk_airflow.translator.plan import Plan, PlannedTask, path_of


@dataclass
class Built:
    """The tasks that were made, by the ids that the plan gives them."""

    tasks: dict[str, Any]
    result: Any


@dataclass(frozen=True)
class _Builder:
    plan: Plan
    reference: str
    prefix: str
    start: Mapping[str, Any]

    def full(self, task_id: str) -> str:
        return self.prefix + task_id

    def common(self, task: PlannedTask) -> dict[str, Any]:
        """What every operator is given."""
        given: dict[str, Any] = {
            "task_id": task.task_id.rpartition(".")[2],
            "workflow": self.reference,
            "node": task.node,
            "scope": list(task.scope),
            "trigger_rule": task.trigger_rule,
        }
        if task.starts:
            given |= {"starts": True, **self.start}
        doc = "\n\n".join(text for text in (task.description, task.why and f"*{task.why}*") if text)
        return {**given, "doc_md": doc or None}

    def place(self, task: PlannedTask) -> dict[str, dict[str, str]]:
        """Whom the task reads, and whom it skips, by node and full task id."""
        names = task.nodes if task.kind == "region" else (task.node,)
        exits = self.plan.ancestors(task.scope, names)
        return {"exits": self.full_ids(exits), "skips": self.full_ids(self._skips(task.scope, names))}

    def full_ids(self, ids: Mapping[str, str]) -> dict[str, str]:
        return {name: self.full(task_id) for name, task_id in ids.items()}

    def _skips(self, scope: tuple[str, ...], names: Collection[str]) -> dict[str, str]:
        """The nodes whose only way in is from these; START's own are never skipped."""
        apart = {task.node for task in self.plan.tasks if task.starts and task.scope == scope}
        # A region may be entered at several nodes, so that one of them was not triggered does not skip it.
        apart |= {node for task in self.plan.tasks if task.kind == "region" and task.scope == scope for node in task.nodes}
        found = {}
        for name in self.plan.exits_in(scope):
            before = self.plan.predecessors.get(path_of(scope, name), ())
            if before and set(before) <= set(names) and name not in names and name not in apart:
                found[name] = self.plan.entries[path_of(scope, name)]
        return found

    def make(self, task: PlannedTask, made: Mapping[str, Any]) -> Any:
        """The operator of one planned task; ``made`` are those before it."""
        common = self.common(task)
        if task.kind == "item":
            return self._make_mapped(task, made)
        if task.kind == "result":
            return AdkResultOperator(**common, terminals=task.nodes, exits=self.full_ids(self.plan.exits_in(())))
        if task.kind == "workflow":
            common.pop("starts")
            return AdkWorkflowOperator(**{**common, **task.arguments})
        place = self.place(task)
        if task.kind == "node":
            return AdkNodeOperator(**{**common, **place, "kind": task.node_kind, **task.arguments})
        if task.kind == "region":
            return AdkRegionOperator(**{**common, **place, "region": task.nodes, **task.arguments})
        if task.kind == "items":
            return AdkItemsOperator(**common, exits=place["exits"], batch_size=task.batch_size)
        if task.kind == "collect":
            items, run = (self.full(before.task_id) for before in task.upstream)
            return AdkCollectOperator(**common, **place, items_task=items, run_task=run)
        if task.kind == "input":
            return AdkNestedInputOperator(**common, exits=place["exits"])
        assert task.kind == "output", task.kind
        inner_exits = self.full_ids(self.plan.exits_in((*task.scope, task.node)))
        return AdkNestedOutputOperator(**common, **place, terminals=task.nodes, inner_exits=inner_exits)

    def _make_mapped(self, task: PlannedTask, made: Mapping[str, Any]) -> Any:
        items = task.upstream[0].task_id
        arguments = {
            **self.common(task),
            "items_task": self.full(items),
            "map_index_template": "{{ adk_label }}",
            "max_active_tis_per_dagrun": task.max_active,
            **task.arguments,
        }
        arguments = {key: value for key, value in arguments.items() if value is not None}
        if task.arguments:
            # Airflow itself checks a mapped task's arguments only when it runs.
            checked = DAG("checked", schedule=None, auto_register=False)
            AdkItemOperator(**arguments, dag=checked, task_group=checked.task_group)
        return AdkItemOperator.partial(**arguments).expand(element=made[items].output)


def build(plan: Plan, reference: str, *, prefix: str = "", start: Mapping[str, Any] | None = None) -> Built:
    """Makes the tasks of ``plan``.

    Args:
        plan: What to make.
        reference: Where a task finds the workflow (``runtime.source``).
        prefix: Full id of the open task group with a dot, or nothing.
        start: ``input`` and ``state`` for the tasks that START has an edge to.

    Raises:
        NodeOverrideError: Airflow refuses an argument that the user gave for a node.
    """
    check_names(plan)
    builder = _Builder(plan, reference, prefix, start or {})
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
                f"workflow {plan.workflow!r}, node {task.node!r}: Airflow refuses {dict(task.arguments)!r}: {error}"
            ) from error
    for task in plan.tasks:
        for before in task.upstream:
            if task.kind == "item":
                continue  # mapping over its output made this dependency
            label = Label(before.label) if before.label else None
            tasks[before.task_id].set_downstream(tasks[task.task_id], edge_modifier=label)
    return Built(dict(tasks), tasks[plan.result])


_OPERATORS = {"node": AdkNodeOperator, "region": AdkRegionOperator, "item": AdkItemOperator, "workflow": AdkWorkflowOperator}


@functools.cache
def _argument_names(kind: str) -> frozenset[str]:
    """All that the operator of this kind of task and the classes it inherits from take."""
    classes = [cls for cls in _OPERATORS[kind].__mro__ if "__init__" in vars(cls) and cls is not object]
    return frozenset(name for cls in classes for name in inspect.signature(vars(cls)["__init__"]).parameters)


def check_names(plan: Plan) -> None:
    """Refuses a misspelt argument with the nearest right one.

    Raises:
        NodeOverrideError: The operator of a task has no such argument.
    """
    for task in plan.tasks:
        known = _argument_names(task.kind) if task.arguments else frozenset()
        for name in task.arguments:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f" Did you mean {near[0]!r}?" if near else ""
                raise NodeOverrideError(
                    f"workflow {plan.workflow!r}, node {task.node!r}: Airflow's operators have no argument {name!r}.{hint}"
                )


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
    for task in plan.tasks:
        if task.kind == "item" and task.task_id.rpartition(".")[0] == path:
            limit = f", at most {task.max_active} at once" if task.max_active else ""
            return f"Parallel worker: one task per item{limit}. {task.description}".strip()
    return f"Nested workflow {path.rpartition('.')[2]}"
