"""What a run leaves in memory, and what a later run finds there: as DAG runs, in tasks of their own."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import logging
import subprocess
import sys
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


def test_a_secret_is_remembered_as_stars(tmp_path: Path) -> None:
    service = ObjectStorageMemoryService(f"file://{tmp_path}")
    asyncio.run(service.add_session_to_memory(said("the key AIzaSyA0123456789abcdefghijklmnopqrs of bees", session="s")))

    assert texts(service, "bees") == ["the key *** of bees"]
    assert [path for path in tmp_path.rglob("*.json") if "AIza" in path.read_text()] == []


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


NAMES = [
    *("", ".", "..", "a", "a.", "a/b", "a%2Fb", "../..", "%", "session-run", "a\0b", "\ud800", "\u212b", "\u00c5"),
    *("n" * 248, "n" * 255, "n" * 300 + "1", "n" * 300 + "2", "é" * 200),
]


@pytest.mark.parametrize("field", ["app_name", "user_id"])
def test_apps_and_users_of_any_name_are_kept_apart(tmp_path: Path, field: str) -> None:
    service, theirs = ObjectStorageMemoryService(f"file://{tmp_path}/a/b/c"), InMemoryMemoryService()
    found: list[list[list[str]]] = [[], []]
    for number, each in enumerate((service, theirs)):
        for at, name in enumerate(NAMES):
            scope = {"app_name": "app", "user_id": "airflow", field: name}
            events = [Event(author="user", message=f"gull {at}")]
            asyncio.run(each.add_events_to_memory(**scope, session_id="s", events=events))
        for name in NAMES:
            scope = {"app_name": "app", "user_id": "airflow", field: name}
            response = asyncio.run(each.search_memory(**scope, query="gull"))
            found[number].append([memory.content.parts[0].text for memory in response.memories])

    assert found[0] == found[1] == [[f"gull {at}"] for at in range(len(NAMES))]
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("field", ["session", "writer"])
def test_sessions_and_tasks_of_any_name_are_kept_apart(tmp_path: Path, field: str) -> None:
    for at, name in enumerate(NAMES):
        session, writer = (name, "w") if field == "session" else ("s", name)
        service = ObjectStorageMemoryService(f"file://{tmp_path}/a", writer=writer)
        asyncio.run(service.add_session_to_memory(said(f"gull{at}", session=session)))

    assert [texts(service, f"gull{at}") for at in range(len(NAMES))] == [[f"gull{at}"] for at in range(len(NAMES))]
    assert len(list((tmp_path / "a" / "app" / "airflow").glob("session-*/*.json"))) == len(NAMES)


@pytest.mark.parametrize("order", ["events first", "session first"])
def test_what_was_added_stays_when_more_is_added(tmp_path: Path, order: str) -> None:
    service = ObjectStorageMemoryService(f"file://{tmp_path}")
    events = [Event(author="node", message="gull of the node")]
    adding = [
        lambda: service.add_events_to_memory(app_name="app", user_id="airflow", session_id="s", events=events),
        lambda: service.add_session_to_memory(said("gull of the session", session="s")),
    ]
    for add in adding if order == "events first" else adding[::-1]:
        asyncio.run(add())
    asyncio.run(adding[0]())

    assert sorted(texts(service, "gull")) == ["gull of the node", "gull of the session"]


def test_remembered_runs_keep_what_a_node_added(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(ctx: Context):
        await ctx.add_events_to_memory(events=[Event(author="clerk", message="gulls noted by the node")])
        yield Event(message="gulls said by the node")

    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__REMEMBER_RUNS", "True")
    run_workflow(Workflow(name="wf", edges=[("START", node(body, name="noting"))]), input="gulls?", logical_date=YESTERDAY)
    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__REMEMBER_RUNS", "False")
    found = run_workflow(Workflow(name="wf", edges=[("START", recall("gulls"))]), logical_date=TODAY)

    assert found.output == ["gulls noted by the node", "gulls said by the node", "gulls?"]


@pytest.mark.parametrize("mode", ["tasks", "embedded"])
def test_a_run_that_cannot_be_remembered_succeeds_with_a_warning(
    memory: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, mode: str
) -> None:
    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__REMEMBER_RUNS", "True")
    (memory / "wf").parent.mkdir()
    (memory / "wf").write_text("a file where the app's folder would be")
    edges = [("START", node(lambda: 3, name="three"), node(lambda node_input: node_input + 1, name="four"))]
    run = run_workflow(Workflow(name="wf", edges=edges), input="gulls?", mode=mode, logical_date=YESTERDAY)

    assert (run.state, run.output) == ("success", 4)
    warnings = [record.getMessage() for record in caplog.records if "is not remembered" in record.getMessage()]
    assert len(warnings) == (2 if mode == "tasks" else 1)
    assert all(text.startswith("Workflow 'wf': what was said in session") for text in warnings)
    assert all("remember_runs" in text and "NotADirectoryError" in text for text in warnings)


FULL_DISK = """
import asyncio, resource, sys
from google.adk import Event
from google.adk.sessions.session import Session
from adk_airflow.runtime.services.memory import ObjectStorageMemoryService

