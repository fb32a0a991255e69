"""Seconds and processor time per task, on a real Airflow."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from adk_airflow.local import StandaloneAirflow
from adk_airflow.local.run import watch_run
from benchmarks.celery import celery_worker
from benchmarks.measure import Row, alternate

DAGS = Path(__file__).parent / "dags"
TASKS = 20


@contextlib.contextmanager
def airflow(executor: str, settings: Mapping[str, str]) -> Iterator[tuple[StandaloneAirflow, psutil.Process]]:
    """An Airflow, and the process whose children run the tasks."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, contextlib.ExitStack() as stack:
        home = Path(folder)
        if executor == "CeleryExecutor":
            started, parent = stack.enter_context(celery_worker(home, DAGS, settings))
        else:
            started = stack.enter_context(StandaloneAirflow(home, DAGS, settings=settings))
            parent = next(psutil.Process(ref.pid) for ref in started.components if ref.name == "scheduler")
        for dag_id in ("adk_chain", "plain_chain"):
            started.client.wait_for_dag(dag_id, since=started.started_at, timeout=180)
            started.client.unpause(dag_id)
        yield started, parent


def chain(executor: str, rounds: int, settings: Mapping[str, str] | None = None) -> list[Row]:
    """A chain of 20 trivial nodes against the same chain of plain tasks."""
    processor: dict[str, list[float]] = {"adk_chain": [], "plain_chain": []}
    with airflow(executor, settings or {}) as (started, parent):

        def run(dag_id: str) -> float:
            before = _processor_seconds(parent)
            run_id = started.client.trigger(dag_id)["dag_run_id"]
            view = watch_run(started.client, dag_id, run_id, timeout=300, check=started.check, interval=0.2)
            assert view.state == "success", view.failed_instances
            time.sleep(0.5)  # until the last processes have been waited for
            processor[dag_id].append((_processor_seconds(parent) - before) / TASKS)
            seconds = view.seconds
            assert seconds is not None
            return seconds / TASKS

        wall = alternate({dag_id: lambda dag_id=dag_id: run(dag_id) for dag_id in processor}, rounds)  # type: ignore[misc]
    name, against = f"per task, chain of {TASKS} trivial nodes, {executor}", "the same chain of plain @task"
    return [
        Row(f"seconds {name}", against, "s", wall["adk_chain"], wall["plain_chain"], 1.10),
        Row(f"CPU seconds {name}", against, "s", processor["adk_chain"][1:], processor["plain_chain"][1:], 1.2),
    ]


def _processor_seconds(parent: psutil.Process) -> float:
    """What the processes below ``parent``, and those that they waited for, have used; not the parent itself."""
    total = 0.0
    for process in parent.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total
