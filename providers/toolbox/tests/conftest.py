"""An Airflow home of their own for these tests, when they do not run with the project's, and the real server."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

ROOT = str(Path(__file__).parents[3])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)  # for tests.servers

if "airflow" not in sys.modules and "AIRFLOW_HOME" not in os.environ:
    os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="adk-airflow-toolbox-tests-")

from tests.servers.toolbox import toolbox  # noqa: E402, F401
