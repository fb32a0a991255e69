"""The example DAG: parsed for free, run for real on documents of its own, and clear about bad input."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import ParamValidationError

from adk_airflow.testing import WorkflowRun, run_dag

DAGS = Path(__file__).parents[2] / "dags"


@pytest.fixture(scope="module")
def dag() -> DAG:
    """The DAG as Airflow finds it: with the DAGs folder at the end of the path."""
    sys.path.append(str(DAGS))
    try:
        import batch_retrieval

        found: DAG = batch_retrieval.dag
        return found
    finally:
        sys.path.remove(str(DAGS))


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / "bees.txt").write_text("Honey bees live in hives and make honey from nectar.")
    (folder / "tides.txt").write_text("Tides are raised by the moon and the sun.")
    (folder / "bread.txt").write_text("Bread dough rises because yeast makes carbon dioxide.")
    return folder


@pytest.fixture
def ask(dag: DAG, documents: Path, tmp_path: Path) -> Callable[..., WorkflowRun]:
    def run(**conf: Any) -> WorkflowRun:
        given = {"documents_dir": str(documents), "data_dir": str(tmp_path / "data"), "questions": ["Who makes honey?"]}
        return run_dag(dag, conf={**given, **conf})

    return run


def artifacts(run: WorkflowRun) -> dict[str, str]:
    """The texts of the run's artifacts, by name."""
    root = Path(os.environ["AIRFLOW_HOME"]) / "adk_artifacts" / "batch_retrieval" / "airflow"
    folder = next(item for item in root.iterdir() if unquote(item.name) == f"session-{run.run_id}")
    return {item.name: (item / "0" / item.name).read_text() for item in folder.iterdir()}


def test_a_run_answers_each_question_in_a_mapped_task_and_writes_both_reports(ask: Callable[..., WorkflowRun]) -> None:
    run = ask(questions=["Who makes honey?", "What raises the tides?"])

    assert run.state == "success"
    assert [row["document"] for row in run.output["table"]] == ["bees.txt", "tides.txt"]
    assert run.task_states["retrieve.run"] == ["success", "success"]
    assert (run.task_states["accept"], run.task_states["flag_weak_answers"]) == (["success"], ["skipped"])
    reports = artifacts(run)
    assert [row["question"] for row in json.loads(reports["report.json"])["questions"]] == [
        "Who makes honey?",
        "What raises the tides?",
    ]
    assert "| 2 | What raises the tides? | tides.txt |" in reports["report.md"]
    assert json.loads(reports["report.json"])["run"]["run_id"] == run.run_id


def test_a_second_run_reuses_what_did_not_change(ask: Callable[..., WorkflowRun], documents: Path) -> None:
    ask()
    (documents / "bread.txt").write_text("Bread is baked.")
    (documents / "tides.txt").unlink()
    (documents / "sleep.txt").write_text("Sleep restores the body.")

    index = ask().output["summary"]["index"]

    assert {key: index[key] for key in ("added", "changed", "removed", "reused")} == {
        "added": 1,
        "changed": 1,
        "removed": 1,
        "reused": 1,
    }


def test_weak_answers_take_the_other_route(ask: Callable[..., WorkflowRun]) -> None:
    run = ask(questions=["Who makes honey?", "zebra?"])

    assert run.task_states["accept"] == ["skipped"]
    assert run.task_states["flag_weak_answers"] == ["success"]
    assert run.output["summary"]["route"] == "needs_review"


def test_no_questions_give_a_report_without_rows(ask: Callable[..., WorkflowRun], tmp_path: Path) -> None:
    (tmp_path / "none.yaml").write_text("[]\n")
    run = ask(questions=[], questions_file=str(tmp_path / "none.yaml"))

    assert run.task_states["nothing_to_answer"] == ["success"]
    assert run.task_states["retrieve.run"] == ["skipped"]
    assert run.output["table"] == []
    assert "No questions were asked" in artifacts(run)["report.md"]


