"""The parts of the standalone Airflow that need no Airflow to be tried."""

from __future__ import annotations

import dataclasses
import io
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from rich.console import Console

from adk_airflow.cli import main
from adk_airflow.local import AirflowClient, AirflowStartError, StandaloneAirflow, TaskView
from adk_airflow.local.client import own_errors
from adk_airflow.local.errors import AirflowApiError
from adk_airflow.local.processes import ProcessRef, end
from adk_airflow.local.run import graph_order
from adk_airflow.local.settings import airflow_environment, default_parallelism, free_port
from adk_airflow.local.show import show_report
from adk_airflow.local.state import StandaloneState, exclusive, read_state, write_state

# -- settings -----------------------------------------------------------------------------------------------


def environment(**parent: str) -> dict[str, str]:
    return airflow_environment(home=Path("/h"), dags=Path("/d"), api_port=20001, log_port=20002, parent=parent)


def test_settings_of_another_airflow_are_dropped_connections_and_variables_are_kept() -> None:
    env = environment(
        AIRFLOW__DATABASE__SQL_ALCHEMY_CONN="postgresql://production",
        AIRFLOW_CONFIG="/etc/airflow.cfg",
        AIRFLOW_HOME="/srv/airflow",
        AIRFLOW_CONN_GEMINI="google-genai://",
        AIRFLOW_VAR_COLOUR="blue",
        LANG="C.UTF-8",
    )
    assert env["AIRFLOW_HOME"] == "/h"
    assert "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN" not in env
    assert "AIRFLOW_CONFIG" not in env
    assert env["AIRFLOW_CONN_GEMINI"] == "google-genai://"
    assert env["AIRFLOW_VAR_COLOUR"] == "blue"
    assert env["LANG"] == "C.UTF-8"


def test_airflow_writes_byte_code_even_where_python_was_told_not_to() -> None:
    assert "PYTHONDONTWRITEBYTECODE" not in environment(PYTHONDONTWRITEBYTECODE="1")


def test_tasks_reach_the_api_server_without_the_proxy_of_the_shell() -> None:
    env = environment(HTTP_PROXY="http://proxy:3128", no_proxy="intranet")
    assert env["no_proxy"] == env["NO_PROXY"] == "intranet,127.0.0.1,localhost"
    assert env["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://127.0.0.1:20001/execution/"
    assert env["AIRFLOW__API__BASE_URL"] == "http://127.0.0.1:20001"


def test_a_free_port_can_be_listened_on() -> None:
    port = free_port()
    with socket.socket() as server:
        server.bind(("127.0.0.1", port))
        server.listen()


def test_the_port_of_the_last_start_is_taken_again_if_it_is_free() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", port := free_port()))
        server.listen()
        assert free_port(first=port) != port
    assert free_port(first=port) == port
    assert free_port(first=80) != 80  # no port of ours


def test_parallelism_is_between_four_and_eight() -> None:
    assert 4 <= default_parallelism() <= 8


# -- processes ----------------------------------------------------------------------------------------------


@pytest.fixture
def stubborn() -> Iterator[ProcessRef]:
    """A process that ignores a TERM, with a child in the same session."""
    leader = subprocess.Popen(
        ["sh", "-c", "trap '' TERM; sleep 598 & sleep 599; :"], start_new_session=True, stdin=subprocess.DEVNULL
    )
    process = psutil.Process(leader.pid)
    while len(process.children()) < 2:
        time.sleep(0.01)
    yield ProcessRef("stubborn", leader.pid, process.create_time(), command="sleep")
    leader.kill()
    leader.wait()


def test_a_process_that_ignores_term_is_killed_with_its_children(stubborn: ProcessRef) -> None:
    family = stubborn.family()
    assert len(family) == 3
    killed = end([stubborn], grace=0.2)
    assert "sleep 598" in killed
    assert not any(process.is_running() for process in family)
    assert end([stubborn], grace=0.2) == []


def test_children_whose_component_is_gone_are_found_and_ended(stubborn: ProcessRef) -> None:
    children = psutil.Process(stubborn.pid).children()
    psutil.Process(stubborn.pid).kill()
    psutil.Process(stubborn.pid).wait(10)
    assert {process.pid for process in stubborn.family()} == {process.pid for process in children}
    end([stubborn], grace=0.2)
    assert not any(process.is_running() for process in children)


@pytest.mark.parametrize(
    "change",
    [{"started": 1_000_000_000.0}, {"command": "airflow scheduler"}],
    ids=["another start time", "another command line"],
)
def test_a_foreign_process_with_the_number_of_an_old_one_is_left_alone(
    stubborn: ProcessRef, change: dict[str, Any], tmp_path: Path
) -> None:
    stale = dataclasses.replace(stubborn, **change)
    write_state(tmp_path, StandaloneState(url="http://127.0.0.1:1", dags="/d", started_at=0.0, components=(stale,)))
    assert StandaloneAirflow.attach(tmp_path) is None
    assert main(["down", "--home", str(tmp_path)]) == 0
    assert len(stubborn.family()) == 3
    assert read_state(tmp_path) is None


# -- the state file -----------------------------------------------------------------------------------------


def test_the_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    ref = ProcessRef("scheduler", 7, 1.5, "/l")
    state = StandaloneState(url="http://127.0.0.1:1", dags="/d", started_at=2.5, components=(ref,), owner=ref)
    write_state(tmp_path, state)
    assert read_state(tmp_path) == state


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"url": "x"}', '{"components": [{"pid": 1}]}'])
def test_a_damaged_state_file_counts_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "standalone.json").write_text(text, encoding="utf-8")
    assert read_state(tmp_path) is None
    assert StandaloneAirflow.attach(tmp_path) is None


