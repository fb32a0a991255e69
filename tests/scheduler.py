"""One Airflow with a scheduler for all tests that only use it: their DAG files lie side by side in one DAGs folder.

``tests/local`` has one of its own, since its tests break and end it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from adk_airflow.local import StandaloneAirflow
from tests.servers.gemini import GeminiRequest, GeminiServer, Reply, call, text

DAGS = Path(__file__).parents[1] / "dags"
OF_TESTS = Path(__file__).parent / "scheduler_dags"


def script(request: GeminiRequest) -> Reply:
    """The model that asks the shop's tool, for `toolbox_query`."""
    if request.function_responses:
        return text(f"The shop says {request.function_responses[0]['response']['result']}")
    return call("orders_above", {"customer": "Ada", "amount": 10})


@pytest.fixture(scope="session")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneAirflow]:
    """With the DAGs of this repository and those of `tests/scheduler_dags`, paused."""
    folder = tmp_path_factory.mktemp("scheduler")
    for dags in (DAGS, OF_TESTS):
        shutil.copytree(dags, folder / "dags", ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    with GeminiServer(script) as model:
        settings = {
            **model.environment,
            "NO_PROXY": "127.0.0.1",
            "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
            "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "180",  # the files import ADK, on a machine that may be busy
            "AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "False",  # no runs but those that are triggered
        }
        with StandaloneAirflow(folder / "home", folder / "dags", settings=settings) as started:
            yield started


def unpaused(airflow: StandaloneAirflow, *dag_ids: str) -> StandaloneAirflow:
    """Waits until these DAGs are there, and lets them run."""
    for dag_id in dag_ids:
        airflow.client.wait_for_dag(dag_id, since=airflow.started_at, timeout=180)
        airflow.client.unpause(dag_id)
    return airflow
