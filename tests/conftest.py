"""All tests share one Airflow home of their own: SQLite, no examples, made anew for each test session."""

from __future__ import annotations

import tempfile

from adk_airflow.testing import use_airflow_home
from tests.servers.fixtures import anthropic, gemini

_HOME = tempfile.TemporaryDirectory(prefix="adk-airflow-tests-")
use_airflow_home(_HOME.name)

__all__ = ["anthropic", "gemini"]  # fixtures
