"""A batch of a parallel worker's items keeps the worker's own limit."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from google.adk import Workflow
from google.adk.workflow import START, node

from adk_airflow import AdkDag
from adk_airflow.testing import run_dag


def peak(most: int | None, batch_size: int | None, count: int, **more_arguments: Any) -> tuple[int, int | None]:
    """How many items ran at once in a task, and how many tasks may run at once."""
    now: set[int] = set()
    seen: list[int] = []

    async def body(node_input: int) -> int:
        now.add(node_input)
        for _ in range(20):
            seen.append(len(now))
            await asyncio.sleep(0)
        now.discard(node_input)
        return node_input

    more: dict[str, Any] = {} if most is None else {"max_parallel_workers": most}
    each = node(body, name="each", parallel_worker=True, **more)
    wf = Workflow(name="wf", edges=[(START, node(lambda: list(range(count)), name="items"), each)])
    arguments = {**more_arguments, **({} if batch_size is None else {"batch_size": batch_size})}
    dag = AdkDag(wf, dag_id=f"limit_{most}_{'_'.join(map(str, arguments.values()))}", nodes={"each": arguments})
    run = run_dag(dag)
    assert run.output == list(range(count))
    return max(seen), dag.get_task("each.run").max_active_tis_per_dagrun


@pytest.mark.parametrize(
    ("most", "batch_size", "in_a_task", "tasks"),
    [(1, 5, 1, 1), (2, 5, 2, 1), (4, 2, 2, 2), (5, 2, 2, 2), (3, 2, 2, 1), (3, None, 1, 3), (None, 5, 5, None)],
)
def test_at_most_so_many_at_once(most: int | None, batch_size: int | None, in_a_task: int, tasks: int | None) -> None:
    """In all tasks together: each takes its share."""
    assert peak(most, batch_size, 5) == (in_a_task, tasks)


def test_more_tasks_at_once_take_smaller_shares() -> None:
    assert peak(4, 5, 5, max_active_tis_per_dagrun=2) == (2, 2)


def test_batches_that_airflow_asks_for_keep_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", "2")

    assert peak(3, None, 6) == (1, 3)
