"""One Airflow with a scheduler for all tests that only use it: their DAG files lie side by side in one DAGs folder.

``tests/local`` has one of its own, since its tests break and end it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from adk_airflow.local import StandaloneAirflow
from tests.servers.gemini import GeminiRequest, GeminiServer, Reply, call, structured, text

DAGS = Path(__file__).parents[1] / "dags"
OF_TESTS = Path(__file__).parent / "scheduler_dags"


def script(request: GeminiRequest) -> Reply:
    """The model that asks the shop's tool, for `toolbox_query`, or the one for the weather, for `imports`."""
    if request.response_schema:
        return structured({"name": "Oslo"})
    if request.function_responses:
        answer = request.function_responses[0]["response"]
        return text(f"The shop says {answer.get('result', answer)}")
    if "weather" in request.tools:
        return call("weather", {"city": "Oslo"})
    return call("orders_above", {"customer": "Ada", "amount": 10})


@pytest.fixture(scope="session")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneAirflow]:
    """With the DAGs of this repository and those of `tests/scheduler_dags`, paused."""
    with start(tmp_path_factory.mktemp("scheduler")) as started:
        yield started


@contextmanager
def start(folder: Path, more: Mapping[str, str] | None = None) -> Iterator[StandaloneAirflow]:
    """That Airflow in a folder of its own.

    Args:
        folder: For its DAGs and its home.
        more: Further settings.
    """
    for dags in (DAGS, OF_TESTS):
        shutil.copytree(dags, folder / "dags", ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    with GeminiServer(script) as model:
        settings = {
            **model.environment,
            "NO_PROXY": "127.0.0.1",
            "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
            "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "180",  # the files import ADK, on a machine that may be busy
            "AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "False",  # no runs but those that are triggered
            **(more or {}),
        }
        with StandaloneAirflow(folder / "home", folder / "dags", settings=settings) as started:
            yield started


def unpaused(airflow: StandaloneAirflow, *dag_ids: str) -> StandaloneAirflow:
    """Waits until these DAGs are there, and lets them run."""
    for dag_id in dag_ids:
        airflow.client.wait_for_dag(dag_id, since=airflow.started_at, timeout=180)
        airflow.client.unpause(dag_id)
    return airflow
