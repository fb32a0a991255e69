"""What happens in a task is kept as JSON lines, readable while it runs; nothing that hinders it changes the run."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import ObjectStoragePath
from airflow.sdk.log import mask_secret
from google.adk import Agent, Context, Event, Workflow
from google.adk.agents import SequentialAgent
from google.adk.events.event_actions import EventActions
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.workflow import node
from google.genai import types

from adk_airflow import records
from adk_airflow.cli import main
from adk_airflow.errors import RecordError
from adk_airflow.runtime.record.attempt import Attempt
from adk_airflow.runtime.record.entries import Entry
from adk_airflow.runtime.record.transcript import Transcript, part_name
from adk_airflow.runtime.services import settings, transcripts
from adk_airflow.runtime.services.transcripts import TranscriptPlace
from adk_airflow.testing import run_workflow
from tests.conformance.fake_llm import FakeLlm, Turn, call

PLACE = ("dag", "run", "task", -1)


def look(city: str, tool_context: Context) -> dict[str, str]:
    """Looks."""
    tool_context.state["looked"] = city
    tool_context.state["temp:key"] = "hidden-temporarily"
    return {"weather": "rain"}


def weather(turn: Turn) -> Any:
    return call("look", "c1", city="Bern") if turn.answered("look") is None else "It rains."


def agent(name: str = "clerk", **more: Any) -> Agent:
    return Agent(name=name, model=FakeLlm(script=weather), instruction="Tell the weather.", tools=[look], **more)


def transcript(folder: Path, *, number: int = 1, own_process: bool = False, **more: Any) -> Transcript:
    attempt = Attempt("dag.task", PLACE, number, "0.0", own_process)
    place = transcripts.try_folder(ObjectStoragePath(f"file://{folder}"), PLACE, number)
    return Transcript(attempt, TranscriptPlace(place), **more)


def entry(**content: Any) -> Entry:
    return Entry("node", "wf@1/a@1", "a", began=1.0, seconds=0.25, content=content)


def event(**fields: Any) -> Entry:
    return Entry("event", "wf@1/a@1", "e", agent="a", began=1.0, content={"event": Event(author="a", **fields)})


def rows_of(folder: Path, number: int = 1) -> list[dict[str, Any]]:
    return transcripts.read_try(transcripts.try_folder(ObjectStoragePath(f"file://{folder}"), PLACE, number))


def kept(folder: Path, *entries: Entry, **more: Any) -> list[dict[str, Any]]:
    written = transcript(folder, **more)
    for one in entries:
        written.add(one)
    written.close()
    return rows_of(folder)


# -- of a run ------------------------------------------------------------------------------------------------


def test_the_conversation_of_an_agent_can_be_read() -> None:
    run = run_workflow(Workflow(name="wf", edges=[("START", agent())]), input="Weather?")
    rows = records.read("wf", run.run_id, "clerk")

    assert [row["kind"] for row in rows] == ["model", "tool", "state", "model", "node"]
    asked, called, state, answered, ran = rows
    assert asked["agent"] == "clerk"
    assert asked["path"] == "wf@1/clerk@1"
    assert "Tell the weather." in asked["instruction"]
    assert asked["tools"] == ["look"]
    assert asked["asked"] == [{"role": "user", "parts": [{"text": "Weather?"}]}]
    assert asked["answer"] == [{"call": "look", "id": "c1", "args": {"city": "Bern"}}]
    assert (called["args"], called["result"]) == ({"city": "Bern"}, {"weather": "rain"})
    assert (state["keys"], state["values"]) == (["looked", "temp:key"], {"looked": "Bern"})
    # Only what is new since the last call.
    assert answered["asked_before"] == 1
    assert [part for content in answered["asked"] for part in content["parts"]] == [
        {"call": "look", "id": "c1", "args": {"city": "Bern"}},
        {"response": "look", "id": "c1", "result": {"weather": "rain"}},
    ]
    assert "instruction" not in answered
    assert answered["answer"] == [{"text": "It rains."}]
    assert (ran["output"], ran["status"]) == ("It rains.", "ok")
    assert all(row["seconds"] >= 0 for row in rows if row["kind"] != "state")
    assert [row["n"] for row in rows] == list(range(5))


def test_what_a_task_fails_with_is_in_its_record_and_its_counters() -> None:
    def fails(node_input: Any) -> None:
        raise ValueError("no such thing")

    run = run_workflow(Workflow(name="wf", edges=[("START", node(fails, name="fails"))]))
    *_, last = records.read("wf", run.run_id, "fails")

    assert run.state == "failed"
    assert (last["kind"], last["path"], last["error"]) == ("error", "wf@1/fails@1", "ValueError: no such thing")


def test_a_record_that_cannot_be_written_does_not_fail_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__TRANSCRIPTS_URI", f"file://{tmp_path}/folder")
    (tmp_path / "folder" / "wf").write_text("a file where the DAG's folder should be")

    run = run_workflow(Workflow(name="wf", edges=[("START", agent())]), input="Weather?")

    assert (run.state, run.output) == ("success", "It rains.")
    assert run.node_runs == {}


def test_a_setting_that_names_no_place_does_not_fail_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__TRANSCRIPTS_URI", "records")

    assert run_workflow(Workflow(name="wf", edges=[("START", agent())]), input="Weather?").output == "It rains."


# -- what is in a record -------------------------------------------------------------------------------------


def test_without_content_names_times_sizes_and_usage_stay(tmp_path: Path) -> None:
    usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=7, candidates_token_count=3)
    said = LlmResponse(content=types.Content(role="model", parts=[types.Part(text="secret answer")]), usage_metadata=usage)
    request = LlmRequest(model="m", contents=[types.Content(role="user", parts=[types.Part(text="secret question")])])
    model = Entry(
        "model", "wf@1/a@1", "m", agent="a", began=1.0, seconds=2.0, content={"request": request, "responses": [said]}
    )
    failed = Entry("node", "wf@1/a@1", "a", status="failed", error="ValueError: secret", content={"input": "secret input"})
    state = event(actions=EventActions(state_delta={"key": "secret value"}))
    rows = kept(tmp_path, model, failed, state, entry(output="secret output", route="next"), content=False)

    assert "secret" not in json.dumps(rows)
    assert [row["kind"] for row in rows] == ["model", "node", "state", "node"]
    assert rows[0]["usage"] == {"input_tokens": 7, "output_tokens": 3}
    assert rows[0]["seconds"] == 2.0
    assert rows[1]["error"] == "ValueError"
    assert rows[2]["keys"] == ["key"]
    assert rows[3]["characters"] == {"output": len("secret output")}
    assert rows[3]["route"] == "next"


def test_no_secret_is_in_a_record(tmp_path: Path) -> None:
    mask_secret('pass"word-of-a-connection')
    config = {"auth": {"client_secret": "credential-of-a-person"}}
    asks = types.Part(function_call=types.FunctionCall(id="1", name="adk_request_credential", args=config))
    answers = types.Part(function_response=types.FunctionResponse(id="1", name="adk_request_credential", response=config))
    request = LlmRequest(contents=[types.Content(role="user", parts=[asks, answers])])
    tool = {"api_key": "given-as-an-argument", "text": 'has pass"word-of-a-connection in it', "plain": 1}
    rows = kept(
        tmp_path,
        entry(input=tool, output="x" * 31_990 + 'pass"word-of-a-connection' + "x" * 9_000),
        event(content=types.Content(parts=[asks]), long_running_tool_ids={"1"}),
        Entry("model", "", "m", content={"request": request, "responses": []}),
    )
    text = (tmp_path / "dag/run/task/1/part-0000.jsonl").read_text()

    assert not [word for word in ("of-a-connection", "of-a-person", "given-as", 'pass\\"') if word in text]
    assert rows[0]["input"] == {"api_key": "***", "text": "has *** in it", "plain": 1}
    assert (rows[1]["kind"], rows[1]["name"], rows[1]["id"]) == ("question", "credential", "1")


def test_what_is_large_is_cut_and_its_size_told_and_media_are_named(tmp_path: Path) -> None:
    image = types.Part(inline_data=types.Blob(mime_type="image/png", data=b"\x89" * 5_000))
    request = LlmRequest(contents=[types.Content(role="user", parts=[image])])
    rows = kept(
        tmp_path,
        entry(output="a" * 1_000_000, input=["b" * 20_000] * 10),
        Entry("model", "", "m", content={"request": request, "responses": []}),
    )

    assert rows[0]["output"]["characters"] == 1_000_000
    assert rows[0]["output"]["cut"] == "a" * 32_000
    assert rows[0]["input"]["characters"] > 200_000
    assert len(rows[0]["input"]["cut"]) == 2
    assert rows[1]["asked"] == [{"role": "user", "parts": [{"media": {"mime_type": "image/png", "bytes": 5_000}}]}]


def test_an_event_becomes_what_it_tells(tmp_path: Path) -> None:
    ask = types.Part(function_call=types.FunctionCall(id="q", name="adk_request_input", args={"message": "Which?"}))
    rows = kept(
        tmp_path,
        event(content=types.Content(parts=[types.Part(text="Working on it.")])),
        event(content=types.Content(parts=[ask]), long_running_tool_ids={"q"}),
        event(actions=EventActions(transfer_to_agent="other", artifact_delta={"a.txt": 2})),
        event(error_code="500", error_message="away"),
        event(partial=True, content=types.Content(parts=[types.Part(text="Work")])),
    )

    assert [(row["kind"], row.get("name"), row.get("text")) for row in rows] == [
        ("message", None, "Working on it."),
        ("question", "input", "Which?"),
        ("transfer", "other", None),
        ("artifact", "a.txt", None),
        ("error", "500", None),
    ]
    assert (rows[3]["version"], rows[4]["error"]) == (2, "500: away")


def test_an_answer_from_the_journal_is_marked(tmp_path: Path) -> None:
    rows = kept(tmp_path, Entry("node", "wf@1/a@1", "a", replayed=True), entry())

    assert [row.get("replayed", False) for row in rows] == [True, False]


def test_a_value_that_cannot_be_shown_is_left_out_and_the_run_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Odd:
        def __str__(self) -> str:
            raise RuntimeError("no words")

    written = transcript(tmp_path, log=logging.getLogger("task"))
    written.add(entry(output=Odd()))
    written.close()

    assert [(row["kind"], row["path"]) for row in rows_of(tmp_path)] == [("node", "wf@1/a@1")]
    assert "[adk_airflow] transcripts_uri" in caplog.text
    assert written.reference()["complete"] is False


# -- writing -------------------------------------------------------------------------------------------------


class Store:
    """Stands in for an object store: counts what is put, and may be away."""

    def __init__(self, away: int = 0) -> None:
        self.uri = "s3://bucket/records"
        self.away = away
        self.puts: list[tuple[str, bytes]] = []

    def write(self, name: str, data: bytes) -> None:
        if self.away:
            self.away -= 1
            raise ConnectionError("unreachable")
        self.puts.append((name, data))


def to(store: Store, **more: Any) -> Transcript:
    return Transcript(Attempt("dag.task", PLACE, 1, "0.0", False), store, **more)


def test_a_task_of_a_moment_writes_one_file() -> None:
    store = Store()
    written = to(store)
    for _ in range(20):
        written.add(entry())
    assert store.puts == []
    written.close()

    assert [name for name, _ in store.puts] == ["part-0000.jsonl"]


def test_a_long_record_is_in_several_parts(tmp_path: Path) -> None:
    written = transcript(tmp_path)
    for number in range(2_500):
        written.add(entry(output=number))
    written.close()

    assert sorted(os.listdir(tmp_path / "dag/run/task/1")) == [part_name(0), part_name(1), part_name(2)]
    assert [row["output"] for row in rows_of(tmp_path)] == list(range(2_500))
    assert written.reference()["node_runs"] == 2_500


def test_a_store_that_is_away_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    store = Store(away=100)
    written = to(store, log=logging.getLogger("task"))
    for _ in range(5):
        written.add(entry())
        written.close()

    (warning,) = caplog.records
    assert warning.getMessage() == (
        "What happens in this task is not recorded, or not whole ([adk_airflow] transcripts_uri): ConnectionError: unreachable."
        " The run goes on."
    )
    assert (written.reference()["complete"], written.reference()["entries"]) == (False, 5)


def test_what_a_store_did_not_take_it_is_given_again() -> None:
    store = Store(away=1)
    written = to(store)
    written.add(entry(output=1))
    written.close()
    written.add(entry(output=2))
    written.close()

    ((_, data),) = store.puts
    assert [json.loads(line).get("output") for line in data.decode().splitlines()] == [None, 1, 2]
    assert written.reference()["complete"] is True


def test_in_a_process_of_its_own_the_first_part_is_seen_while_the_task_runs() -> None:
    import threading

    seen, store = threading.Event(), Store()
    written = Transcript(Attempt("dag.task", PLACE, 1, "0.0", True), store, on_first=seen.set)
    written.add(entry())

    assert seen.wait(30)
    assert len(store.puts) == 1
    written.add(entry())
    written.close()
    assert [name for name, _ in store.puts] == ["part-0000.jsonl"] * 2


# -- reading -------------------------------------------------------------------------------------------------


def test_a_last_line_that_is_cut_is_left_out(tmp_path: Path) -> None:
    kept(tmp_path, entry(output=1), entry(output=2))
    file = tmp_path / "dag/run/task/1/part-0000.jsonl"
    file.write_text(file.read_text()[:-20])

    assert [row["output"] for row in rows_of(tmp_path)] == [1]


def test_another_version_and_no_record_are_clear_errors(tmp_path: Path) -> None:
    folder = transcripts.try_folder(ObjectStoragePath(f"file://{tmp_path}"), PLACE, 1)
    with pytest.raises(RecordError, match=r"There is no record at .*dag/run/task/1"):
        transcripts.read_try(folder)
    TranscriptPlace(folder).write(part_name(0), b'{"adk_record": 99}\n')
    with pytest.raises(RecordError, match="is a record of version 99, this adk-airflow reads 1"):
        transcripts.read_try(folder)
    TranscriptPlace(folder).write(part_name(0), b"something else\n")
    with pytest.raises(RecordError, match="is no record of adk-airflow, or is damaged"):
        transcripts.read_try(folder)


def test_parts_of_an_earlier_record_in_the_same_place_are_left_out(tmp_path: Path) -> None:
    kept(tmp_path, *(entry(output="old") for _ in range(1_500)))

    assert [row["output"] for row in kept(tmp_path, entry(output="new"))] == ["new"]


def test_each_try_has_a_record_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__TRANSCRIPTS_URI", f"file://{tmp_path}")
    for number in (1, 2, 10):
        written = transcript(tmp_path, number=number)
        written.add(entry(output=number))
        written.close()

    assert records.tries("dag", "run", "task") == [1, 2, 10]
    assert [row["output"] for row in records.read("dag", "run", "task")] == [10]
    assert [row["output"] for row in records.read("dag", "run", "task", try_number=1)] == [1]
    assert records.read_uri(written.reference()["uri"])[0]["output"] == 10


def test_records_are_beside_the_artifacts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert str(settings.transcripts_place()) == f"file://{os.environ['AIRFLOW_HOME']}/adk_records"
    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__ARTIFACTS_URI", "file:///data/adk/artifacts")
    assert str(settings.transcripts_place()) == "file:///data/adk/adk_records"
    assert settings.beside("s3://bucket/adk/artifacts/", "adk_records") == "s3://bucket/adk/adk_records"
    assert settings.beside("s3://bucket", "adk_records") == "s3://bucket/adk_records"


# -- removing ------------------------------------------------------------------------------------------------


def test_old_records_are_removed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__TRANSCRIPTS_URI", f"file://{tmp_path}")
    for number in (1, 2):
        written = transcript(tmp_path, number=number)
        written.add(entry())
        written.close()
    old = tmp_path / "dag/run/task/1"
    (tmp_path / "mine/1").mkdir(parents=True)
    (tmp_path / "mine/1/part-0000.jsonl").write_text("{}\n")
    (old / "notes.txt").write_text("of a person")
    for file in (old / "part-0000.jsonl", old / "notes.txt", tmp_path / "mine/1/part-0000.jsonl"):
        os.utime(file, (0, 0))

    assert main(["clean-records", "--older-than", "30", "--dry-run"]) == 0
    assert capsys.readouterr().out == ("would remove dag run task try 1: 1970-01-01 00:00 UTC\n1 record would be removed\n")
    assert (old / "part-0000.jsonl").exists()

    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__KEEP_RECORDS_DAYS", "30")
    assert main(["clean-records"]) == 0
    assert capsys.readouterr().out == "removed dag run task try 1: 1970-01-01 00:00 UTC\n1 record removed\n"
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        "notes.txt", "part-0000.jsonl", "part-0000.jsonl"
    ]  # fmt: skip
    assert records.tries("dag", "run", "task") == [1, 2]

    (old / "notes.txt").unlink()
    assert main(["clean-records", "--older-than", "0"]) == 0
    assert (tmp_path / "mine/1/part-0000.jsonl").exists()
    assert not (tmp_path / "dag/run/task/2").exists()


def test_without_a_number_of_days_nothing_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["clean-records"]) == 0
    assert "records are kept for ever" in capsys.readouterr().out
    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__KEEP_RECORDS_DAYS", "some")
    assert main(["clean-records"]) == 1
    assert "[adk_airflow] keep_records_days is 'some'" in capsys.readouterr().err


def test_each_call_says_which_agent_made_it() -> None:
    steps = SequentialAgent(name="steps", sub_agents=[agent("first"), agent("second")])
    run = run_workflow(Workflow(name="wf", edges=[("START", steps)]), input="Weather?")
    rows = records.read("wf", run.run_id, "steps")

    assert [row["agent"] for row in rows if row["kind"] == "model"] == ["first", "first", "second", "second"]
    assert rows[-1]["name"] == "steps"
