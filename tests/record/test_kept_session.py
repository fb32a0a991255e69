"""A retry finds a kept session as the first try found it, and asks what the first try asked."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from google.adk import Context, Event, Workflow
from google.adk.apps.app import App
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.workflow import node

from adk_airflow.runtime.adk import engine
from adk_airflow.runtime.adk.runner import Run, RunResult
from adk_airflow.runtime.record.attempt import Attempt, Standing
from adk_airflow.runtime.record.journal import Journal
from adk_airflow.runtime.record.task_record import TaskRecord
from adk_airflow.runtime.start import message_of
from tests.record.test_replays import Lines


def one_try(sessions: BaseSessionService, number: int, before: list[str], *, fails: bool) -> tuple[RunResult, list[str]]:
    """One try of a run in a kept session: it counts, looks, and fails or not."""

    def count(ctx: Context) -> Event:
        ctx.state["runs"] = ctx.state.get("runs", 0) + 1
        return Event(message=f"run {ctx.state['runs']}")

    def look(ctx: Context) -> list[Any]:
        said = [part.text for event in ctx.session.events if event.content for part in event.content.parts or []]
        if fails:
            raise OSError("not now")
        return [ctx.state["runs"], said]

    workflow = Workflow(name="wf", edges=[("START", node(count), node(look))])
    record = TaskRecord(Attempt("case", ("", "", "", -1), number, "0", own_process=False))
    store: Any = Lines(before)
    record._store, record.journal = store, Journal(record.attempt, store)
    record.standing = Standing(record.attempt, None)
    run = Run(
        app=App(name="app", root_agent=workflow),
        workflow=workflow,
        session_id="kept",
        message=message_of("hello"),
        state={},
        session_service=sessions,
        record=record,
    )
    return asyncio.run(engine.run_workflow(run)), store.written


@pytest.mark.parametrize("service", ["memory", "sqlite"])
def test_a_retry_finds_the_session_as_the_first_try_did(service: str, tmp_path: Any) -> None:
    def sessions() -> BaseSessionService:
        return SqliteSessionService(str(tmp_path / "sessions.db")) if service == "sqlite" else memory

    memory = InMemorySessionService()  # type: ignore[no-untyped-call]
    failed, lines = one_try(sessions(), 1, [], fails=True)
    assert isinstance(failed.error, OSError)
    again, _ = one_try(sessions(), 2, lines, fails=False)
    assert again.error is None, again.error
    assert again.firings[-1].output == [1, ["hello", "run 1"]]
    next_run, _ = one_try(sessions(), 1, [], fails=False)
    assert next_run.firings[-1].output[0] == 2
