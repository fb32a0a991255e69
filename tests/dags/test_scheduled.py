"""The example DAG on a real scheduler: a backfill of three past days, each run in processes of its own."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adk_airflow.local import AirflowApiError, StandaloneAirflow, watch_run
from tests.scheduler import unpaused

DAG_ID = "batch_retrieval"


@pytest.fixture(scope="module")
def airflow(scheduler: StandaloneAirflow) -> StandaloneAirflow:
    return unpaused(scheduler, DAG_ID)


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("library")
    (folder / "bees.txt").write_text("Honey bees live in hives and make honey from nectar.")
    (folder / "tides.txt").write_text("Tides are raised by the moon and the sun.")
    return {"documents_dir": str(folder), "questions": ["Who makes honey?", "What raises the tides?"]}


def test_a_backfill_of_three_past_days_writes_three_reports(airflow: StandaloneAirflow, conf: dict[str, object]) -> None:
    airflow.client.create_backfill(DAG_ID, datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 2, 3, tzinfo=UTC), conf=conf)
    runs = airflow.client.runs(DAG_ID)
    assert len(runs) == 3

    for run in runs:
        view = watch_run(airflow.client, DAG_ID, run["dag_run_id"], timeout=240, check=airflow.check)
        assert view.state == "success", airflow.client.task_instances(DAG_ID, run["dag_run_id"])

    reports = [json.loads(path.read_text()) for path in (airflow.home / "adk_artifacts").rglob("report.json/0/report.json")]
    assert sorted(report["run"]["logical_date"] for report in reports) == [
        "2026-02-01T00:00:00+00:00",
        "2026-02-02T00:00:00+00:00",
        "2026-02-03T00:00:00+00:00",
    ]
    assert {report["run"]["run_id"] for report in reports} == {run["dag_run_id"] for run in runs}
    for report in reports:
        assert [row["passages"][0]["document"] for row in report["questions"]] == ["bees.txt", "tides.txt"]
        assert report["run"]["data_interval_end"] >= report["run"]["data_interval_start"]
    # The three runs asked for one index of one content at about the same time: it was built once.
    assert sum(report["summary"]["index"]["built"] for report in reports) == 1


def test_the_result_of_a_run_is_the_workflows_output(airflow: StandaloneAirflow) -> None:
    run = airflow.client.runs(DAG_ID)[0]
    answer = airflow.client.get(f"/dags/{DAG_ID}/dagRuns/{run['dag_run_id']}/wait", interval=1)

    assert [row["document"] for row in answer["results"]["report"]["table"]] == ["bees.txt", "tides.txt"]


def test_a_run_that_is_cleared_and_takes_another_course_forgets_the_first(
    airflow: StandaloneAirflow, conf: dict[str, object], tmp_path: Path
) -> None:
    """Another route, and a shorter list: what the tasks of the first course left behind must not count."""
    questions = tmp_path / "questions.yaml"
    questions.write_text("- Who makes honey?\n- zebra?\n- quagga?\n")
    given = {**conf, "questions": [], "questions_file": str(questions)}
    run_id = airflow.client.trigger(DAG_ID, conf=given)["dag_run_id"]
    assert watch_run(airflow.client, DAG_ID, run_id, timeout=240, check=airflow.check).state == "success"
    assert airflow.client.xcom(DAG_ID, run_id, "report")["summary"]["route"] == "needs_review"

    questions.write_text("- Who makes honey?\n")
    body = {"dry_run": False, "dag_run_id": run_id, "task_ids": ["load_questions"], "include_downstream": True}
    body |= {"only_failed": False, "reset_dag_runs": True}
    airflow.client.request("POST", f"/dags/{DAG_ID}/clearTaskInstances", json=body)
    assert watch_run(airflow.client, DAG_ID, run_id, timeout=240, check=airflow.check).state == "success"

    report = airflow.client.xcom(DAG_ID, run_id, "report")
    assert report["summary"]["route"] == "complete"
    assert [row["question"] for row in report["table"]] == ["Who makes honey?"]
    states = {row["task_id"]: row["state"] for row in airflow.client.task_instances(DAG_ID, run_id)}
    assert (states["accept"], states["flag_weak_answers"]) == ("success", "skipped")


def test_a_skipped_task_that_is_cleared_is_skipped_again_without_a_process(
    airflow: StandaloneAirflow, conf: dict[str, object]
) -> None:
    run_id = airflow.client.trigger(DAG_ID, conf=conf)["dag_run_id"]
    assert watch_run(airflow.client, DAG_ID, run_id, timeout=240, check=airflow.check).state == "success"

    body = {"dry_run": False, "dag_run_id": run_id, "task_ids": ["flag_weak_answers"], "only_failed": False}
    cleared = airflow.client.request("POST", f"/dags/{DAG_ID}/clearTaskInstances", json={**body, "reset_dag_runs": True})
    assert [row["task_id"] for row in cleared["task_instances"]] == ["flag_weak_answers"]
    assert watch_run(airflow.client, DAG_ID, run_id, timeout=240, check=airflow.check).state == "success"

    rows = {row["task_id"]: row for row in airflow.client.task_instances(DAG_ID, run_id)}
    assert (rows["flag_weak_answers"]["state"], rows["flag_weak_answers"]["pid"]) == ("skipped", None)
    assert rows["accept"]["pid"] is not None


def test_a_failed_task_that_is_marked_as_a_success_does_not_end_the_run_in_silence(
    airflow: StandaloneAirflow, conf: dict[str, object]
) -> None:
    given = {**conf, "questions": [], "questions_file": "absent.yaml"}
    run_id = airflow.client.trigger(DAG_ID, conf=given)["dag_run_id"]
    assert watch_run(airflow.client, DAG_ID, run_id, timeout=240, check=airflow.check).state == "failed"

    path = f"/dags/{DAG_ID}/dagRuns/{run_id}/taskInstances/load_questions"
    airflow.client.request("PATCH", path, json={"new_state": "success"})

    view = watch_run(airflow.client, DAG_ID, run_id, timeout=240, check=airflow.check)
    states = {task.task_id: task.text for task in view.tasks}
    assert (view.state, states["load_questions"], states["ready"]) == ("failed", "success", "failed")
    log = "\n".join(airflow.client.log(DAG_ID, run_id, "ready", try_number=1))
    assert "task 'load_questions' failed (" in log
    assert "was marked as a success afterwards, so it has no output to hand on. Clear it" in log


def test_a_param_of_the_wrong_type_is_refused_when_a_run_is_triggered(airflow: StandaloneAirflow) -> None:
    with pytest.raises(AirflowApiError, match="five"):
        airflow.client.trigger(DAG_ID, conf={"top_k": "five"})
