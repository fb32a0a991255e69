"""What a run leaves in memory, and what a later run finds there: as DAG runs, in tasks of their own."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.adk import Agent, Context, Event, Workflow
from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
from google.adk.sessions.session import Session
from google.adk.tools.load_memory_tool import load_memory_tool
from google.adk.tools.preload_memory_tool import preload_memory_tool
from google.adk.workflow import JoinNode, node

from adk_airflow.runtime.services.memory import ObjectStorageMemoryService
from adk_airflow.testing import run_workflow

YESTERDAY = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
TODAY = dt.datetime(2026, 3, 2, tzinfo=dt.UTC)


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__MEMORY_SERVICE_URI", f"file://{tmp_path}/memory")
    return tmp_path / "memory"


def say(name: str, text: str, *, remembers: bool = True) -> Any:
    """A node that says something and, unless told otherwise, puts its session into the memory."""

    async def body(ctx: Context):
        yield Event(message=text)
        if remembers:
            yield Event(state={f"{name}_spoke": True})
            await ctx.add_session_to_memory()

    return node(body, name=name)


def recall(query: str) -> Any:
    async def body(ctx: Context) -> list[str]:
        found = await ctx.search_memory(query)
        return sorted("".join(part.text or "" for part in memory.content.parts or []) for memory in found.memories)

    return node(body, name="recall")


def said(text: str, *, author: str = "user", session: str, at: float = 0.0) -> Session:
    """A session of one event."""
    found = Session(app_name="app", user_id="airflow", id=session)
    found.events.append(Event(author=author, message=text, timestamp=at))
    return found


def texts(service: Any, query: str) -> list[str]:
    found = asyncio.run(service.search_memory(app_name="app", user_id="airflow", query=query))
    return [memory.content.parts[0].text for memory in found.memories]


def test_todays_run_finds_what_yesterdays_said(memory: Path) -> None:
    told = run_workflow(
        Workflow(name="wf", edges=[("START", say("speaker", "the hive has a new queen"))]),
        input="how are the bees",
        logical_date=YESTERDAY,
    )
    found = run_workflow(Workflow(name="wf", edges=[("START", recall("queen bees"))]), logical_date=TODAY)

    assert told.state == "success"
    assert found.output == ["how are the bees", "the hive has a new queen"]
    assert [path.name for path in memory.rglob("*.json")] == ["speaker.json"]


def test_without_any_setting_the_memory_is_in_airflow_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    run_workflow(Workflow(name="fresh", edges=[("START", say("speaker", "the tide is low"))]), logical_date=YESTERDAY)
    found = run_workflow(Workflow(name="fresh", edges=[("START", recall("tide"))]), logical_date=TODAY)

    assert found.output == ["the tide is low"]
    assert (tmp_path / "adk_memory" / "fresh" / "airflow").is_dir()


def test_each_task_adds_its_part_of_the_session(memory: Path) -> None:
    parts = (say("left", "left saw a heron"), say("right", "right saw a heron"), say("quiet", "not a heron", remembers=False))
    run_workflow(Workflow(name="wf", edges=[("START", parts, JoinNode(name="meet"))]), logical_date=YESTERDAY)
    found = run_workflow(Workflow(name="wf", edges=[("START", recall("heron"))]), logical_date=TODAY)

    assert found.output == ["left saw a heron", "right saw a heron"]


def test_embedded_the_session_is_whole(memory: Path) -> None:
    edges = [("START", say("first", "first saw a heron", remembers=False), say("second", "second saw a heron"))]
    run_workflow(Workflow(name="wf", edges=edges), mode="embedded", logical_date=YESTERDAY)
    found = run_workflow(Workflow(name="wf", edges=[("START", recall("heron"))]), logical_date=TODAY)

    assert found.output == ["first saw a heron", "second saw a heron"]


def test_another_workflow_does_not_find_it(memory: Path) -> None:
    run_workflow(Workflow(name="one", edges=[("START", say("speaker", "a secret"))]), logical_date=YESTERDAY)
    found = run_workflow(Workflow(name="other", edges=[("START", recall("secret"))]), logical_date=TODAY)

    assert found.output == []


def test_runs_are_remembered_by_setting(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ValueError("no")

    def workflow(*edge: Any) -> Workflow:
        return Workflow(name="wf", edges=[("START", *edge)])

    run_workflow(workflow(say("speaker", "gulls one", remembers=False)), logical_date=YESTERDAY)
    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__REMEMBER_RUNS", "True")
    run_workflow(workflow(say("speaker", "gulls two", remembers=False)), logical_date=YESTERDAY)
    failed = run_workflow(workflow(node(fail, name="failing")), input="gulls three", logical_date=YESTERDAY)

    assert failed.state == "failed"
    assert run_workflow(workflow(recall("gulls")), logical_date=TODAY).output == ["gulls two"]


def test_google_adks_own_sqlite_memory_by_uri(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__MEMORY_SERVICE_URI", f"sqlite:///{tmp_path}/memory.db")
    edges = [("START", say("left", "left saw a heron"), say("right", "right saw a heron"))]
    run_workflow(Workflow(name="wf", edges=edges), logical_date=YESTERDAY)
    found = run_workflow(Workflow(name="wf", edges=[("START", recall("heron"))]), logical_date=TODAY)

    assert found.output == ["left saw a heron", "right saw a heron"]
    assert (tmp_path / "memory.db").exists()


def test_the_model_is_sent_what_preload_memory_finds(memory: Path, gemini: Callable[..., Any]) -> None:
    async def remember(callback_context: Any) -> None:
        await callback_context.add_session_to_memory()

    def workflow() -> Workflow:
        keeper = Agent(name="keeper", model="gemini-2.5-flash", tools=[preload_memory_tool], after_agent_callback=remember)
        return Workflow(name="hive", edges=[("START", keeper)])

    server = gemini(lambda request: "The new queen is called Ada.")
    first = run_workflow(workflow(), input="what is the queen called", logical_date=YESTERDAY)
    second = run_workflow(workflow(), input="who is the queen", logical_date=TODAY)

    assert (first.output, second.output) == ("The new queen is called Ada.",) * 2
    sent = [json.dumps(request.body) for request in server.requests]
    assert len(sent) == 2
    assert "PAST_CONVERSATIONS" not in sent[0]
    assert "<PAST_CONVERSATIONS>" in sent[1]
    assert "user: what is the queen called" in sent[1]
    assert "keeper: The new queen is called Ada." in sent[1]


def test_the_load_memory_tool_answers_the_model_with_it(memory: Path, gemini: Callable[..., Any]) -> None:
    from tests.servers.gemini import call

    run_workflow(
        Workflow(name="wf", edges=[("START", say("speaker", "the gate code is on the board"))]), logical_date=YESTERDAY
    )
    agent = Agent(name="asker", model="gemini-2.5-flash", tools=[load_memory_tool])
    server = gemini(lambda request: "done" if request.function_responses else call("load_memory", {"query": "gate"}))
    run = run_workflow(Workflow(name="wf", edges=[("START", agent)]), input="how do I get in", logical_date=TODAY)

    assert run.output == "done"
    answers = server.requests[-1].function_responses
    assert [answer["name"] for answer in answers] == ["load_memory"]
    assert "the gate code is on the board" in json.dumps(answers[0]["response"])


def test_what_matches_is_what_google_adk_says(tmp_path: Path) -> None:
    service, theirs = ObjectStorageMemoryService(f"file://{tmp_path}"), InMemoryMemoryService()
    for number, text in enumerate(
        ["The red fox runs", "a fox, a fox!", "no animal", "Füchse und Foxes", "私はfoxを使う", "", "RED and FOX", "foxglove"]
    ):
        session = said(text, session=str(number), at=float(number))
        asyncio.run(service.add_session_to_memory(session))
        asyncio.run(theirs.add_session_to_memory(session))

    for query in ("fox", "red fox", "the", "Fox?", "foxes und", "を", ""):
        assert sorted(texts(service, query)) == sorted(texts(theirs, query)), query
    assert texts(service, "red fox")[0] == "RED and FOX"


def test_the_same_question_every_day_does_not_hide_the_answers(tmp_path: Path) -> None:
    for day in range(15):
        service = ObjectStorageMemoryService(f"file://{tmp_path}")
        session = said("what is the tide today", session=f"day{day}", at=day * 100.0)
        session.events.append(Event(author="agent", message=f"the tide is {day} today", timestamp=day * 100.0 + 1))
        asyncio.run(service.add_session_to_memory(session))

    found = texts(ObjectStorageMemoryService(f"file://{tmp_path}"), "what is the tide today")

    assert found == ["what is the tide today", *(f"the tide is {day} today" for day in range(14, 5, -1))]


def test_a_task_that_runs_again_replaces_what_it_had_remembered(tmp_path: Path) -> None:
    uri = f"file://{tmp_path}"
    asyncio.run(ObjectStorageMemoryService(uri, writer="a").add_session_to_memory(said("first try", session="s")))
    asyncio.run(ObjectStorageMemoryService(uri, writer="b").add_session_to_memory(said("another try", session="s")))
    again = ObjectStorageMemoryService(uri, writer="a")
    asyncio.run(again.add_session_to_memory(said("second try", session="s")))

    assert sorted(texts(again, "try")) == ["another try", "second try"]
    asyncio.run(
        again.add_events_to_memory(
            app_name="app", user_id="airflow", session_id="s", events=[Event(author="user", message="third try")]
        )
    )
    assert sorted(texts(again, "try")) == ["another try", "second try", "third try"]


def test_a_file_that_is_being_written_is_left_out_until_it_is_whole(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    service = ObjectStorageMemoryService(f"file://{tmp_path}", writer="a")
    asyncio.run(service.add_session_to_memory(said("whole", session="s")))
    file = next(tmp_path.rglob("a.json"))
    whole = file.read_text()
    file.write_text(whole[: len(whole) // 2])
    with caplog.at_level(logging.WARNING):
        assert texts(service, "whole") == []
    assert "is not complete" in caplog.text
    file.write_text(whole)

    assert texts(service, "whole") == ["whole"]


def test_names_cannot_leave_the_folder(tmp_path: Path) -> None:
    service = ObjectStorageMemoryService(f"file://{tmp_path}/memory", writer="../../escaped")
    asyncio.run(service.add_session_to_memory(said("here", session="../..")))

    assert [path.parent.name for path in tmp_path.rglob("*.json")] == ["session-..%2F.."]
    assert texts(service, "here") == ["here"]


def test_only_what_a_search_can_find_is_stored(tmp_path: Path) -> None:
    session = said("hello", session="s")
    session.events[0].actions.state_delta = {"token": "abc"}
    session.events.append(Event(author="node", output={"rows": 3}))
    asyncio.run(ObjectStorageMemoryService(f"file://{tmp_path}").add_session_to_memory(session))

    stored = json.loads(next(tmp_path.rglob("*.json")).read_text())
    assert [sorted(row) for row in stored["events"]] == [["author", "content", "id", "timestamp"]]
