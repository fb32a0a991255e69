"""A session that is kept: a later run that gives the same session_id goes on in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Param
from google.adk import Context, Event, Workflow
from google.adk.workflow import node
from google.genai import types

from adk_airflow import AdkDag
from adk_airflow.errors import UnsupportedWorkflowError
from adk_airflow.testing import WorkflowRun, run_dag


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__SESSION_SERVICE_URI", f"sqlite:///{tmp_path}/sessions.db")
    return tmp_path / "sessions.db"


def counting() -> Workflow:
    """Counts its runs in the session, and says what the session holds."""

    def count(ctx: Context, limit: int) -> list[Any]:
        ctx.state["runs"] = ctx.state.get("runs", 0) + 1
        said = [part.text for e in ctx.session.events if e.author == "user" for part in e.content.parts if part.text]
        if ctx.state["runs"] > limit:
            raise ValueError("enough")
        return [ctx.state["runs"], said, ctx.session.id]

    return Workflow(name="counting", edges=[("START", node(count, name="count"))])


def run(session_id: str | None, **conf: Any) -> WorkflowRun:
    params = {"customer": Param("anna"), "limit": Param(10)}
    dag = AdkDag(counting(), mode="embedded", session_id=session_id, schedule=None, params=params)
    return run_dag(dag, conf=conf)


def test_a_later_run_goes_on_in_the_session(database: Path) -> None:
    first = run("chat-{{ params.customer }}", input="one")
    second = run("chat-{{ params.customer }}", input="two")
    other = run("chat-{{ params.customer }}", input="three", customer="bert")

    assert first.output == [1, ["one"], "chat-anna"]
    assert second.output == [2, ["one", "two"], "chat-anna"]
    assert other.output == [1, ["three"], "chat-bert"]
    assert second.session_state["runs"] == 2
    assert database.exists()


def test_what_this_run_is_given_replaces_what_the_session_holds(database: Path) -> None:
    assert run("s", limit=1).state == "success"
    failed = run("s", limit=1)
    after = run("s", limit=5)

    assert (failed.state, failed.error) == ("failed", ("ValueError", "enough"))
    assert after.output[0] == 3  # what a failed run has written stays, as in google-adk
    assert after.session_state["limit"] == 5


def test_a_database_by_sqlalchemy_url(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__SESSION_SERVICE_URI", f"sqlite+aiosqlite:///{tmp_path}/sessions.db")
    run("s", input="one")

    assert run("s", input="two").output == [2, ["one", "two"], "s"]


def test_a_session_id_that_is_longer_than_a_file_name(database: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__ARTIFACTS_URI", f"file://{tmp_path}/artifacts")
    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__MEMORY_SERVICE_URI", f"file://{tmp_path}/memory")

    async def body(ctx: Context):
        version = await ctx.save_artifact("a.txt", types.Part(text="kept"))
        yield Event(message="a gull")
        await ctx.add_session_to_memory()
        found = await ctx.search_memory("gull")
        yield Event(output=[version, (await ctx.load_artifact("a.txt")).text, await ctx.list_artifacts(), len(found.memories)])

    def run(length: int) -> Any:
        workflow = Workflow(name="long", edges=[("START", node(body, name="body"))])
        return run_dag(AdkDag(workflow, mode="embedded", session_id="s" * length, schedule=None)).output

    assert [run(248), run(248), run(400)] == [[0, "kept", ["a.txt"], 1], [1, "kept", ["a.txt"], 1], [0, "kept", ["a.txt"], 1]]


def test_without_a_session_id_a_run_has_a_session_of_its_own(database: Path) -> None:
    first, second = run(None, input="one"), run("{{ params.get('none', '') }}", input="two")

    assert first.output == [1, ["one"], first.run_id]
    assert second.output == [1, ["two"], second.run_id]
    assert not database.exists()


@pytest.mark.parametrize("uri", ["", "memory://"])
def test_a_session_that_nothing_keeps_is_an_error(monkeypatch: pytest.MonkeyPatch, uri: str) -> None:
    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__SESSION_SERVICE_URI", uri)
    dag = AdkDag(counting(), mode="embedded", session_id="s", schedule=None, params={"limit": Param(1)})

    assert run_dag(dag).state == "failed"


def test_between_tasks_no_session_holds_the_run() -> None:
    with pytest.raises(UnsupportedWorkflowError, match=r"'counting': session_id needs mode='embedded'"):
        AdkDag(counting(), session_id="s")


def test_memory_of_a_kept_session_holds_each_event_once(
    database: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__MEMORY_SERVICE_URI", f"file://{tmp_path}/memory")

    async def body(ctx: Context, node_input: str):
        await ctx.add_session_to_memory()
        found = await ctx.search_memory("gull")
        yield Event(output=sorted(memory.content.parts[0].text for memory in found.memories))

    def answer(text: str) -> Any:
        workflow = Workflow(name="gulls", edges=[("START", node(body, name="body"))])
        return run_dag(AdkDag(workflow, mode="embedded", session_id="s", schedule=None), conf={"input": text}).output

    assert answer("gull one") == ["gull one"]
    assert answer("gull two") == ["gull one", "gull two"]
    assert len(list((tmp_path / "memory").rglob("*.json"))) == 2
