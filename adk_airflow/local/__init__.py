"""A real Airflow of one's own: scheduler, API server, DAG processor and triggerer in one folder.

``StandaloneAirflow`` starts and ends it, ``AirflowClient`` speaks its public REST API, ``watch_run`` follows one
DAG run. The commands ``adk-airflow demo | up | down`` and the tests that need a scheduler are built on these.
It is for trying things out on one machine (SQLite, LocalExecutor); ``docker-compose.yaml`` is the same on
Postgres and Celery.
"""

from adk_airflow.local.client import AirflowClient
from adk_airflow.local.errors import (
    AirflowApiError,
    AirflowStartError,
    DagImportError,
    RunTimeoutError,
    StandaloneError,
)
from adk_airflow.local.run import RunView, TaskView, watch_run
from adk_airflow.local.server import StandaloneAirflow

__all__ = [
    "AirflowApiError",
    "AirflowClient",
    "AirflowStartError",
    "DagImportError",
    "RunTimeoutError",
    "RunView",
    "StandaloneAirflow",
    "StandaloneError",
    "TaskView",
    "watch_run",
]