def test_two_commands_do_not_start_or_end_in_one_home_at_once(tmp_path: Path) -> None:
    (tmp_path / "dags").mkdir()
    with exclusive(tmp_path), pytest.raises(AirflowStartError, match="Another adk-airflow command"):
        StandaloneAirflow(tmp_path, tmp_path / "dags").start()


# -- starting what cannot start -----------------------------------------------------------------------------


def test_a_missing_dags_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(AirflowStartError, match=r"no DAGs folder .*/absent\. Name one with --dags"):
        StandaloneAirflow(tmp_path / "home", tmp_path / "absent").start()
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("home", ["file", "file/below", "/proc/none", "n" * 300])
def test_a_home_that_cannot_be_used_is_one_line_of_standard_error(
    tmp_path: Path, home: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dags").mkdir()
    for name in ("demo", "up"):
        assert main([name, "--home", str(tmp_path / home), "--dags", str(tmp_path / "dags")]) == 1
        shown = capsys.readouterr()
        assert shown.out == ""
        assert shown.err.startswith(f"adk-airflow: The folder {tmp_path / home} cannot be used: ")
        assert shown.err.endswith(". Name another folder with --home.\n")
        assert shown.err.count("\n") == 1
    assert main(["down", "--home", str(tmp_path / home)]) == 0
    assert "No Airflow runs in" in capsys.readouterr().out.replace("\n", " ")


def test_a_database_that_cannot_be_made_is_reported_with_the_log(tmp_path: Path) -> None:
    (tmp_path / "dags").mkdir()
    settings = {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "nonsense://"}
    with pytest.raises(AirflowStartError, match=r"(?s)`airflow db migrate` .* failed .*db-migrate\.log.*nonsense"):
        StandaloneAirflow(tmp_path / "home", tmp_path / "dags", settings=settings).start()
    assert read_state(tmp_path / "home") is None


def test_an_address_where_nobody_answers_is_named() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with AirflowClient(url, login=lambda: ("admin", "x")) as client:
        assert client.unhealthy() == ["api-server"]
        with pytest.raises(AirflowApiError, match=rf"POST {url}/auth/token got no answer") as refused:
            client.dag("any")
    assert refused.value.status is None


@pytest.mark.parametrize(
    ("files", "broken", "told"),
    [
        ({"a.py": "dag airflow 'sales'"}, ["a.py"], ["a.py"]),
        ({"sales.py": "dag airflow"}, ["sales.py"], ["sales.py"]),
        ({"a.py": "dag airflow 'sales'"}, ["other.py"], []),
        # The broken one names it, too, but the other may be the one that is not parsed yet.
        ({"a.py": "dag airflow 'sales'", "b.py": "dag airflow trigger('sales')"}, ["b.py"], []),
        ({"a.py": "dag airflow 'sales_by_day'", "my/sales.py": "def sales(): ..."}, ["a.py"], []),
        ({"a.py": "dag airflow 'my.sales:root'", "my/sales.py": "def sales(): ..."}, ["a.py"], ["a.py"]),
    ],
)
def test_an_import_error_is_that_of_a_dag_if_no_other_file_names_it(
    tmp_path: Path, files: dict[str, str], broken: list[str], told: list[str]
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")

    own = own_errors([{"filename": name} for name in broken], "sales", None, tmp_path)

    assert [error["filename"] for error in own] == told


# -- what is shown ------------------------------------------------------------------------------------------


def instance(state: str | None, map_index: int = -1, start: str | None = None, end: str | None = None) -> dict[str, Any]:
    return {"state": state, "map_index": map_index, "start_date": start, "end_date": end}


def test_a_task_in_words() -> None:
    assert TaskView("t").text == "none"
    assert TaskView("t", (instance(None),)).text == "none"
    assert TaskView("t", (instance("skipped"),)).text == "skipped"
    mapped = TaskView("t", (instance("success", 0), instance("failed", 1), instance("success", 2)))
    assert mapped.text == "failed 1/3, success 2/3"
    assert mapped.is_finished
    assert not TaskView("t", (instance("success", 0), instance(None, 1))).is_finished


def test_seconds_of_a_mapped_task_go_from_the_first_start_to_the_last_end() -> None:
    first = instance("success", 0, "2026-01-01T00:00:01+00:00", "2026-01-01T00:00:02+00:00")
    last = instance("success", 1, "2026-01-01T00:00:03.5Z", "2026-01-01T00:00:07Z")
    assert TaskView("t", (first, last)).seconds == 6.0
    assert TaskView("t", (instance("skipped", -1, "2026-01-01T00:00:01Z", "2026-01-01T00:00:01Z"),)).seconds is None


def test_tasks_come_in_the_order_of_the_graph() -> None:
    edges = {"report": [], "collect": ["report"], "run": ["collect"], "items": ["run"]}
    assert graph_order([{"task_id": task, "downstream_task_ids": to} for task, to in edges.items()]) == [
        "items",
        "run",
        "collect",
        "report",
    ]


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        (None, []),
        ("plain", ['"plain"']),
        ({"any": 1}, ['"any": 1']),
        ({"table": []}, ["The report has no rows."]),
        ({"table": [{"question": "a | [b]", "score": 2.5}, {"question": None}]}, ["a | [b]", "2.50", "-"]),
        ({"table": [], "summary": {"questions": 2}}, ["Answers: 2 questions; route: ?"]),
        ({"table": [], "summary": {"index": {}}}, ["Index: ? documents: no counts"]),
        ({"table": [], "artifacts": {"report.md": 3}}, ["Artifacts: report.md (version 3)"]),
        ({"table": [], "skipped": [{"document": "x.bin", "reason": "not text"}]}, ["Skipped: x.bin"]),
        ({"table": ["odd"], "summary": "odd", "artifacts": [], "skipped": 1}, ["The report has no rows."]),
    ],
)
def test_a_report_is_shown_as_far_as_it_is_there(output: Any, shown: list[str]) -> None:
    console = Console(width=100, record=True, file=io.StringIO())
    show_report(console, output)
    text = console.export_text()
    for part in shown:
        assert part in text


# -- the command line ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["demo", "--conf", "{"], "not JSON"),
        (["demo", "--conf", "[1]"], "must be a JSON object"),
        (["demo", "--timeout", "-1"], "seconds above 0"),
        (["demo", "--timeout", "nan"], "seconds above 0"),
        (["fly"], "invalid choice"),
        ([], "required"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_why(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert complaint in capsys.readouterr().err


def test_the_command_imports_nothing_heavy_before_it_knows_what_to_do() -> None:
    code = "import sys, adk_airflow.cli\nprint(sorted({'airflow', 'google.adk', 'rich', 'httpx', 'psutil'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
