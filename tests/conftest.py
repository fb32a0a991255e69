"""All tests of a process share one Airflow home of their own: SQLite, no examples, made anew for each test session."""

from __future__ import annotations

import os
import tempfile

from adk_airflow.testing import use_airflow_home
from tests.keys import set_key
from tests.scheduler import scheduler
from tests.servers.fixtures import anthropic, gemini

_HOME = tempfile.TemporaryDirectory(prefix="adk-airflow-tests-")
use_airflow_home(_HOME.name)
# Seconds that Airflow's supervisor may take to notice the end of a process (tests/supervised.py).
os.environ.setdefault("AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL", "1")

__all__ = ["anthropic", "gemini", "scheduler", "set_key"]  # fixtures
