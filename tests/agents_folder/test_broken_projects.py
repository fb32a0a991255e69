"""One broken project does not take the others down, and is seen."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import pytest
from airflow.dag_processing.dagbag import sync_bag_to_db
from airflow.models.dag import DagModel
from airflow.models.errors import ParseImportError
from airflow.utils.session import create_session
from sqlalchemy import select

from adk_airflow.agents_folder import BROKEN, BROKEN_TAG
from adk_airflow.testing import run_dag

PROBLEMS = {
    "raises": ("raise RuntimeError('no such table')", "RuntimeError: .*no such table"),
    "syntax": ("root_agent = (", "SyntaxError: .*never closed"),
    "missing": ("import no_such_library", "ModuleNotFoundError: .*No module named 'no_such_library'"),
    "exits": ("import sys\nsys.exit('bye')", "SystemExit: bye"),
    "empty": ("agent = 1", "ValueError: No root_agent found for"),
    "number": ("root_agent = 3", "ValueError: A 'root_agent' was found .* but it is not a BaseAgent"),
    "refused": (
        "from google.adk import Workflow\nroot_agent = Workflow(name='w', edges=[])",
        "WorkflowLoadError: workflow .* has no edges",
    ),
    "bare_node": (
        "from google.adk.workflow import node\nroot_agent = node(lambda: 1, name='x')",
        "AgentsFolderError: project .*: its root_agent is a FunctionNode",
    ),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_others_are_there_and_the_broken_one_is_seen(folder: Any, echo: Callable[..., str], problem: str) -> None:
    source, words = PROBLEMS[problem]
    good, bad = folder.project("good", agent__py=echo("node_input")).name, folder.project("bad", agent__py=source).name
    bag = folder.bag('dags = load_agents("agents/", schedule="@daily", tags=["x"])')

    assert bag.import_errors == {}
    assert sorted(bag.dags) == [bad, good]
    broken = bag.dags[bad]
    assert broken.tags == {"x", BROKEN_TAG}
    assert broken.dag_display_name == f"{bad} (broken)"
    assert broken.schedule == "@daily"
    assert broken.doc_md is not None
    assert re.search(words, broken.doc_md)
    assert run_dag(bag.dags[good], conf={"input": "still here"}).output == "still here"


def test_a_run_of_it_fails_with_the_reason_in_the_log(folder: Any, capsys: pytest.CaptureFixture[str]) -> None:
    bad = folder.project("bad", agent__py="raise RuntimeError('no such table')").name
    dag = folder.bag('dags = load_agents("agents/", default_args={"retries": 3})').dags[bad]
    run = run_dag(dag)

    assert (run.state, run.task_states) == ("failed", {BROKEN: ["failed"]})
    log = capsys.readouterr().out
    assert f"ADK project {bad!r} is broken: RuntimeError" in log
    assert "no such table" in log


def test_its_documentation_shows_its_own_lines_alone(folder: Any) -> None:
    bad = folder.project(
        "bad", agent__py="from .inner import x", inner__py="def f():\n    return 1 / 0\nx = f()\n", init=""
    ).name
    doc = folder.bag().dags[bad].doc_md

    assert doc is not None
    assert 'agent.py", line 1' in doc
    assert 'inner.py", line 2' in doc
    assert "ZeroDivisionError" in doc
    assert "agent_loader.py" not in doc


def test_arguments_that_do_not_fit_break_their_project_alone(folder: Any, echo: Callable[..., str]) -> None:
    one, two = (folder.project(name, agent__py=echo("node_input")).name for name in ("one", "two"))
    bag = folder.bag(f'dags = load_agents("agents/", agents={{"{two}": {{"nodes": {{"ecko": {{"retries": 1}}}}}}}})')

    assert (bag.import_errors, sorted(bag.dags)) == ({}, [one, two])
    assert "has no node 'ecko'. Did you mean 'echo'?" in bag.dags[two].doc_md
    run = run_dag(bag.dags[two])
    assert run.state == "failed"


def test_half_a_dag_is_not_registered(folder: Any, echo: Callable[..., str]) -> None:
    two = folder.project("two", agent__py=echo("node_input")).name
    bag = folder.bag(f'dags = load_agents("agents/", agents={{"{two}": {{"nodes": {{"echo": {{"no_such_argument": 1}}}}}}}})')

    assert bag.dags[two].task_ids == [BROKEN]
    assert "no_such_argument" in bag.dags[two].doc_md


def test_a_name_that_python_knows_already_is_refused(folder: Any, echo: Callable[..., str]) -> None:
    import email

    folder._suffix = ""
    folder.project("email", agent__py=echo("node_input"))
    doc = folder.bag().dags["email"].doc_md

    assert "project 'email': Python has another module of this name" in doc
    assert sys.modules["email"] is email


def test_in_a_task_the_reason_is_an_error_of_the_file(folder: Any, in_task: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = folder.project("bad", agent__py="import missing_on_this_worker").name
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", bad)
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_TASK_ID", "echo")
    bag = folder.bag()
    assert bag.dags == {}
    assert "No module named 'missing_on_this_worker'" in bag.import_errors["all_agents.py"]

    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_TASK_ID", BROKEN)
    bag = folder.bag()
    assert (bag.import_errors, bag.dags[bad].task_ids) == ({}, [BROKEN])


def test_a_project_that_was_mended_meanwhile_says_so(
    folder: Any, echo: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    place = folder.project("bad", agent__py="raise RuntimeError('soon mended')")
    dag = folder.bag().dags[place.name]
    (place / "agent.py").write_text(echo("node_input"))
    assert run_dag(dag).state == "failed"
    assert "Here and now it is not: once the DAG shows its own tasks, trigger it again." in capsys.readouterr().out
    assert folder.bag().dags[place.name].task_ids == ["echo"]


def test_airflow_keeps_the_others_scheduled(folder: Any, echo: Callable[..., str]) -> None:
    """An import error of the file would make all of its DAGs stale, good ones too: hence a DAG for the broken one."""
    good = folder.project("good", agent__py=echo("node_input")).name
    bad = folder.project("bad", agent__py="raise RuntimeError('no')").name
    bag = folder.bag()
    sync_bag_to_db(bag, "dags-folder", None)
    with create_session() as session:
        rows = session.execute(select(DagModel.dag_id, DagModel.is_stale).where(DagModel.dag_id.in_([good, bad]))).all()
        errors = session.scalars(select(ParseImportError.filename)).all()

    assert sorted(map(tuple, rows)) == [(bad, False), (good, False)]
    assert "all_agents.py" not in errors
