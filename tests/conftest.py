"""All tests of a process share one Airflow home of their own: SQLite, no examples, made anew for each test session."""

from __future__ import annotations

import os
import tempfile

import pytest

from adk_airflow.testing import use_airflow_home
from tests.servers.fixtures import anthropic, gemini

_HOME = tempfile.TemporaryDirectory(prefix="adk-airflow-tests-")
use_airflow_home(_HOME.name)
# Seconds that Airflow's supervisor may take to notice the end of a process (tests/supervised.py).
os.environ.setdefault("AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL", "1")

__all__ = ["anthropic", "gemini"]  # fixtures

# On a real scheduler, in the order in which they are run.
_SCHEDULER = ("tests/local/", "tests/test_real_runs.py", "tests/dags/test_scheduled.py", "tests/toolbox/test_toolbox_real.py")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With `-n`, the tests of a file run in one process, in their order, and no two Airflows with a scheduler run at a time."""
    for item in items:
        file = item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group("scheduler" if file.startswith(_SCHEDULER) else file))
