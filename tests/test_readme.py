"""What the README shows is true: its example runs, its files exist, its table is the demo's graph."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from adk_airflow import plan_workflow
from adk_airflow.testing import run_workflow

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def example() -> Any:
    """The workflow of the README, made from its text."""
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names: dict[str, Any] = {"__name__": "readme"}
    exec(compile(next(block for block in blocks if "root_agent" in block and "def " in block), "README.md", "exec"), names)
    return names["root_agent"]


def test_the_example_runs_and_routes() -> None:
    urgent = run_workflow(example(), input="site is down; new mouse")
    calm = run_workflow(example(), input="new mouse")

    assert urgent.output == "paged for ['site is down']"
    assert urgent.task_states["score.run"] == ["success", "success"]
    assert (calm.output, calm.task_states["page"]) == ("filed", ["skipped"])


def test_the_dag_file_of_the_example_makes_its_dag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = re.findall(r"```python\n# (dags/\S+)\n(.*?)```", README, re.DOTALL)
    for name, text in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path / "dags"))
    dag = runpy.run_path(str(tmp_path / "dags" / "tickets.py"))["dag"]

    assert sorted(name for name, _ in files) == ["dags/my_agents/tickets.py", "dags/tickets.py"]
    assert dag.dag_id == "tickets"
    assert "score.run" in dag.task_ids


def test_every_file_it_links_to_exists() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)|src=\"([^\"]+)\"", README)

    missing = [link for pair in links for link in pair if link and not (ROOT / link).exists()]

    assert len(links) > 10
    assert missing == []


def test_every_task_of_the_demo_is_in_its_table() -> None:
    import sys

    sys.path.append(str(ROOT / "dags"))
    try:
        tasks = plan_workflow("adk_workflows.batch_retrieval:root_agent").tasks
    finally:
        sys.path.remove(str(ROOT / "dags"))

    assert [task.task_id for task in tasks if f"`{task.task_id.rpartition('.')[2]}`" not in README] == []
