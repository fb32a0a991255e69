"""The record of node runs is for looking at: nothing that hinders it changes the run."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from adk_airflow.runtime.record.entries import Entry
from adk_airflow.runtime.record.run_record import XCOM_RUNS, RunRecord


class TaskInstance:
    """Stands in for Airflow's, whose API may be out of reach."""

    def __init__(self, *, reachable: bool) -> None:
        self.reachable = reachable
        self.xcoms: dict[str, Any] = {}

    def xcom_push(self, key: str, value: Any) -> None:
        if not self.reachable:
            raise ConnectionError("no API server")
        self.xcoms[key] = value


def test_a_record_that_cannot_be_written_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    record = RunRecord(TaskInstance(reachable=False), logging.getLogger("task"))
    with caplog.at_level(logging.INFO):
        record.add(Entry("node", "wf@1/a@1", "a", seconds=0.5, content={"route": "again"}))

    assert "Node run wf@1/a@1: ok after 0.5 s, route 'again'" in caplog.text
    assert "XCom 'adk_runs', the record of node runs, could not be renewed: no API server" in caplog.text


def test_a_record_holds_only_what_airflow_stores() -> None:
    ti = TaskInstance(reachable=True)
    RunRecord(ti, logging.getLogger("task")).add(
        Entry("node", "wf@1/a@2", "a", status="failed", error="ValueError: a\0b \ud83d", content={"route": 2**64})
    )

    (row,) = ti.xcoms[XCOM_RUNS]
    assert (row["node"], row["iteration"], row["route"], row["error"]) == ("a", 2, str(2**64), "ValueError: a\ufffdb \ufffd")
