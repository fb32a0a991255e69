"""`adk-airflow doctor`: each thing that can be wrong is one line that says what to do, and exit 1."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from adk_airflow import doctor
from adk_airflow.doctor import Finding, findings

KEY = "Zm9yLWRldmVsb3BtZW50LW9ubHktcmVwbGFjZS1tZSE="
ALL = {
    *("apache-airflow", "google-adk", "google-genai", "providers", "artifacts", "memory", "sessions", "encryption"),
    *("DAGs folder", "byte code"),
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An Airflow home on one machine, in which all is well."""
    for name in [name for name in os.environ if name.startswith("AIRFLOW__ADK_AIRFLOW__")]:
        monkeypatch.delenv(name)
    (tmp_path / "dags").mkdir()
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "LocalExecutor")
    monkeypatch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(tmp_path / "dags"))
    monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", KEY)
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    return tmp_path


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "adk_airflow.cli", "doctor", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def found(check: str) -> list[Finding]:
    return [finding for finding in findings() if finding.check == check]


def problem(check: str) -> Finding:
    """The one thing that is wrong with it."""
    (finding,) = found(check)
    assert not finding.ok
    assert finding.remedy
    return finding


def test_where_all_is_well_every_line_says_so(home: Path) -> None:
    done = run()

    assert (done.returncode, done.stdout.count("PROBLEM")) == (0, 0), done.stdout + done.stderr
    assert {line.split(": ")[0].removeprefix("ok").strip() for line in done.stdout.splitlines()} == ALL
    assert f"artifacts: file://{home}/adk_artifacts can be read and written" in done.stdout
    assert list(home.rglob("*doctor*")) == []


def test_a_problem_has_a_remedy_and_exit_1_also_as_json(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(home / "none"))
    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__SESSION_SERVICE_URI", f"sqlite:///{home}/sessions.db")
    told, as_json = run(), run("--json")

    assert (told.returncode, as_json.returncode) == (1, 1)
    assert f"PROBLEM  DAGs folder: {home}/none is not there\n         Set [core] dags_folder" in told.stdout
    rows = json.loads(as_json.stdout)
    assert {row["check"] for row in rows} == ALL
    (wrong,) = [row for row in rows if not row["ok"]]
    assert wrong == {
        "check": "DAGs folder",
        "ok": False,
        "found": f"{home}/none is not there",
        "remedy": "Set [core] dags_folder to it, and let the user that runs Airflow read it.",
    }


