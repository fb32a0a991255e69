"""docker-compose.yaml runs what `make up` runs, and whatever can be said about it without running it holds."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.fernet import Fernet

from adk_airflow.local.server import StandaloneAirflow
from adk_airflow.local.settings import airflow_environment
from tests.test_distributions import CHECKOUT, CONSTRAINTS, pinned, resolve

DOCKERFILE = CHECKOUT / "docker" / "Dockerfile"
FILE = CHECKOUT / "docker-compose.yaml"
CONDITIONS = {"service_started", "service_healthy", "service_completed_successfully"}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return loaded


def compose_commands() -> list[list[str]]:
    """The compose clients of this machine: Docker's plugin, or the older command of its own."""
    found = []
    if shutil.which("docker"):
        probe = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
        if probe.returncode == 0:
            found.append(["docker", "compose"])
    if shutil.which("docker-compose"):
        found.append(["docker-compose"])
    return found


@pytest.mark.skipif(not compose_commands(), reason="neither `docker compose` nor `docker-compose` is installed")
def test_the_compose_client_accepts_the_file() -> None:
    environment = {name: value for name, value in os.environ.items() if "AIRFLOW" not in name}
    for command in compose_commands():
        done = subprocess.run(
            [*command, "--file", str(FILE), "config"],
            capture_output=True,
            text=True,
            cwd=CHECKOUT,
            env=environment,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert set(yaml.safe_load(done.stdout)["services"]) >= {"airflow-apiserver", "airflow-worker"}


def test_it_has_a_database_a_queue_and_every_component_of_airflow(compose: dict[str, Any]) -> None:
    assert set(compose["services"]) == {
        "postgres",
        "redis",
        "airflow-init",
        "airflow-apiserver",
        "airflow-scheduler",
        "airflow-dag-processor",
        "airflow-triggerer",
        "airflow-worker",
    }


def test_each_component_that_make_up_starts_is_the_command_of_a_service(compose: dict[str, Any]) -> None:
    commands = [service.get("command") for service in compose["services"].values() if "build" in service]
    for component in StandaloneAirflow.COMPONENTS:
        assert component in commands


def test_the_comment_names_each_component_that_make_up_starts() -> None:
    header = FILE.read_text(encoding="utf-8").split("\nx-airflow")[0]
    for component in StandaloneAirflow.COMPONENTS:
        assert re.search(rf"# +airflow {component} +-> ", header), component


def test_every_dependency_is_a_service_that_can_meet_its_condition(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for name, service in services.items():
        for needed, how in service.get("depends_on", {}).items():
            assert needed in services, f"{name} depends on {needed}"
            assert how["condition"] in CONDITIONS
            if how["condition"] == "service_healthy":
                assert "healthcheck" in services[needed], f"{name} waits for {needed} to be healthy"


def test_dependencies_have_no_circle(compose: dict[str, Any]) -> None:
    services = compose["services"]
    started: set[str] = set()
    while len(started) < len(services):
        ready = {name for name, service in services.items() if set(service.get("depends_on", {})) <= started}
        assert ready > started, f"never started: {set(services) - started}"
        started |= ready


def test_every_lasting_service_has_a_health_check(compose: dict[str, Any]) -> None:
    unchecked = {name for name, service in compose["services"].items() if "healthcheck" not in service}
    assert unchecked == {"airflow-init"}


def test_every_named_volume_is_declared_and_every_mounted_folder_exists(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        for mount in service.get("volumes", []):
            source = mount.split(":")[0]
            if source.startswith("."):
                assert (CHECKOUT / source).is_dir(), source
            else:
                assert source in compose["volumes"], source


def test_every_secret_can_be_set_from_outside(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        for name, value in service.get("environment", {}).items():
            if re.search(r"SECRET|FERNET|_KEY$|PASSWORD$|SQL_ALCHEMY_CONN|RESULT_BACKEND", name):
                assert "${" in value, f"{name} has no variable of the environment in it"


def test_the_image_is_built_from_what_the_builder_is_given(compose: dict[str, Any]) -> None:
    build = compose["x-airflow"]["build"]
    dockerfile = CHECKOUT / build["dockerfile"]
    copied = re.findall(r"^COPY (?:--\S+ )*(.+) \S+$", dockerfile.read_text(encoding="utf-8"), re.MULTILINE)
    allowed = dockerfile.with_name("Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    for source in " ".join(copied).split():
        assert (CHECKOUT / source).exists(), source
        assert f"!{source}" in allowed, source


def airflow_services(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The services that run Airflow, with those that only set it up."""
    return {name: service for name, service in compose["services"].items() if name.startswith("airflow-")}


def default_of(value: Any) -> str:
    """What a value is when no variable of the environment is set."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", str(value))


def test_the_image_has_the_release_of_airflow_that_the_constraints_name() -> None:
    release = pinned(CONSTRAINTS.read_text())["apache-airflow"]
    assert f"ARG AIRFLOW_IMAGE=apache/airflow:slim-{release}-python" in DOCKERFILE.read_text(encoding="utf-8")


def image_requirements() -> list[str]:
    """What the image's pip installs, its paths as those of this checkout."""
    text = DOCKERFILE.read_text(encoding="utf-8").replace("\\\n", " ")
    install = re.search(r"pip install (.*?)&&", text)
    extras = re.search(r"ARG AIRFLOW_EXTRAS=(\S+)", text)
    assert install is not None
    assert extras is not None
    release = pinned(CONSTRAINTS.read_text())["apache-airflow"]
    words = re.findall(r'"([^"]+)"', install[1])
    words = [word.replace("${AIRFLOW_EXTRAS}", extras[1]).replace("${AIRFLOW_VERSION}", release) for word in words]
    return [re.sub(r"^/opt/adk-airflow/?", "-e ./", word) for word in words]


def test_all_that_the_image_installs_has_one_version_that_the_constraints_name() -> None:
    """The slim image brings no extras of its own; that it is so can only be seen by building it, where `pip check` looks."""
    text = DOCKERFILE.read_text(encoding="utf-8")
    python = re.search(r"ARG AIRFLOW_IMAGE=\S+-python(\S+)", text)
    assert python is not None
    done = resolve(image_requirements(), python[1])

    assert len(image_requirements()) == 5
    assert done.returncode == 0, done.stderr
    found = pinned(done.stdout)
    assert found.items() <= pinned(CONSTRAINTS.read_text()).items()
    assert {"celery", "redis", "psycopg2-binary", "google-adk", "llama-index-embeddings-google-genai"} <= found.keys()
    assert "&& pip check" in text


def test_what_tasks_on_different_workers_share_is_on_a_volume_of_the_image(compose: dict[str, Any]) -> None:
    made = re.search(r"^RUN mkdir -p (.+)$", DOCKERFILE.read_text(encoding="utf-8"), re.MULTILINE)
    assert made is not None
    for name in ("airflow-worker", "airflow-scheduler", "airflow-dag-processor", "airflow-triggerer"):
        service = compose["services"][name]
        mounted = {mount.split(":")[1]: mount.split(":")[0] for mount in service["volumes"]}
        for setting in ("ARTIFACTS_URI", "MEMORY_SERVICE_URI"):
            scheme, _, folder = service["environment"][f"AIRFLOW__ADK_AIRFLOW__{setting}"].partition("://")
            assert scheme == "file"
            assert mounted[folder] in compose["volumes"]
            assert folder in made[1].split()
        assert mounted["/opt/airflow/batch_retrieval"] in compose["volumes"]


def test_connections_are_encrypted_by_default(compose: dict[str, Any]) -> None:
    keys = {default_of(service["environment"]["AIRFLOW__CORE__FERNET_KEY"]) for service in airflow_services(compose).values()}
    (key,) = keys

    assert Fernet(key).decrypt(Fernet(key).encrypt(b"secret")) == b"secret"
    assert base64.urlsafe_b64decode(key).startswith(b"for-development-only")


def test_it_schedules_as_fast_as_make_up(compose: dict[str, Any], tmp_path: Path) -> None:
    ours = airflow_environment(home=tmp_path, dags=tmp_path, api_port=1, log_port=2, parent={}, overrides={})
    sections = ("AIRFLOW__SCHEDULER__", "AIRFLOW__DAG_PROCESSOR__", "AIRFLOW__WORKERS__", "AIRFLOW__TRIGGERER__")
    wanted = {name: value for name, value in ours.items() if name.startswith(sections)}

    assert len(wanted) == 6
    for service in airflow_services(compose).values():
        assert wanted.items() <= service["environment"].items()


def test_a_worker_takes_a_known_number_of_tasks_and_lets_them_end(compose: dict[str, Any]) -> None:
    worker = compose["services"]["airflow-worker"]

    assert default_of(worker["environment"]["AIRFLOW__CELERY__WORKER_CONCURRENCY"]) == "4"
    assert (worker["stop_grace_period"], worker["environment"]["DUMB_INIT_SETSID"]) == ("10m", "0")
    for service in [*airflow_services(compose).values(), compose["services"]["postgres"]]:
        assert service["stop_grace_period"] in ("1m", "10m")


def test_byte_code_has_a_place_although_the_dags_are_mounted_read_only(compose: dict[str, Any]) -> None:
    text = DOCKERFILE.read_text(encoding="utf-8")
    prefix = re.search(r"^ENV PYTHONPYCACHEPREFIX=(\S+)$", text, re.MULTILINE)
    assert prefix is not None

    assert re.search(rf"^RUN mkdir -p .*{prefix[1]}", text, re.MULTILINE)
    assert text.index("ENV PYTHONPYCACHEPREFIX") < text.index("RUN pip install") < text.index("compileall")
    mounts = [mount for service in airflow_services(compose).values() for mount in service.get("volumes", [])]
    assert {mount for mount in mounts if mount.startswith("./dags")} == {"./dags:/opt/airflow/dags:ro"}