def test_a_question_of_100_kb_is_answered(ask: Callable[..., WorkflowRun]) -> None:
    run = ask(questions=["Who makes honey? " * 6000])

    assert run.state == "success"
    assert run.output["table"][0]["document"] == "bees.txt"
    assert len(run.output["table"][0]["question"]) <= 80


def test_files_that_are_not_text_are_skipped_counted_and_named(ask: Callable[..., WorkflowRun], documents: Path) -> None:
    (documents / "picture.png").write_bytes(b"\x89PNG\x00\x00\xff")
    run = ask()

    assert run.state == "success"
    assert run.output["summary"]["index"]["skipped"] == 1
    assert run.output["skipped"][0]["document"] == "picture.png"
    assert "picture.png" in artifacts(run)["report.md"]


@pytest.mark.parametrize("kind", ["missing", "empty"])
def test_a_directory_without_documents_fails_the_index_task_and_says_so(
    ask: Callable[..., WorkflowRun], tmp_path: Path, kind: str
) -> None:
    folder = tmp_path / kind
    if kind == "empty":
        folder.mkdir()
    run = ask(documents_dir=str(folder))

    assert run.task_states["refresh_index"] == ["failed"]
    assert run.task_states["report"] == ["upstream_failed"]
    assert run.error is not None
    assert run.error[0] == "IndexSourceError"
    assert str(folder) in run.error[1]


@pytest.mark.parametrize(
    "conf", [{"top_k": "five"}, {"top_k": 0}, {"questions": "one"}, {"questions": [1]}, {"retrieval": "magic"}]
)
def test_a_param_of_the_wrong_type_is_refused_before_anything_runs(ask: Callable[..., WorkflowRun], conf: Any) -> None:
    with pytest.raises(ParamValidationError):
        ask(**conf)


PARSE = """
import sys

def forbid(event, args):
    if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"):
        raise RuntimeError(f"parsing must not use the network: {event} {args!r}")
    if event == "open" and str(args[0]).endswith((".md", ".yaml", "report.json")) and "site-packages" not in str(args[0]):
        raise RuntimeError(f"parsing must not read {args[0]}")

from airflow.dag_processing.dagbag import DagBag
sys.addaudithook(forbid)
sys.path.append(sys.argv[1])
bag = DagBag(sys.argv[1])
print("RESULT", sorted(bag.dags), bag.import_errors)
"""


def test_parsing_uses_no_network_reads_no_document_and_builds_no_index(tmp_path: Path) -> None:
    before = set(tmp_path.rglob("*"))
    home = tmp_path / "home"
    home.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", PARSE, str(DAGS)],
        env={**os.environ, "AIRFLOW_HOME": str(home), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    # The other examples in the folder are parsed along with it.
    assert re.search(r"RESULT \[.*'batch_retrieval'.*\] \{\}", done.stdout), done.stdout + done.stderr
    made = {item.name for item in tmp_path.rglob("*")} - {item.name for item in before}
    assert not {"batch_retrieval", "documents", "indexes"} & made


def test_a_workflow_that_adk_refuses_is_an_import_error_with_its_name_and_adks_reason(tmp_path: Path) -> None:
    (tmp_path / "looping_flow.py").write_text(
        "from google.adk import Workflow\n"
        "from google.adk.workflow import node\n\n"
        "a = node(lambda: 1, name='a')\n"
        "root_agent = Workflow(name='looping', edges=[('START', a, a)])\n"
    )
    (tmp_path / "looping_dag.py").write_text(
        "# airflow dag\nfrom adk_airflow import AdkDag\n\ndag = AdkDag('looping_flow:root_agent', schedule=None)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", PARSE, str(tmp_path)],
        env={**os.environ, "AIRFLOW_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "RESULT []" in done.stdout, done.stdout + done.stderr
    assert "workflow 'looping_flow:root_agent' is refused by google-adk (it is named 'looping')" in done.stdout
    assert "Unconditional cycle detected: a -> a" in done.stdout
