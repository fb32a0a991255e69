"""Every ADK project in a folder is a DAG, by one line in a DAG file, read by Airflow's own DAG bag."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adk_airflow import AdkDag, load_agents
from adk_airflow.errors import AgentsFolderError
from adk_airflow.testing import run_dag

CHAT = """
    from google.adk import Agent
    root_agent = Agent(name="clerk", description="Helps.", model="gemini-2.5-flash", instruction="Be brief.")
"""


def test_each_project_is_a_dag(folder: Any, echo: Callable[..., str]) -> None:
    folder.project("flow", agent__py=echo("node_input.upper()"), init="from . import agent")
    folder.project("in_init", init=echo("node_input[::-1]"))
    folder.project("chat", agent__py=CHAT)
    folder.project("an_app", agent__py=echo("node_input * 2") + "from google.adk.apps import App\n" + (
        "app = App(name='shop', root_agent=root_agent)\n"
    ))  # fmt: skip
    folder.project(
        "yaml", root_agent__yaml="name: writer\nmodel: gemini-2.5-flash\ndescription: Writes.\ninstruction: Write.\n"
    )
    bag = folder.bag()

    assert bag.import_errors == {}
    assert sorted(bag.dags) == sorted(map(folder.name, ("flow", "in_init", "chat", "an_app", "yaml")))
    assert isinstance(bag.dags[folder.name("flow")], AdkDag)
    assert bag.dags[folder.name("flow")].description == "Echoes."
    assert bag.dags[folder.name("chat")].task_ids == ["clerk"]
    assert bag.dags[folder.name("yaml")].task_ids == ["writer"]
    assert {dag.relative_fileloc for dag in bag.dags.values()} == {"all_agents.py"}
    assert run_dag(bag.dags[folder.name("flow")], conf={"input": "ab"}).output == "AB"
    assert run_dag(bag.dags[folder.name("in_init")], conf={"input": "ab"}).output == "ba"
    assert run_dag(bag.dags[folder.name("an_app")], conf={"input": "ab"}).output == "abab"


def test_an_agent_is_asked_the_runs_input(folder: Any, gemini: Callable[..., Any]) -> None:
    folder.project("chat", agent__py=CHAT)
    server = gemini(lambda request: f"You said {request.last_text}.")

    run = run_dag(folder.bag().dags[folder.name("chat")], conf={"input": "hello"})

    assert (run.state, run.outputs) == ("success", {"clerk": ["You said hello."]})
    assert "Be brief." in server.requests[0].system


def test_an_agent_with_an_input_schema_is_given_data(folder: Any, gemini: Callable[..., Any]) -> None:
    folder.project("form", agent__py="""
        from google.adk import Agent
        from pydantic import BaseModel

        class Order(BaseModel):
            item: str
            count: int = 1

        root_agent = Agent(name="clerk", model="gemini-2.5-flash", input_schema=Order)
    """)  # fmt: skip
    server = gemini(lambda request: "ordered")
    dag = folder.bag().dags[folder.name("form")]

    assert run_dag(dag, conf={"input": {"item": "tea"}}).outputs == {"clerk": ["ordered"]}
    assert json.loads(server.requests[0].last_text) == {"item": "tea", "count": 1}


def test_arguments_for_all_and_for_one(folder: Any, echo: Callable[..., str]) -> None:
    folder.project("one", agent__py=echo("node_input"))
    folder.project("two", agent__py=echo("node_input"))
    folder.project("chat", agent__py=CHAT)
    bag = folder.bag(f"""
        dags = load_agents("agents/", tags=["all"], mode="embedded", agents={{
            "{folder.name("two")}": {{"tags": ["two"], "dag_id": "second", "schedule": "@daily"}}}})
    """)

    assert bag.import_errors == {}
    one, two, chat = bag.dags[folder.name("one")], bag.dags["second"], bag.dags[folder.name("chat")]
    assert (one.tags, two.tags, chat.tags) == ({"all"}, {"two"}, {"all"})
    assert (one.schedule, two.schedule) == (None, "@daily")
    assert one.plan.mode == two.plan.mode == "embedded"


def test_projects_with_modules_of_one_name_do_not_mix(folder: Any, echo: Callable[..., str]) -> None:
    for project in ("one", "two"):
        source = echo("tools.WHO", imports="from . import tools")
        folder.project(project, agent__py=source, tools__py=f"WHO = 'tools of {project}'", init="")
    dags = folder.bag().dags

    assert run_dag(dags[folder.name("one")]).output == "tools of one"
    assert run_dag(dags[folder.name("two")]).output == "tools of two"


@pytest.mark.parametrize("place", ["agents", "agents/PROJECT", "/ABSOLUTE/agents"])
def test_the_folder_may_be_one_project_or_absolute(folder: Any, echo: Callable[..., str], place: str) -> None:
    folder.project("only", agent__py=echo("node_input"))
    place = place.replace("PROJECT", folder.name("only")).replace("/ABSOLUTE", str(folder.path))

    assert list(folder.bag(f"dags = load_agents({place!r})").dags) == [folder.name("only")]


def test_a_shared_package_is_no_project(folder: Any, echo: Callable[..., str]) -> None:
    shared = folder.project("shared", init="", words__py="GREETING = 'hi'")
    folder.project("flow", agent__py=echo("GREETING", imports=f"from {shared.name}.words import GREETING"))
    bag = folder.bag()

    assert (bag.import_errors, list(bag.dags)) == ({}, [folder.name("flow")])
    assert run_dag(bag.dags[folder.name("flow")]).output == "hi"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ('dags = load_agents("agent/")', "there is no folder .*/agent. A relative path is relative to the DAG file"),
        ('dags = load_agents(".")', "no ADK project is in"),
        ('dags = load_agents("agents/", agents={"flaw_N": {}})', "has no project 'flaw_N', .* Did you mean 'flow_N'"),
        ('dags = load_agents("agents/", dag_id="x")', "Give dag_id per project"),
        ('dags = load_agents("agents/", shedule="@daily")', "shedule"),
    ],
)
def test_a_mistake_in_the_dag_file_is_an_import_error(folder: Any, echo: Callable[..., str], code: str, words: str) -> None:
    flow = folder.project("flow", agent__py=echo("node_input")).name
    bag = folder.bag(code.replace("_N", flow.removeprefix("flow")))

    assert bag.dags == {}
    assert list(bag.import_errors) == ["all_agents.py"]
    assert re.search(words.replace("_N", flow.removeprefix("flow")), bag.import_errors["all_agents.py"])


def test_outside_a_dag_file_it_returns_the_dags(folder: Any, echo: Callable[..., str]) -> None:
    folder.project("flow", agent__py=echo("node_input"))
    dags = load_agents(folder.path / "agents", tags=["x"])

    assert list(dags) == [folder.name("flow")]
    with pytest.raises(AgentsFolderError, match="there is no folder"):
        load_agents(folder.path / "nowhere")


def test_what_an_env_file_sets_stays_with_its_project(folder: Any, echo: Callable[..., str]) -> None:
    source = echo(
        "(AT_IMPORT, os.environ.get('OF_ONE'), os.environ.get('OF_TWO'))", "import os\nAT_IMPORT = os.environ.get('OF_ONE')"
    )
    folder.project("one", agent__py=source, env="OF_ONE=1\nSET_BEFORE=by the project\n")
    folder.project("two", agent__py=source, env="OF_TWO=2\n")
    dags = folder.bag().dags

    assert "OF_ONE" not in os.environ
    assert run_dag(dags[folder.name("two")]).output == "(None, None, '2')"
    assert run_dag(dags[folder.name("one")]).output.startswith("('1', '1', ")
    assert os.environ["SET_BEFORE"] == "by Airflow"


def test_a_task_imports_its_own_project_only(folder: Any, echo: Callable[..., str], in_task: Any) -> None:
    one = folder.project("one", agent__py=echo("node_input")).name
    two = folder.project("two", agent__py="raise RuntimeError('not imported')").name
    with in_task(one, "echo"):
        bag = folder.bag()
        assert os.environ["_AIRFLOW_PARSING_CONTEXT_DAG_ID"] == one
        del os.environ["_AIRFLOW_PARSING_CONTEXT_DAG_ID"], os.environ["_AIRFLOW_PARSING_CONTEXT_TASK_ID"]

    assert (bag.import_errors, list(bag.dags)) == ({}, [one])
    assert two not in sys.modules


def test_importing_it_imports_no_adk(tmp_path: Path) -> None:
    code = "import sys; from adk_airflow import load_agents; print([m for m in sys.modules if m.startswith('google.adk')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_an_agents_session_can_be_kept(
    folder: Any, gemini: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__SESSION_SERVICE_URI", f"sqlite:///{tmp_path}/sessions.db")
    chat = folder.project("chat", agent__py=CHAT).name
    server = gemini(lambda request: f"You said {len(request.contents)} things, {request.last_text} last.")
    dag = folder.bag(f"""
        dags = load_agents("agents/", params={{"who": "anna"}}, agents={{"{chat}": {{"session_id": "{{{{ params.who }}}}"}}}})
    """).dags[chat]

    assert run_dag(dag, conf={"input": "one"}).outputs == {"clerk": ["You said 1 things, one last."]}
    assert run_dag(dag, conf={"input": "two"}).outputs == {"clerk": ["You said 3 things, two last."]}
    assert run_dag(dag, conf={"input": "three", "who": "bert"}).outputs == {"clerk": ["You said 1 things, three last."]}
    assert [part["text"] for content in server.requests[1].contents for part in content["parts"]] == [
        "one",
        "You said 1 things, one last.",
        "two",
    ]