service = ObjectStorageMemoryService(sys.argv[1], writer="a")
session = Session(app_name="app", user_id="airflow", id="s")
session.events = [Event(author="user", message="gull " + "x" * 9000)]
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    asyncio.run(service.add_session_to_memory(session))
except OSError as error:
    print(type(error).__name__)
"""


def test_on_a_full_disk_what_was_remembered_stays(tmp_path: Path) -> None:
    service = ObjectStorageMemoryService(f"file://{tmp_path}", writer="a")
    asyncio.run(service.add_session_to_memory(said("gull before", session="s")))
    told = subprocess.run(
        [sys.executable, "-c", FULL_DISK, service.root.path], capture_output=True, text=True, check=True
    ).stdout

    assert told.split()[-1:] == ["OSError"]
    assert texts(ObjectStorageMemoryService(f"file://{tmp_path}"), "gull") == ["gull before"]
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["a.json"]


def test_a_reader_never_finds_half_a_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    uri = f"file://{tmp_path}"
    writer, reader = ObjectStorageMemoryService(uri, writer="a"), ObjectStorageMemoryService(uri, writer="b")
    asyncio.run(writer.add_session_to_memory(said("gull", session="s")))

    async def both() -> list[int]:
        sessions = [said("gull " + "x" * 200_000, session="s", at=float(number)) for number in range(30)]
        writing = asyncio.gather(*(writer.add_session_to_memory(session) for session in sessions))
        found = []
        while not writing.done():
            found.append(len((await reader.search_memory(app_name="app", user_id="airflow", query="gull")).memories))
        await writing
        return found

    assert 0 not in asyncio.run(both())
    assert "is not complete" not in caplog.text


def test_an_object_store_holds_the_same(tmp_path: Path) -> None:
    from airflow.sdk.io import attach
    from fsspec.implementations.memory import MemoryFileSystem

    store = MemoryFileSystem()
    attach(protocol="memory", fs=store)
    for name in NAMES:
        service = ObjectStorageMemoryService("memory://bucket/memory", writer=name)
        asyncio.run(service.add_session_to_memory(said("gull", session=name)))
        asyncio.run(service.add_session_to_memory(said("tern", session=name)))

    assert texts(ObjectStorageMemoryService("memory://bucket/memory"), "gull tern") == ["gull", "tern"]
    assert len(store.find("/bucket/memory")) == len(NAMES)
    store.rm("/bucket", recursive=True)


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


def test_a_search_finds_what_was_written_since_the_last_one_to_a_file_of_the_same_size(tmp_path: Path) -> None:
    uri = f"file://{tmp_path}"
    reader = ObjectStorageMemoryService(uri, writer="b")
    for text in ("gull one", "gull two", "gull six"):
        asyncio.run(ObjectStorageMemoryService(uri, writer="a").add_session_to_memory(said(text, session="s")))
        assert texts(reader, "gull") == [text]