def install(folder: Path, name: str, version: str, entry_points: str = "") -> None:
    """Puts the metadata of a distribution where Python finds it first."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(entry_points)


@pytest.mark.parametrize(("name", "version"), [("apache-airflow", "3.2.2"), ("google-adk", "2.12.0"), ("google-genai", "1.9")])
def test_a_version_that_is_not_supported(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, version: str
) -> None:
    install(tmp_path / "site", name, version)
    monkeypatch.syspath_prepend(tmp_path / "site")

    finding = problem(name)
    assert re.match(rf"{re.escape(version)} is installed; adk-airflow, .* supports [<>=]", finding.found)
    assert f'pip install -c constraints.txt "{name}' in finding.remedy


def test_a_provider_that_cannot_be_loaded(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    point = "[adk_airflow.llm]\nmine = adk_airflow_mine_is_not_there:make_llm\n"
    install(tmp_path / "site", "adk-airflow-mine", "1.0", point)
    monkeypatch.syspath_prepend(tmp_path / "site")

    wrong, well = found("providers")
    assert not wrong.ok
    assert wrong.found.startswith(
        "adk-airflow-mine: its entry point 'mine' in 'adk_airflow.llm' cannot be loaded: ModuleNotFound"
    )
    assert wrong.remedy == "Install it anew: pip install --force-reinstall adk-airflow-mine"
    assert (well.ok, "adk-airflow-toolbox" in well.found) == (True, True)


@pytest.mark.parametrize(("check", "option"), [("artifacts", "ARTIFACTS_URI"), ("memory", "MEMORY_SERVICE_URI")])
@pytest.mark.parametrize(
    ("uri", "told"),
    [
        ("relative", "is not a URI"),
        ("nowhere://bucket/adk", "nowhere://"),
        ("file://{home}/link/adk", "cannot be used"),
    ],
)
def test_a_place_that_cannot_be_used(
    home: Path, monkeypatch: pytest.MonkeyPatch, check: str, option: str, uri: str, told: str
) -> None:
    (home / "link").symlink_to(home / "nowhere" / "at all")
    monkeypatch.setenv(f"AIRFLOW__ADK_AIRFLOW__{option}", uri.format(home=home))

    finding = problem(check)
    assert told in finding.found
    assert f"[adk_airflow] {option.lower()}" in finding.remedy


def test_a_connection_that_is_not_there(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__MEMORY_CONN_ID", "none_of_that_name")

    assert "none_of_that_name" in problem("memory").found


def test_a_session_service_is_asked_and_its_password_not_shown(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__SESSION_SERVICE_URI", f"sqlite:///{home}/sessions.db")
    (well,) = found("sessions")
    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__SESSION_SERVICE_URI", "mysql+none://user:hidden@127.0.0.1:1/db")
    wrong = problem("sessions")

    assert well.ok
    assert "hidden" not in str(wrong)


@pytest.mark.parametrize("executor", ["CeleryExecutor", "LocalExecutor,CeleryExecutor", "team=KubernetesExecutor"])
def test_a_place_on_one_machine_where_tasks_run_on_several(home: Path, monkeypatch: pytest.MonkeyPatch, executor: str) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", executor)
    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__SESSION_SERVICE_URI", f"sqlite:///{home}/sessions.db")
    monkeypatch.setattr(doctor, "_mount_point", lambda folder: Path("/"))
    for check, option in (
        ("artifacts", "artifacts_uri"),
        ("memory", "memory_service_uri"),
        ("sessions", "session_service_uri"),
    ):
        finding = problem(check)
        assert f"{home}" in finding.found
        assert f"is on this machine's own disk, and the executor ({executor})" in finding.found
        assert finding.remedy.startswith(f"Set [adk_airflow] {option} to a place that all machines reach")


def test_the_settings_of_docker_compose_share_what_the_defaults_do_not(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its volumes are mounts of their own; without its settings the same worker keeps all in its own home."""
    compose = yaml.safe_load((Path(__file__).parents[1] / "docker-compose.yaml").read_text())
    worker = compose["services"]["airflow-worker"]
    mounts = [Path(mount.split(":")[1]) for mount in worker["volumes"]]
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", worker["environment"]["AIRFLOW__CORE__EXECUTOR"])
    monkeypatch.setattr(
        doctor, "_mount_point", lambda folder: next((path for path in mounts if folder.is_relative_to(path)), Path("/"))
    )
    assert not problem("memory").ok
    for option in ("ARTIFACTS_URI", "MEMORY_SERVICE_URI"):
        name = f"AIRFLOW__ADK_AIRFLOW__{option}"
        uri = worker["environment"][name].replace("/opt/airflow", str(home))
        monkeypatch.setenv(name, uri)
    mounts[:] = [home / path.relative_to("/opt/airflow") for path in mounts]

    assert [finding.ok for check in ("artifacts", "memory") for finding in found(check)] == [True, True]


@pytest.mark.parametrize(("key", "told"), [("", "is empty"), ("{FERNET_KEY}", "is empty"), ("secret", "is no Fernet key")])
def test_passwords_that_are_not_encrypted(home: Path, monkeypatch: pytest.MonkeyPatch, key: str, told: str) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", key)

    finding = problem("encryption")
    assert told in finding.found
    assert "secret" not in finding.found
    assert "Fernet.generate_key()" in finding.remedy


def test_several_keys_are_keys(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", f"{KEY},{KEY}")

    assert [finding.ok for finding in found("encryption")] == [True]


def test_byte_code_that_cannot_be_kept(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(home / "nothing-compiled"))
    rows = {row["check"]: row for row in json.loads(run("--json").stdout)}

    assert not rows["byte code"]["ok"]
    assert re.search(r"\d{3,} of \d{3,} modules are compiled anew by every process", rows["byte code"]["found"])
    assert "python -m compileall" in rows["byte code"]["remedy"]
    assert not rows["DAGs folder"]["ok"]
    assert "byte code of its files cannot be kept" in rows["DAGs folder"]["found"]
    assert "PYTHONPYCACHEPREFIX" in rows["DAGs folder"]["remedy"]


def test_a_check_that_fails_itself_is_a_problem_and_the_others_go_on(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(folder: Path) -> Path:
        raise RuntimeError("no mounts here")

    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "CeleryExecutor")
    monkeypatch.setattr(doctor, "_mount_point", broken)

    assert problem("artifacts").found == "could not be looked at: RuntimeError: no mounts here"
    assert {finding.check for finding in findings()} == ALL
