"""Of a workflow given by name: parsing its DAG file imports neither google-adk nor the workflow, and sees every change."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.translator.forking import Forking

Python = Callable[..., Any]

FLOW = """
from google.adk.workflow import JoinNode, Workflow, node
from flows.parts import names

def step(node_input):
    return node_input

meet = JoinNode(name="meet")
nodes = [node(step, name=name) for name in names()]
inner = Workflow(name="inner", description="Inside.", edges=[("START", node(step, name="deep"))])
root_agent = Workflow(
    name="saved", description="A workflow.", edges=[("START", *nodes, meet), (nodes[0], {True: inner, 1.0 and "y": meet})]
)
"""
PARTS = """
from pathlib import Path

import pydantic

def names():
    return Path(__file__).with_name("names.txt").read_text().split()
"""
# What a parse gives: the ids of the tasks, whether the workflow and ADK were imported, the fingerprint that tasks compare.
PARSE = """
import json, sys
sys.path.insert(0, sys.argv[1])
from airflow.sdk import DAG
from adk_airflow import AdkDag
dag = AdkDag("flows.flow:root_agent", dag_id="saved", schedule=None)
tasks = [task.task_id for task in dag.topological_sort()]
spec = dag.get_task("one").spec
print(json.dumps({
    "tasks": tasks,
    "imported": [name for name in ("flows", "flows.flow", "google.adk", "google.genai") if name in sys.modules],
    "plan": dag.plan.to_json(),
    "fingerprint": spec.fingerprint,
}))"""


@pytest.fixture
def dags(tmp_path: Path) -> Path:
    folder = tmp_path / "dags"
    write(folder / "flows" / "__init__.py", "")
    write(folder / "flows" / "flow.py", FLOW)
    write(folder / "flows" / "parts.py", PARTS)
    write(folder / "flows" / "names.txt", "one two")
    return folder


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture(scope="module")
def forking() -> Iterator[Forking]:
    with Forking() as process:
        yield process


@pytest.fixture
def python(forking: Forking) -> Python:
    """Runs code in a process of its own; AIRFLOW_HOME lies beside the DAGs."""

    def run(code: str, dags: Path, **settings: str) -> Any:
        return forking.python(code, str(dags), **{"AIRFLOW_HOME": str(dags.parent / "home"), **settings})

    return run


def test_the_second_parse_imports_neither_adk_nor_the_workflow_and_makes_the_same_dag(dags: Path, python: Python) -> None:
    first, second = python(PARSE, dags), python(PARSE, dags)

    assert first["imported"] == ["flows", "flows.flow", "google.adk", "google.genai"]
    assert second["imported"] == []
    assert (second["tasks"], second["plan"]) == (first["tasks"], first["plan"])
    assert not first["fingerprint"]
    assert second["fingerprint"]


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("flows/flow.py", 'name="meet"', 'name="end"'),
        ("flows/parts.py", ".split()", ".split()[::-1]"),
        ("flows/names.txt", "two", "two three"),
        ("flows/__init__.py", "", "import flows.parts; flows.parts.names = lambda: ['one', 'four']"),
    ],
)
def test_a_change_of_a_module_of_what_it_imports_and_of_what_it_reads_is_seen_at_the_next_parse(
    file: str, old: str, new: str, dags: Path, python: Python
) -> None:
    before = python(PARSE, dags)
    write(dags / file, (dags / file).read_text().replace(old, new, 1))
    after = python(PARSE, dags)

    assert after["tasks"] != before["tasks"]
    assert after["imported"]
    again = python(PARSE, dags)
    assert (again["imported"], again["tasks"]) == ([], after["tasks"])


def test_a_module_that_was_not_there_is_seen_when_it_comes(dags: Path, python: Python) -> None:
    write(dags / "flows" / "parts.py", "def names():\n    try:\n        from flows import local\n    except ImportError:\n"
          "        return ['one', 'two']\n    return local.names\n")  # fmt: skip
    before = python(PARSE, dags)
    assert python(PARSE, dags)["imported"] == []
    write(dags / "flows" / "local.py", "names = ['one', 'local']")

    assert "local" not in before["tasks"]
    assert "local" in python(PARSE, dags)["tasks"]


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"format": 1}'])
def test_a_damaged_file_is_left_out_and_written_anew(damage: str, dags: Path, python: Python) -> None:
    first = python(PARSE, dags)
    (path,) = (dags.parent / "home" / "adk_plans").rglob("*.json")
    write(path, damage)

    assert python(PARSE, dags)["tasks"] == first["tasks"]
    assert python(PARSE, dags)["imported"] == []


@pytest.mark.parametrize("package", ["google-adk", "apache-airflow-core", "adk-airflow", "python", "pydantic"])
def test_a_file_of_other_versions_of_what_the_workflow_imports_is_not_used(package: str, dags: Path, python: Python) -> None:
    python(PARSE, dags)
    (path,) = (dags.parent / "home" / "adk_plans").rglob("*.json")
    text = path.read_text()
    assert f'"{package}": "' in text
    write(path, text.replace(f'"{package}": "', f'"{package}": "0.'))

    assert python(PARSE, dags)["imported"]


def test_it_can_be_switched_off(dags: Path, python: Python) -> None:
    python(PARSE, dags)

    assert python(PARSE, dags, AIRFLOW__ADK_AIRFLOW__SAVE_PLANS="False")["imported"]


def test_what_is_written_beside_the_dags_serves_where_nothing_may_be_written(
    dags: Path, python: Python, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "adk_airflow.cli", "plan", "flows.flow:root_agent", "--write"]
    done = subprocess.run(command, cwd=dags, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == f"Written: {dags / 'adk_plans' / 'flows.flow-root_agent.json'}\n"
    elsewhere = tmp_path / "elsewhere" / "dags"
    elsewhere.parent.mkdir()
    dags.rename(elsewhere)
    write(elsewhere.parent / "home", "no folder, so nothing can be written in it")

    settings = {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "sqlite:////tmp/none.db", "AIRFLOW_HOME": str(tmp_path / "other")}
    found = python(PARSE, elsewhere, **settings)
    assert found["imported"] == []
    assert not (tmp_path / "other" / "adk_plans").exists()


CHECKED = (
    PARSE
    + """
import os
from adk_airflow.errors import AdkAirflowError
try:
    dag.get_task("one").load()
    found = "loaded"
except AdkAirflowError as error:
    found = str(error)
print(json.dumps([found, bool(spec.fingerprint)]))"""
)


def test_a_task_refuses_a_workflow_that_depends_on_the_environment_and_is_another_now(dags: Path, python: Python) -> None:
    write(dags / "flows" / "parts.py", "import os\ndef names():\n    return ['one', os.environ.get('SECOND', 'two')]\n")
    assert python(CHECKED, dags) == ["loaded", False]
    assert python(CHECKED, dags) == ["loaded", True]
    refused, _ = python(CHECKED, dags, SECOND="three")

    assert refused.startswith("workflow 'saved' has other nodes or edges than its DAG was made of")
    assert refused.endswith("[adk_airflow] save_plans = False")
    assert python(CHECKED, dags, SECOND="three", AIRFLOW__ADK_AIRFLOW__SAVE_PLANS="False") == ["loaded", False]
