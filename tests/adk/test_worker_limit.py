"""A batch of a parallel worker's items keeps the worker's own limit."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from google.adk import Workflow
from google.adk.workflow import START, node

from adk_airflow import AdkDag
from adk_airflow.testing import run_dag


def peak(most: int | None, batch_size: int, count: int) -> int:
    """How many items ran at once."""
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
    run = run_dag(AdkDag(wf, dag_id=f"limit_{most}_{batch_size}", nodes={"each": {"batch_size": batch_size}}))
    assert run.output == list(range(count))
    return max(seen)


@pytest.mark.parametrize(("most", "batch_size", "expected"), [(1, 5, 1), (2, 5, 2), (4, 2, 2), (None, 5, 5)])
def test_at_most_so_many_at_once(most: int | None, batch_size: int, expected: int) -> None:
    assert peak(most, batch_size, 5) == expected
