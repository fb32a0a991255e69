"""Following one DAG run: what each task did, in the order of the graph."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from graphlib import CycleError, TopologicalSorter
from typing import Any

from adk_airflow.local.client import AirflowClient, Json
from adk_airflow.local.errors import RunTimeoutError

FINISHED_TASK = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})
FINISHED_RUN = frozenset({"success", "failed"})


@dataclass(frozen=True)
class TaskView:
    """One task of a run with all its instances.

    Attributes:
        task_id: With its task groups, e.g. ``retrieve.run``.
        instances: Airflow's task instances; several for a mapped task, none before it was expanded.
    """

    task_id: str
    instances: tuple[Json, ...] = ()

    @property
    def states(self) -> Counter[str]:
        """How many instances are in which state (``none`` before it was scheduled)."""
        return Counter(str(instance["state"] or "none") for instance in self.instances)

    @property
    def is_mapped(self) -> bool:
        """Whether it ran once per item."""
        return any(instance["map_index"] >= 0 for instance in self.instances)

    @property
    def finished(self) -> int:
        """How many instances are done, in whatever way."""
        return sum(count for state, count in self.states.items() if state in FINISHED_TASK)

    @property
    def is_finished(self) -> bool:
        """Whether no instance is left to run."""
        return bool(self.instances) and self.finished == len(self.instances)

    @property
    def text(self) -> str:
        """Its state for people: ``success``, ``skipped``, ``success 27/27``, ``failed 1/27, success 26/27``."""
        counts = self.states
        if not counts:
            return "none"
        if not self.is_mapped:
            return next(iter(counts))
        return ", ".join(f"{state} {count}/{len(self.instances)}" for state, count in sorted(counts.items()))

    @property
    def seconds(self) -> float | None:
        """From the start of the first instance to the end of the last; None if none has run."""
        began = [_date(instance["start_date"]) for instance in self.instances if instance["start_date"]]
        ended = [_date(instance["end_date"]) for instance in self.instances if instance["end_date"]]
        if not began or "skipped" in self.states or "upstream_failed" in self.states:
            return None
        return ((max(ended) if self.is_finished else datetime.now(UTC)) - min(began)).total_seconds()


@dataclass(frozen=True)
class RunView:
    """One look at a DAG run.

    Attributes:
        run: Airflow's DAG run.
        tasks: All tasks of the DAG, in the order of the graph.
    """

    run: Json
    tasks: tuple[TaskView, ...] = field(default=())

    @property
    def state(self) -> str:
        """``queued``, ``running``, ``success`` or ``failed``."""
        return str(self.run["state"])

    @property
    def is_finished(self) -> bool:
        """Whether it succeeded or failed."""
        return self.state in FINISHED_RUN

    @property
    def seconds(self) -> float | None:
        """From its start to its end (or to now); None before its start."""
        if not self.run["start_date"]:
            return None
        end = _date(self.run["end_date"]) if self.run["end_date"] else datetime.now(UTC)
        return (end - _date(self.run["start_date"])).total_seconds()

    @property
    def failed_instances(self) -> list[Json]:
        """The task instances that failed by themselves, first to fail first."""
        failed = [i for task in self.tasks for i in task.instances if i["state"] == "failed"]
        return sorted(failed, key=lambda instance: str(instance["end_date"] or ""))


def look(client: AirflowClient, dag_id: str, run_id: str, order: list[str]) -> RunView:
    """The run as it is now; ``order`` are the ids of the DAG's tasks as ``graph_order`` gives them."""
    # The run first: when it says that it is finished, the instances that are read after it are final.
    run = client.run(dag_id, run_id)
    instances: dict[str, list[Json]] = {task_id: [] for task_id in order}
    for instance in client.task_instances(dag_id, run_id):
        instances.setdefault(instance["task_id"], []).append(instance)
    return RunView(
        run,
        tuple(
            TaskView(task_id, tuple(sorted(found, key=lambda instance: instance["map_index"])))
            for task_id, found in instances.items()
        ),
    )


def graph_order(tasks: list[Json]) -> list[str]:
    """The ids of a DAG's tasks, each after all its upstream tasks."""
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for task in tasks:
        sorter.add(task["task_id"])
        for downstream in task["downstream_task_ids"]:
            sorter.add(downstream, task["task_id"])
    try:
        return list(sorter.static_order())
    except CycleError:  # Airflow refuses such a DAG; the order is only for show
        return [str(task["task_id"]) for task in tasks]


def watch_run(
    client: AirflowClient,
    dag_id: str,
    run_id: str,
    *,
    timeout: float,
    on_look: Callable[[RunView], Any] = lambda view: None,
    check: Callable[[], None] = lambda: None,
    interval: float = 0.5,
) -> RunView:
    """Looks at a run again and again until it is finished.

    Args:
        timeout: Seconds until giving up.
        on_look: Called with each look, the last one included.
        check: Called before each look; may raise to end the watching, e.g. ``StandaloneAirflow.check``.
        interval: Seconds between two looks.

    Returns:
        The finished run, successful or failed.

    Raises:
        RunTimeoutError: It was not finished in time; the message names the tasks that were not.
    """
    order = graph_order(client.tasks(dag_id))
    deadline = time.monotonic() + timeout
    while True:
        check()
        view = look(client, dag_id, run_id, order)
        on_look(view)
        if view.is_finished:
            return view
        if time.monotonic() > deadline:
            open_tasks = ", ".join(f"{task.task_id} ({task.text})" for task in view.tasks if not task.is_finished)
            raise RunTimeoutError(
                f"The run {run_id!r} of the DAG {dag_id!r} was still {view.state} after {timeout:.0f} s. "
                f"Not finished: {open_tasks or 'no task'}. Give it longer with --timeout."
            )
        time.sleep(interval)


def _date(text: str) -> datetime:
    return datetime.fromisoformat(text)
