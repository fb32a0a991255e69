"""One broken project does not take the others down, and is seen."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from airflow.dag_processing.dagbag import sync_bag_to_db
from airflow.models.dag import DagModel
from airflow.models.errors import ParseImportError
from airflow.utils.session import create_session
from sqlalchemy import select

from adk_airflow import load_agents
from adk_airflow.agents_folder import BROKEN, BROKEN_TAG
from adk_airflow.testing import run_dag

PROBLEMS = {
    "raises": ("raise RuntimeError('no such table')", "RuntimeError: .*no such table"),
    "syntax": ("root_agent = (", "SyntaxError: .*never closed"),
    "missing": ("import no_such_library", "ModuleNotFoundError: .*No module named 'no_such_library'"),
    "exits": ("import sys\nsys.exit('bye')", "SystemExit: bye"),
    "cancelled": ("import asyncio\nraise asyncio.CancelledError('too late')", "CancelledError: too late"),
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


def test_what_is_shown_of_it_holds_no_secret_of_its_environment(folder: Any) -> None:
    source = "import os\nraise RuntimeError('refused: ' + os.environ['SHOP_API_KEY'])"
    bad = folder.project("bad", agent__py=source, env="SHOP_API_KEY=not-to-be-shown").name
    broken = folder.bag('dags = load_agents("agents/")').dags[bad]

    assert "refused: ***" in broken.doc_md
    assert "not-to-be-shown" not in f"{broken.doc_md} {broken.description}"


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


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ('{"schedule": "every now and then"}', "AirflowTimetableInvalid"),
        ('{"start_date": "yesterday"}', "Invalid date string: yesterday"),
        ('{"default_args": 3}', "default_args|dict|'int' object"),
        ('{"default_args": {"retries": "many"}}', "retries|many"),
        ('{"tags": 5}', "'int' object is not iterable"),
        ('{"params": 5}', "params|'int' object|ParamsDict"),
        ('{"no_such_argument": 1}', "no_such_argument"),
        ('{"mode": "tusks"}', "tusks"),
        ('{"dag_id": "two words"}', "dag_id='two words' can be no DAG's id"),
        ('{"dag_id": 5}', "dag_id=5 can be no DAG's id"),
        ('{"dag_id": "GOOD"}', "dag_id='GOOD' is the id of the DAG of project 'GOOD', too"),
        ("5", "must be a dict of arguments, not int"),
    ],
)
def test_arguments_of_a_dag_that_are_wrong_break_their_project_alone(
    folder: Any, echo: Callable[..., str], given: str, words: str
) -> None:
    good, bad = (folder.project(name, agent__py=echo("node_input")).name for name in ("good", "bad"))
    code = f'dags = load_agents("agents/", tags=["x"], agents={{"{bad}": {given.replace("GOOD", good)}}})'
    bag = folder.bag(code)

    assert (bag.import_errors, sorted(bag.dags)) == ({}, [bad, good])
    assert bag.dags[bad].task_ids == [BROKEN]
    assert re.search(words.replace("GOOD", good), bag.dags[bad].doc_md)
    assert run_dag(bag.dags[bad]).state == "failed"
    assert run_dag(bag.dags[good], conf={"input": "still here"}).output == "still here"


# Names of folders


def test_a_name_that_can_be_no_dag_id_breaks_its_project_alone(folder: Any, echo: Callable[..., str]) -> None:
    good = folder.project("good", agent__py=echo("node_input")).name
    names = [f"{good} copy", f"{good}_copy", f"{good}'copy", f"{good}\ncopy", "l" * 251]
    folder._suffix = ""
    for name in names:
        folder.project(name, agent__py=echo("node_input"))
    bag = folder.bag()

    assert bag.import_errors == {}
    broken = {dag_id for dag_id, dag in bag.dags.items() if BROKEN_TAG in dag.tags}
    assert set(bag.dags) - broken == {good, f"{good}_copy"}
    assert broken == {f"{good}_copy_2", f"{good}_copy_3", f"{good}_copy_4", "l" * 200}
    assert f"project {names[0]!r}: its folder's name can be no DAG's id" in "".join(bag.dags[name].doc_md for name in broken)
    assert {run_dag(bag.dags[dag_id]).state for dag_id in broken} == {"failed"}
    assert run_dag(bag.dags[good], conf={"input": "still here"}).output == "still here"


@pytest.mark.parametrize("name", ["with.dot", "with-dash", "\u00fcnicode", "1digit", "_underscore", "user", "__dunder"])
def test_a_name_that_google_adk_refuses_breaks_its_project_alone(folder: Any, echo: Callable[..., str], name: str) -> None:
    good = folder.project("good", agent__py=echo("node_input")).name
    folder._suffix = ""
    folder.project(name, agent__py=echo("node_input"))
    bag = folder.bag()

    assert (bag.import_errors, set(bag.dags)) == ({}, {name, good})
    assert bag.dags[name].task_ids == [BROKEN]
    assert re.search("Invalid a(gent|pp) name|App name cannot be|special internal agent", bag.dags[name].doc_md)


def test_a_keyword_is_a_name_like_any_other(folder: Any, echo: Callable[..., str]) -> None:
    folder._suffix = ""
    folder.project("lambda", agent__py=echo("node_input"))

    assert run_dag(folder.bag().dags["lambda"], conf={"input": "hello"}).output == "hello"


@pytest.mark.parametrize("name", ["email", "sys", "_io", "json", "yaml", "airflow", "google"])
def test_a_name_that_python_has_imported_already_is_refused(folder: Any, echo: Callable[..., str], name: str) -> None:
    before = importlib.import_module(name)
    folder._suffix = ""
    folder.project(name, agent__py=echo("node_input"))
    doc = folder.bag().dags[name].doc_md

    assert f"project {name!r}: Python has another module of this name" in doc
    assert sys.modules[name] is before


SHADOWS = """
import sys
from pathlib import Path
from adk_airflow import load_agents

