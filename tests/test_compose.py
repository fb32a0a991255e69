"""docker-compose.yaml runs what `make up` runs, and whatever can be said about it without running it holds."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from adk_airflow.local.server import StandaloneAirflow

CHECKOUT = Path(__file__).parent.parent
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


def test_the_image_has_the_release_of_airflow_that_the_constraints_name() -> None:
    release = re.search(r"^apache-airflow==(.+)$", (CHECKOUT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert release is not None
    dockerfile = (CHECKOUT / "docker/Dockerfile").read_text(encoding="utf-8")
    assert f"apache/airflow:{release[1]}-python" in dockerfile
