"""Makes the Airflow tasks of a Plan, in the DAG or task group that is open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow.sdk import Label, TaskGroup

from adk_airflow.errors import NodeOverrideError
from adk_airflow.operators.node import AdkNodeOperator, AdkRegionOperator
from adk_airflow.operators.parallel import AdkCollectOperator, AdkItemOperator, AdkItemsOperator
from adk_airflow.operators.workflow import AdkResultOperator, AdkWorkflowOperator
from adk_airflow.translator.plan import Plan, PlannedTask


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
        given: dict[str, Any] = {
            "workflow": self.reference,
            "node": task.node,
            "trigger_rule": task.trigger_rule,
        }
        if task.starts:
            given |= {"starts": True, **self.start}
        doc = "\n\n".join(text for text in (task.description, task.why and f"*{task.why}*") if text)
        return {**given, "doc_md": doc or None}

    def exits(self, *nodes: str) -> dict[str, str]:
        return {name: self.full(task_id) for name, task_id in self.plan.ancestors(*nodes).items()}

    def skips(self, *nodes: str) -> dict[str, str]:
        """The nodes whose only way in is from the task of ``nodes``; START's own are never skipped."""
        started = {task.node for task in self.plan.tasks if task.starts}
        return {
            name: self.full(self.plan.entries[name])
            for name, before in self.plan.predecessors.items()
            if before and set(before) <= set(nodes) and name not in nodes and name not in started
            if not self._in_region(name)
        }

    def _in_region(self, name: str) -> bool:
        # A region may be entered at several nodes, so that one of them was not triggered does not skip it.
        return any(name in task.nodes for task in self.plan.tasks if task.kind == "region")

    def make(self, task: PlannedTask) -> Any:
        """The operator of one planned task."""
        local_id = task.task_id.rpartition(".")[2]
        common = {"task_id": local_id, **self.common(task)}
        names = task.nodes if task.kind == "region" else (task.node,)
        place = {"exits": self.exits(*names), "skips": self.skips(*names)}
        if task.kind == "node":
            return AdkNodeOperator(**{**common, **place, **task.arguments})
        if task.kind == "region":
            return AdkRegionOperator(**{**common, **place, "region": task.nodes, **task.arguments})
        if task.kind == "items":
            return AdkItemsOperator(**common, exits=place["exits"], batch_size=task.batch_size)
        if task.kind == "collect":
            items, run = (self.full(f"{task.node}.{part}") for part in ("items", "run"))
            return AdkCollectOperator(**common, **place, items_task=items, run_task=run)
        if task.kind == "result":
            exits = {name: self.full(task_id) for name, task_id in self.plan.exits.items()}
            return AdkResultOperator(**common, terminals=task.nodes, exits=exits)
        assert task.kind == "workflow"
        common.pop("starts")
        return AdkWorkflowOperator(**{**common, **task.arguments})

    def make_mapped(self, task: PlannedTask, items: Any) -> Any:
        """The task that is mapped over what ``items`` returns."""
        common = {"task_id": task.task_id.rpartition(".")[2], **self.common(task)}
        arguments = {
            **common,
            "items_task": self.full(f"{task.node}.items"),
            "map_index_template": "{{ adk_label }}",
            "max_active_tis_per_dagrun": task.max_active,
            **task.arguments,
        }
        arguments = {key: value for key, value in arguments.items() if value is not None}
        return AdkItemOperator.partial(**arguments).expand(element=items.output)


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
    builder = _Builder(plan, reference, prefix, start or {})
    tasks: dict[str, Any] = {}
    groups: dict[str, TaskGroup] = {}
    for task in plan.tasks:
        name, _, _ = task.task_id.rpartition(".")
        try:
            if not name:
                tasks[task.task_id] = builder.make(task)
            else:
                if name not in groups:
                    groups[name] = TaskGroup(group_id=name, tooltip=f"parallel worker {name}")
                with groups[name]:
                    tasks[task.task_id] = (
                        builder.make_mapped(task, tasks[f"{name}.items"]) if task.kind == "item" else builder.make(task)
                    )
        except TypeError as error:
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