assert sys.argv[1] not in sys.modules, "imported by something else"
dags = load_agents(Path(sys.argv[2], "agents"))
module = __import__(sys.argv[1])
print("RESULT", {name: dag.task_ids for name, dag in dags.items()}, module.__file__, dags[sys.argv[1]].description)
"""


@pytest.mark.parametrize("name", ["smtpd", "mailbox", "wsgiref", "this", "iniconfig"])
def test_a_name_that_python_would_import_from_elsewhere_is_refused_and_hides_nothing(
    folder: Any, echo: Callable[..., str], name: str
) -> None:
    """Its folder comes first on Python's path when the others are loaded."""
    import importlib.util

    spec = importlib.util.find_spec(name)
    assert spec is not None
    good = folder.project("a_good", agent__py=echo("node_input")).name
    folder._suffix = ""
    folder.project(name, agent__py=echo("node_input"), init="")
    command = [sys.executable, "-c", SHADOWS, name, str(folder.path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    result = done.stdout.partition("RESULT ")[2]
    assert f"{{'{good}': ['echo'], '{name}': ['{BROKEN}']}} {spec.origin} " in result, done.stdout + done.stderr
    assert f"Python has another module of this name ({spec.origin})" in result


def test_a_dag_file_of_the_same_name_is_no_other_module(folder: Any, echo: Callable[..., str]) -> None:
    """Airflow has the folder of DAG files on Python's path, too, after that of the projects."""
    flow = folder.project("flow", agent__py=echo("node_input"), init="").name
    (folder.path / f"{flow}.py").write_text("raise RuntimeError('imported')")

    assert run_dag(folder.bag().dags[flow], conf={"input": "hello"}).output == "hello"


def test_but_it_is_for_a_project_without_init(folder: Any, echo: Callable[..., str]) -> None:
    """Python prefers any module to a folder without ``__init__.py``."""
    flow = folder.project("flow", agent__py=echo("node_input")).name
    file = folder.path / f"{flow}.py"
    file.write_text("raise RuntimeError('imported')")

    assert f"Python has another module of this name ({file})" in folder.bag().dags[flow].doc_md


@pytest.mark.parametrize("init", [True, False], ids=["package", "without __init__.py"])
def test_a_linked_project_is_one_like_any_other(folder: Any, echo: Callable[..., str], init: bool) -> None:
    files = {"init": ""} if init else {}
    place = folder.project("there", agent__py=echo("tools.WHO", "from . import tools"), tools__py="WHO = 'me'", **files)
    linked = f"{place.name}_linked"
    elsewhere = place.rename(folder.path / "elsewhere")
    place.with_name(linked).symlink_to(elsewhere)
    bag = folder.bag()

    assert (bag.import_errors, list(bag.dags)) == ({}, [linked])
    assert run_dag(bag.dags[linked]).output == "me"


def test_what_is_no_folder_is_left_out(folder: Any, echo: Callable[..., str]) -> None:
    good = folder.project("good", agent__py=echo("node_input"))
    (good.parent / "a_file").write_text("no project")
    (good.parent / "dangling").symlink_to(folder.path / "nowhere")
    (good.parent / "itself").symlink_to(good.parent / "itself")
    bag = folder.bag()

    assert (bag.import_errors, list(bag.dags)) == ({}, [good.name])


def test_a_project_whose_file_is_a_dangling_link_is_broken(folder: Any, echo: Callable[..., str]) -> None:
    good, bad = folder.project("good", agent__py=echo("node_input")), folder.project("bad", init="")
    (bad / "agent.py").symlink_to(folder.path / "nowhere")
    bag = folder.bag()

    assert (bag.import_errors, sorted(bag.dags)) == ({}, [bad.name, good.name])
    assert BROKEN_TAG in bag.dags[bad.name].tags


def test_a_folder_that_cannot_be_read_is_broken(folder: Any, echo: Callable[..., str], as_anyone: Any) -> None:
    good, bad = (folder.project(name, agent__py=echo("node_input")) for name in ("good", "bad"))
    bad.chmod(0)
    with as_anyone(folder.path):
        dags = load_agents(good.parent)
    bad.chmod(0o755)

    assert sorted(dags) == [bad.name, good.name]
    assert dags[bad.name].task_ids == [BROKEN]
    assert "Permission denied" in (dags[bad.name].doc_md or "")
    assert dags[good.name].task_ids == ["echo"]


def test_what_google_adk_refuses_is_told_in_a_sentence(folder: Any) -> None:
    source = "from google.adk import Workflow\ndef a(): ...\nroot_agent = Workflow(name='w', edges=[('START', a, 'A')])\n"
    bad = folder.project("bad", agent__py=source).name
    dag = folder.bag().dags[bad]

    assert dag.description == (
        f"ADK project {bad!r} is broken: AgentsFolderError: project {bad!r} is refused by google-adk: edges[0] is"
        " ('START', a, 'A'): 'A' is text, not a node. A route stands in a dict: (a, {'A': ...});"
        " a node stands there itself, without quotes"
    )
    assert 'agent.py", line 3' in (dag.doc_md or "")
    assert "pydantic" not in (dag.doc_md or "")


# In a task, and afterwards


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
