from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def memory_of_the_case_only() -> Iterator[None]:
    """``run.py`` names a memory service in the environment; the tests elsewhere shall not find it."""
    yield
    os.environ.pop("AIRFLOW__ADK_AIRFLOW__MEMORY_SERVICE_URI", None)
