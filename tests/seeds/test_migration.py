"""docs/migration.md: what older spellings do in today's ADK."""

from __future__ import annotations

import importlib
from typing import Any

import google.adk.workflow as public
import pytest
from google.adk.workflow import RetryConfig, Workflow, node
from google.adk.workflow._parallel_worker import _ParallelWorker

from adk_airflow.testing import run_workflow


async def echo(ctx: Any, node_input: Any) -> Any:
    yield node_input


def test_retry_config_ignores_old_names() -> None:
    attempts: list[int] = []

    def fail() -> None:
        attempts.append(1)
        raise ValueError("always")

    old: dict[str, Any] = {"max_retries": 1, "backoff_multiplier": 9.0}
    config = RetryConfig(**old, initial_delay=0, jitter=0)
    assert config == RetryConfig(initial_delay=0, jitter=0)

    run = run_workflow(Workflow(name="old", edges=[("START", node(fail, retry_config=config))]))

    assert run.error == ("ValueError", "always")
    assert len(attempts) == 5


def test_the_parallel_workers_limit_has_another_name() -> None:
    old: dict[str, Any] = {"max_concurrency": 3}

    with pytest.raises(TypeError, match="max_concurrency"):
        _ParallelWorker(node=echo, **old)
    with pytest.raises(TypeError, match="max_concurrency"):
        node(echo, parallel_worker=True, **old)

    worker: Any = node(echo, parallel_worker=True, max_parallel_workers=3)
    assert (type(worker), worker.max_parallel_workers) == (_ParallelWorker, 3)


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("_node", ["node", "Node"]),
        ("_workflow", ["Workflow"]),
        ("_base_node", ["START", "BaseNode"]),
        ("_join_node", ["JoinNode"]),
        ("_retry_config", ["RetryConfig"]),
        ("_graph", ["Edge", "DEFAULT_ROUTE"]),
    ],
)
def test_private_modules_hold_the_public_names(module: str, names: list[str]) -> None:
    private = importlib.import_module(f"google.adk.workflow.{module}")

    for name in names:
        assert getattr(private, name) is getattr(public, name)
    assert not hasattr(public, "Graph")
