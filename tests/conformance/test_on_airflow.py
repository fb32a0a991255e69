"""`run.py --airflow`: the cases on a running Airflow, where each task is a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from adk_airflow.local import StandaloneAirflow

HERE = Path(__file__).parent


def run(*arguments: str, token: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / "run.py"), str(HERE / "cases.py"), str(HERE / "expected.json"), *arguments]
    environment = {**os.environ, "AIRFLOW_TOKEN": token}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_cases_run_on_an_airflow_and_what_only_processes_show_is_documented(scheduler: StandaloneAirflow) -> None:
    only = "seq_model_typed,pw_map,llm_preload_memory,build_plain_cycle,state_kept_on_failure,sync_bodies_serial"
    user = ":".join(scheduler.login())
    done = run("--only", only, "--airflow", scheduler.url, "--dags", str(scheduler.dags), "--user", user)

    assert done.returncode == 0, done.stdout + done.stderr
    difference, documented, agreed = done.stdout.splitlines()
    assert difference.startswith("sync_bodies_serial: output: ADK 1, here 0")
    assert documented == "documented in docs/differences.md: sync_bodies_serial"
    assert agreed == "5 of 6 agree"
    assert not (scheduler.dags / "adk_conformance").exists()


def test_a_token_is_enough(scheduler: StandaloneAirflow) -> None:
    scheduler.client.dag_ids()  # logs in
    token = scheduler.client._http.headers["Authorization"].removeprefix("Bearer ")
    arguments = ("--only", "seq_chain", "--airflow", scheduler.url, "--dags", str(scheduler.dags), "--mode", "embedded")
    done = run(*arguments, token=token)

    assert done.stdout.splitlines()[-1:] == ["1 of 1 agree"], done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--airflow", "http://127.0.0.1:1"), "--airflow needs --dags"),
        (("--airflow", "http://127.0.0.1:1", "--dags", str(HERE)), "--airflow needs --user"),
    ],
)
def test_what_is_missing_is_said(arguments: tuple[str, ...], told: str) -> None:
    done = run(*arguments)

    assert done.returncode == 2
    assert told in done.stderr
