"""Parallel workers: a group of three tasks, of which the middle one is mapped over the items; or one task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from adk_airflow.translator import overrides
from adk_airflow.translator.kinds.base import Kind, Making, Place, trigger_rule
from adk_airflow.translator.plan import PlannedTask, Upstream

if TYPE_CHECKING:
    from google.adk.workflow import BaseNode

    from adk_airflow.translator.build import Builder


class ParallelWorker(Kind):
    """``node(..., parallel_worker=True)``: ``items`` makes the list, ``run`` is mapped over it, ``collect`` gathers."""

    name = "parallel_worker"
    plural = "parallel workers"
    colors = ("#fef3c7", "#b45309")
    modes = ("mapped", "embedded")
    task_kinds = ("items", "item", "collect")
    options = frozenset({"batch_size", "map_index_template"})

    def matches(self, node: BaseNode) -> bool:
        """Whether an ADK node is of this kind."""
        from adk_airflow.runtime.adk.graph import parallel_worker_of

        return parallel_worker_of(node) is not None

    def ends(self, place: Place) -> tuple[str, str] | None:
        """The names of the first and the last task; None where all items run in one."""
        return None if place.embedded or place.first.policy_covers_list else ("items", "collect")

    def why(self, place: Place) -> str:
        """Why all items run in one task."""
        why = "its retry_config or timeout covers the whole list" if place.first.policy_covers_list else "marked embedded"
        return f"{why}: ADK's own parallel worker runs all items in this task"

    def plan(self, place: Place, making: Making) -> None:
        """Adds its tasks."""
        if self.ends(place) is None:
            making.tasks.append(self.one_task(place, making))
            return
        node, upstream = place.first, making.upstream(place)
        arguments = overrides.of_region(place.graph, place.names, place.options)
        size = arguments.pop("batch_size", None)
        items, run, collect = (f"{place.task_id}.{name}" for name in ("items", "run", "collect"))
        most = f", at most {node.max_parallel_workers} at once" if node.max_parallel_workers else ""
        making.tasks += [
            PlannedTask(
                task_id=items,
                node=node.name,
                kind="items",
                node_kind=node.label,
                trigger_rule=trigger_rule(place, upstream),
                upstream=upstream,
                scope=place.scope,
                starts=place.starts(),
                batch_size=size,
                why="Makes the list that the next task is mapped over: the list it is given, or one item if it is given no"
                " list.",
            ),
            PlannedTask(
                task_id=run,
                node=node.name,
                kind="item",
                node_kind=node.item_label,
                upstream=(Upstream(items),),
                scope=place.scope,
                batch_size=size,
                max_active=_tasks_at_once(node.max_parallel_workers, size),
                arguments={**arguments, **making.budgets([place.path(node.name)])},
                why=f"Runs once per item{most}.",
                description=node.description,
                doc=node.doc,
            ),
            PlannedTask(
                task_id=collect,
                node=node.name,
                kind="collect",
                node_kind=node.label,
                # An empty list skips the mapped task, and the list of its results is then empty too.
                trigger_rule="none_failed_min_one_success",
                upstream=(Upstream(items), Upstream(run)),
                scope=place.scope,
                why="Puts the results in the order of the list; an empty list, which skips the task before, gives an empty"
                " one.",
            ),
        ]

    def operator(self, task: PlannedTask) -> type:
        """The class of the task's operator."""
        from adk_airflow.operators import worker

        own = {"items": worker.AdkItemsOperator, "item": worker.AdkItemOperator, "collect": worker.AdkCollectOperator}
        return own.get(task.kind) or super().operator(task)

    def build(self, builder: Builder, task: PlannedTask, arguments: Mapping[str, Any], made: Mapping[str, Any]) -> Any:
        """Makes the task; the mapped one from the list that the task before it makes."""
        if task.kind == "items":
            arguments = {**arguments, "batch_size": task.batch_size}
        if task.kind != "item":
            return super().build(builder, task, arguments, made)
        from airflow.sdk import DAG

        operator: Any = self.operator(task)
        given = {
            **arguments,
            "spec": builder.spec(task),
            "map_index_template": "{{ adk_label }}",
            "max_active_tis_per_dagrun": task.max_active,
            **task.arguments,
        }
        if task.max_active is not None and (default := builder.default_args.get("max_active_tis_per_dagrun")) is not None:
            # The default is a limit for every task, ADK's one for this: the lower one counts.
            given["max_active_tis_per_dagrun"] = min(given["max_active_tis_per_dagrun"], default)
        given = {key: value for key, value in given.items() if value is not None}
        if task.arguments:
            # Airflow itself checks a mapped task's arguments only when it runs.
            checked = DAG("checked", schedule=None, auto_register=False)
            operator(**given, dag=checked, task_group=checked.task_group)
        return operator.partial(**given).expand(element=made[task.upstream[0].task_id].output)

    def runs_several(self, task: PlannedTask) -> bool:
        """Where all items run in one task."""
        return task.kind == "node"

    def notes(self, task: PlannedTask) -> list[str]:
        """What is special about the task, a line each."""
        if task.kind == "item":
            return [f"mapped: a task instance per {_share(task)}{_at_once(task)}"]
        size = [f"batched: {task.batch_size} items per task instance"] if task.batch_size is not None else []
        return super().notes(task) + size

    def subtitle(self, task: PlannedTask) -> str:
        """The second line of the task's box in a drawing."""
        return f"{task.node_kind}, mapped{_at_once(task)}" if task.kind == "item" else super().subtitle(task)

    def tooltip(self, task: PlannedTask) -> str:
        """What the UI says of the group that the mapped task belongs to."""
        if task.kind != "item":
            return ""
        return f"Parallel worker: one task per {_share(task)}{_at_once(task)}. {task.description}".strip()


def _share(task: PlannedTask) -> str:
    return f"{task.batch_size} items" if task.batch_size not in (None, 1) else "item"


def _tasks_at_once(most: int | None, batch_size: int | None) -> int | None:
    """How many mapped tasks may run at once, so that no more than ``most`` items do; each task runs its share of them."""
    return most and max(1, most // (batch_size or 1))


def _at_once(task: PlannedTask) -> str:
    return f", at most {task.max_active} at once" if task.max_active is not None else ""
