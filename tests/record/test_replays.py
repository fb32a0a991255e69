"""A workflow whose try ended anywhere gives in the next try what it would have given: all conformance cases, cut anywhere."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from google.adk.apps.app import App
from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.memory.in_memory_memory_service import InMemoryMemoryService

from adk_airflow.runtime.adk import engine
from adk_airflow.runtime.adk.runner import Run
from adk_airflow.runtime.record.attempt import Attempt, Standing
from adk_airflow.runtime.record.entries import Entry
from adk_airflow.runtime.record.journal import Journal
from adk_airflow.runtime.record.task_record import TaskRecord
from adk_airflow.runtime.start import message_of
from tests.conformance.run import make_recorder, per_node, recorded, same
from tests.conformance.test_conformance import CASES, EXPECTED, WITHOUT_PEOPLE


class Lines:
    """Stands in for the store of a journal: the lines of the try before, and those of this one."""

    def __init__(self, before: Sequence[str]) -> None:
        self.before = list(before)
        self.written: list[str] = []

    def read(self) -> list[str]:
        return self.before

    def append(self, line: str, *, now: bool) -> None:
        self.written.append(line)

    async def settle(self) -> None:
        pass

    def finish(self) -> None:
        pass


@dataclass
class Tried:
    """What came of one try."""

    told: dict[str, Any]
    lines: list[str]
    entries: list[Entry]

    def live(self, kind: str) -> list[str]:
        return [f"{entry.path}:{entry.name}" for entry in self.entries if entry.kind == kind and not entry.replayed]


def attempt(case: Any, number: int, artifacts: InMemoryArtifactService, before: Sequence[str] = ()) -> Tried:
    """One try of a case, with what the tries before left."""
    root = case.build()
    given: list[Any] = []
    plugin = make_recorder(lambda path, output: given.append((path, output)))
    record = TaskRecord(Attempt("case", ("", "", "", -1), number, "0", own_process=False))
    store: Any = Lines(before)
    record._store, record.journal = store, Journal(record.attempt, store)
    record.standing = Standing(record.attempt, None)
    entries: list[Entry] = []
    record.readers.append(entries.append)
    run = Run(
        app=App(name="corpus", root_agent=root, plugins=[plugin]),
        workflow=root,
        session_id="s",
        message=message_of(case.input),
        state=dict(case.state),
        artifact_service=artifacts,
        memory_service=InMemoryMemoryService(),
        record=record,
    )
    result = asyncio.run(engine.run_workflow(run))
    if result.error is not None:
        record.failed(result.error_path, result.error, call_failed=result.call_failed)
    told = {
        "output": recorded(result.firings[-1].output if result.firings and result.error is None else None),
        "error": type(result.error).__name__ if result.error else None,
        "state": recorded({key: value for key, value in result.state.items() if not key.startswith("temp:")}),
        "outputs": per_node(given),
    }
    return Tried(told, store.written, entries)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


# Two count in a variable of their module how many bodies run at once; one gives the attempt of ADK's retry, which each try of a
# task counts anew (docs/differences.md).
NOT_SO = {"pw_limit", "sync_bodies_serial", "dyn_retry_replays"}
WORKFLOWS = [
    (name, case_id) for name, case_id in WITHOUT_PEOPLE if EXPECTED[name][case_id]["status"] == "ok" and case_id not in NOT_SO
]


@pytest.mark.parametrize(("name", "case_id"), WORKFLOWS, ids=[case_id for _, case_id in WORKFLOWS])
def test_a_try_that_goes_on_gives_what_one_gives_that_was_never_ended(name: str, case_id: str) -> None:
    case = CASES[name][case_id]
    if case.memory:
        return  # its agents search a memory that only a DAG run has
    artifacts = InMemoryArtifactService()
    whole = attempt(case, 1, artifacts)
    count = len(whole.lines)
    for cut in sorted({0, 1, count // 3, count // 2, count - 1, count}):
        kept = whole.lines[:cut]
        saved = artifacts if any('"k": "artifact"' in line for line in kept) else InMemoryArtifactService()
        again = attempt(case, 2, saved, kept)
        wrong = [key for key, value in whole.told.items() if not same(value, again.told[key])]
        assert not wrong, {key: (whole.told[key], again.told[key]) for key in wrong} | {"cut": f"{cut} of {count}"}
        if cut == count:
            assert (again.live("model"), again.live("tool")) == ([], [])
            finished = {json.loads(line)["l"] for line in whole.lines if json.loads(line)["k"] == "node"}
            assert [path for path in again.live("node") if path.rpartition(":")[0] in finished] == []
