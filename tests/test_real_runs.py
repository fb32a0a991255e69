"""On a real scheduler with LocalExecutor: a loop is seen while it runs, and ends at once when a person stops it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
import pytest

from adk_airflow import records
from adk_airflow.local import AirflowApiError, StandaloneAirflow, watch_run
from tests.scheduler import unpaused
from tests.waiting import until


@pytest.fixture(scope="module")
def airflow(scheduler: StandaloneAirflow) -> StandaloneAirflow:
    return unpaused(scheduler, "waits", "blocks")


def process_of(path: Path) -> int:
    """Of the task that writes its process id there."""
    return int(until(lambda: path.exists() and path.read_text()))


def node_runs(airflow: StandaloneAirflow, dag_id: str, run_id: str) -> list[dict[str, Any]]:
    """As the record tells them that XCom ``adk_record`` refers to, once it does."""
    try:
        reference = airflow.client.xcom(dag_id, run_id, "step_loop", "adk_record")
    except AirflowApiError:  # there is none yet
        return []
    if reference is None:
        return []
    return [entry for entry in records.read_uri(reference["uri"]) if entry["kind"] == "node"]


def iteration(row: dict[str, Any]) -> int:
    return int(row["path"].rpartition("@")[2])


def stop(airflow: StandaloneAirflow, dag_id: str, run_id: str) -> list[str]:
    """Marks the task of the loop as failed, as a person does in the UI; gives its log."""
    pid = process_of(airflow.home / f"{dag_id}.pid")
    path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/step_loop"
    airflow.client.request("PATCH", path, json={"new_state": "failed"})
    until(lambda: not psutil.pid_exists(pid))
    view = watch_run(airflow.client, dag_id, run_id, timeout=120, check=airflow.check)
    assert {task.task_id: task.text for task in view.tasks} == {"step_loop": "failed", "end": "upstream_failed"}
    # Airflow kills a task that does not end by itself; this one did.
    until(lambda: "node 'step' was cancelled while it ran" in "\n".join(airflow.client.log(dag_id, run_id, "step_loop")))
    return airflow.client.log(dag_id, run_id, "step_loop")


def test_the_node_runs_of_a_loop_are_seen_while_it_runs_until_a_person_stops_it(airflow: StandaloneAirflow) -> None:
    run_id = airflow.client.trigger("waits")["dag_run_id"]
    runs = until(lambda: [row for row in node_runs(airflow, "waits", run_id) if iteration(row) > 1])
    assert [task["state"] for task in airflow.client.task_instances("waits", run_id)] == ["running", None]
    assert all((row["path"], row["status"], row["route"]) == (f"waits@1/step@{iteration(row)}", "ok", "again") for row in runs)
    assert all(row["seconds"] >= 0.5 for row in runs)

    log = stop(airflow, "waits", run_id)
    assert sum("Node run waits@1/step@1: ok after" in line for line in log) == 1
    *rest, last = node_runs(airflow, "waits", run_id)
    assert ({row["status"] for row in rest}, last["status"]) == ({"ok"}, "cancelled")


def test_a_body_that_blocks_ends_when_a_person_stops_it(airflow: StandaloneAirflow) -> None:
    run_id = airflow.client.trigger("blocks")["dag_run_id"]
    stop(airflow, "blocks", run_id)

    assert [(row["path"], row["status"]) for row in node_runs(airflow, "blocks", run_id)] == [("blocks@1/step@1", "cancelled")]
