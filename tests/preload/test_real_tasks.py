"""On a real scheduler: a task finds every library that it needs imported already."""

from __future__ import annotations

from adk_airflow.local import StandaloneAirflow
from tests.preload.observed import run_imports


def test_no_task_imports_a_library(scheduler: StandaloneAirflow) -> None:
    found = run_imports(scheduler)

    assert {"agent-1", "tool-1", "whole.imports-1", "tasks.turn_loop-1", "tasks.workers.run1"} <= set(found)
    imported = {task: names for task, names in found.items() if names}
    assert imported == {}, "the list is stale: python -m tests.preload"
