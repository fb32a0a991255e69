"""A real Airflow is started, used through its REST API and the commands, and ended without a trace.

There is one start for all of it, so the tests that end it come last.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import httpx
import psutil
import pytest

from adk_airflow.cli import main
from adk_airflow.local import (
    AirflowApiError,
    AirflowClient,
    AirflowStartError,
    RunTimeoutError,
    StandaloneAirflow,
    watch_run,
)
from adk_airflow.local.state import kept_port, read_state
from adk_airflow.local.switched_on import switch_off


def command(airflow: StandaloneAirflow, name: str, *options: str) -> int:
    dags = [] if name == "down" else ["--dags", str(airflow.dags)]
    return main([name, "--home", str(airflow.home), *dags, *options])


def demo_process(airflow: StandaloneAirflow, *options: str) -> subprocess.Popen[str]:
    """The command, in a process that can be sent signals."""
    return subprocess.Popen(
        [sys.executable, "-m", "adk_airflow.cli", "demo", "--home", airflow.home, "--dags", airflow.dags, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # A test run in the background of a shell ignores the signal, and a child would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def left_of(sessions: list[int]) -> list[str]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if os.getsid(process.pid) in sessions and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline()))
    return found


# -- running ------------------------------------------------------------------------------------------------


def test_every_component_runs_and_is_healthy(airflow: StandaloneAirflow) -> None:
    assert [ref.name for ref in airflow.components] == list(StandaloneAirflow.COMPONENTS)
    airflow.check()
    assert airflow.client.unhealthy(since=airflow.started_at) == []


def test_only_this_machine_and_this_user_get_in(airflow: StandaloneAirflow) -> None:
    assert airflow.url.startswith("http://127.0.0.1:")
    assert httpx.get(f"{airflow.url}/api/v2/dags", trust_env=False).status_code == 401
    assert stat.S_IMODE(airflow.home.stat().st_mode) == 0o700
    listening = {
        connection.laddr.ip
        for ref in airflow.components
        for process in ref.family()
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}


def test_it_uses_its_own_folder_whatever_airflow_the_environment_names(airflow: StandaloneAirflow) -> None:
    assert os.environ["AIRFLOW_HOME"] != str(airflow.home)
    assert (airflow.home / "airflow.db").is_file()


def test_the_client_reads_a_run_page_by_page(airflow: StandaloneAirflow) -> None:
    with AirflowClient(airflow.url, login=airflow.login, page_size=2) as client:
        client.wait_for_dag("sums", since=airflow.started_at, check=airflow.check)
        client.unpause("sums")
        run_id = client.trigger("sums", conf={"numbers": [60, 4, 5]}, run_id="by-page")["dag_run_id"]
        states: list[str] = []
        view = watch_run(
            client, "sums", run_id, timeout=120, on_look=lambda view: states.append(view.state), check=airflow.check
        )
        assert states[-1] == view.state == "success"
        assert [task.task_id for task in view.tasks][:3] == ["numbers", "double", "choose"]
        assert {task.task_id: task.text for task in view.tasks} == {
            "numbers": "success",
            "double": "success 3/3",
            "choose": "success",
            "small": "skipped",
            "large": "success",
            "report": "success",
        }
        assert client.xcom("sums", run_id, "numbers") == [60, 4, 5]
        assert client.xcom("sums", run_id, "double", map_index=2) == 10
        assert client.xcom("sums", run_id, "small") is None
        assert [run["dag_run_id"] for run in client.runs("sums")] == ["by-page"]
        assert client.run("sums", run_id)["conf"] == {"numbers": [60, 4, 5]}


def test_a_refused_request_is_named_with_its_answer(airflow: StandaloneAirflow) -> None:
    with pytest.raises(AirflowApiError, match=r"POST http://\S+/dags/absent/dagRuns was answered with 404") as refused:
        airflow.client.trigger("absent")
    assert refused.value.status == 404
    stranger = AirflowClient(airflow.url, login=lambda: ("admin", "wrong"))
    with stranger, pytest.raises(AirflowApiError, match="auth/token was answered with 401"):
        stranger.dag("sums")


def test_a_backfill_runs_each_past_day_once(airflow: StandaloneAirflow) -> None:
    client = airflow.client
    client.wait_for_dag("daily", since=airflow.started_at)
    assert client.unpause("daily")["is_paused"] is False
    client.create_backfill("daily", datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC))
    assert client.dag("daily")["is_paused"] is False
    days = set()
    backfill = [run for run in client.runs("daily") if run["run_type"] == "backfill"]
    for run in backfill:
        view = watch_run(client, "daily", run["dag_run_id"], timeout=120, check=airflow.check)
        assert view.state == "success"
        days.add(client.xcom("daily", run["dag_run_id"], "day"))
    assert len(backfill) == 3
    assert days == {"2026-01-01", "2026-01-02", "2026-01-03"}


# -- the commands -------------------------------------------------------------------------------------------


def test_demo_shows_the_report_and_every_task(airflow: StandaloneAirflow, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(airflow, "demo", "--dag-id", "sums") == 0
    shown = capsys.readouterr().out
    assert "Using the Airflow that runs in" in shown
    assert "how [bold]much[/bold]?" in shown
    assert "Index: 3 documents: 0 added, 0 changed, 0 removed, 3 reused" in shown
    tasks = shown.split("\nTasks\n")[1]
    assert "success 3/3" in tasks
    assert "skipped" in next(line for line in tasks.splitlines() if "large" in line)
    username, password = airflow.login()
    assert f"{username} / {password}" in shown
    assert f"{airflow.url}/dags/sums/runs/manual__" in shown.replace("\n", "")
    airflow.check()  # what `up` started goes on running


def test_demo_gives_the_run_its_conf(airflow: StandaloneAirflow) -> None:
    assert command(airflow, "demo", "--dag-id", "sums", "--conf", '{"numbers": [7, 8]}') == 0
    run = airflow.client.runs("sums")[-1]
    assert airflow.client.xcom("sums", run["dag_run_id"], "numbers") == [7, 8]


def test_demo_fails_with_the_log_of_the_task_that_failed(
    airflow: StandaloneAirflow, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(airflow, "demo", "--dag-id", "failing") == 1
    shown = capsys.readouterr()
    assert "failed 1/2, success 1/2" in shown.out
    assert "The run failed after" in shown.err
    log = shown.err.split("divide[1] (try 1) failed; the end of its log:")[1]
    assert "dividing by 0" in log
    assert "ZeroDivisionError: integer division or modulo by zero" in log
    assert "dividing by 1" not in log


def test_demo_fails_with_the_import_error_of_the_dag_file(
    airflow: StandaloneAirflow, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(airflow, "demo", "--dag-id", "broken") == 1
    shown = capsys.readouterr().err
    assert "could not import the DAG 'broken'" in shown
    assert "RuntimeError: this file is broken on purpose" in shown


def test_demo_fails_when_the_run_takes_too_long(airflow: StandaloneAirflow, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(airflow, "demo", "--dag-id", "endless", "--timeout", "4") == 1
    assert "was still running after 4 s. Not finished: sleep (" in capsys.readouterr().err
    assert airflow.client.dag("endless")["is_paused"] is True  # type: ignore[index]
    assert [run["state"] for run in airflow.client.runs("endless")] == ["failed"]


def test_demo_finds_a_dag_that_is_new_although_another_file_is_broken(airflow: StandaloneAirflow) -> None:
    source = (airflow.dags / "dated.py").read_text(encoding="utf-8")
    (airflow.dags / "late.py").write_text(source.replace("dated", "quite_new"), encoding="utf-8")
    assert command(airflow, "demo", "--dag-id", "quite_new") == 0


def test_demo_refuses_a_pool_that_is_not_there(airflow: StandaloneAirflow, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(airflow, "demo", "--dag-id", "pooled") == 1
    assert "There is no pool 'own pool', which one of the DAG 'pooled' uses: it would never start." in capsys.readouterr().err
    assert airflow.client.runs("pooled") == []


def test_demo_gives_its_run_a_date(airflow: StandaloneAirflow) -> None:
    assert command(airflow, "demo", "--dag-id", "dated") == 0
    run = airflow.client.runs("dated")[0]
    assert airflow.client.xcom("dated", run["dag_run_id"], "day") == f"on {run['logical_date'][:10]}"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_demo_that_is_ended_leaves_its_dag_paused(airflow: StandaloneAirflow, number: signal.Signals) -> None:
    client, before = airflow.client, len(airflow.client.runs("endless"))
    demo = demo_process(airflow, "--dag-id", "endless")
    try:
        deadline = time.monotonic() + 60
        while len(runs := client.runs("endless")) == before or runs[-1]["state"] != "running":
            assert demo.poll() is None, demo.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.1)
        demo.send_signal(number)
        demo.communicate(timeout=60)
    finally:
        demo.kill()
    if number == signal.SIGKILL:
        assert client.dag("endless")["is_paused"] is False  # type: ignore[index]
        switch_off(client, airflow.home)  # as the next start does, before its scheduler
    assert client.dag("endless")["is_paused"] is True  # type: ignore[index]
    assert client.runs("endless")[-1]["state"] == "failed"
    switch_off(client, airflow.home)  # there is nothing left to do


def test_a_watched_run_says_what_it_still_waits_for(airflow: StandaloneAirflow) -> None:
    airflow.client.unpause("endless")
    run = airflow.client.trigger("endless", run_id="watched")
    with pytest.raises(RunTimeoutError, match=r"Not finished: sleep \("):
        watch_run(airflow.client, "endless", run["dag_run_id"], timeout=0)


def test_up_says_where_the_running_one_is(airflow: StandaloneAirflow, capsys: pytest.CaptureFixture[str]) -> None:
    before = airflow.components
    assert command(airflow, "up") == 0
    assert airflow.url in capsys.readouterr().out
    again = StandaloneAirflow.attach(airflow.home)
    assert again is not None
    assert again.components == before


def test_another_dags_folder_needs_another_home(
    airflow: StandaloneAirflow, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["up", "--home", str(airflow.home), "--dags", str(tmp_path)]) == 1
    assert "uses the DAGs folder" in capsys.readouterr().err


def test_a_second_start_in_the_same_home_is_refused(airflow: StandaloneAirflow) -> None:
    with pytest.raises(AirflowStartError, match="already runs in"):
        StandaloneAirflow(airflow.home, airflow.dags).start()
    airflow.check()


# -- the end ------------------------------------------------------------------------------------------------


def test_a_component_that_died_is_reported_with_its_log(airflow: StandaloneAirflow) -> None:
    triggerer = next(ref for ref in airflow.components if ref.name == "triggerer")
    process = triggerer.find()
    assert process is not None
    process.kill()
    process.wait(10)
    with pytest.raises(AirflowStartError, match=r"(?s)triggerer ended by itself.*triggerer\.log.*Starting the triggerer"):
        airflow.check()
    assert StandaloneAirflow.attach(airflow.home) is None


def test_down_ends_every_process_a_running_task_included(
    airflow: StandaloneAirflow, capsys: pytest.CaptureFixture[str]
) -> None:
    sessions = [ref.pid for ref in airflow.components]
    deadline = time.monotonic() + 60
    while [task["state"] for task in airflow.client.task_instances("endless", "watched")] != ["running"]:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert any("airflow worker" in command_line for command_line in left_of(sessions))
    assert command(airflow, "down") == 0
    assert "is ended" in capsys.readouterr().out
    assert left_of(sessions) == []
    with contextlib.closing(sqlite3.connect(airflow.home / "airflow.db")) as database:
        states = database.execute("SELECT state FROM task_instance WHERE run_id = 'watched'").fetchall()
    assert states == [("failed",)]  # the scheduler of the next start need not find out by itself
    assert command(airflow, "down") == 0
    assert "No Airflow runs" in capsys.readouterr().out
    assert airflow.stop() == []


def test_an_interrupted_start_leaves_nothing_running(airflow: StandaloneAirflow) -> None:
    port = kept_port(airflow.home)
    demo = demo_process(airflow)
    try:
        deadline = time.monotonic() + 60
        while (state := read_state(airflow.home)) is None or len(state.components) < 3:
            assert demo.poll() is None, demo.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.1)
        # The scheduler is the third: the API that its tasks report to answers by now.
        assert httpx.get(f"{state.url}/execution/health", trust_env=False, timeout=5).status_code == 200
        assert state.owner is not None
        assert state.owner.pid == demo.pid
        assert state.url == f"http://127.0.0.1:{port}"  # as before
        demo.send_signal(signal.SIGINT)
        shown, _ = demo.communicate(timeout=60)
    finally:
        demo.kill()
    # Python itself ends by the signal when it was interrupted in the middle of an import; for a shell both are 130.
    assert demo.returncode in (130, -signal.SIGINT), shown
    assert left_of([ref.pid for ref in state.components]) == []
    assert read_state(airflow.home) is None
