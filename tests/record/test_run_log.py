"""Each node run of a task that runs several nodes is told in its log."""

from __future__ import annotations

import logging

import pytest

from adk_airflow.runtime.record.entries import Entry
from adk_airflow.runtime.record.run_log import node_runs_to


def test_a_node_run_is_a_log_line(caplog: pytest.LogCaptureFixture) -> None:
    tell = node_runs_to(logging.getLogger("task"))
    with caplog.at_level(logging.INFO):
        tell(Entry("node", "wf@1/a@1", "a", seconds=0.5, content={"route": "again"}))
        tell(Entry("node", "wf@1/a@2", "a", replayed=True))
        tell(Entry("tool", "wf@1/a@2", "look"))

    assert [record.getMessage() for record in caplog.records] == [
        "Node run wf@1/a@1: ok after 0.500 s, route 'again'",
        "Node run wf@1/a@2: ok in an earlier try",
    ]
