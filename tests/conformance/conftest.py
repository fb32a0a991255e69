from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def runner() -> Any:
    """The script ``run.py``, as a module."""
    spec = importlib.util.spec_from_file_location("conformance_run", Path(__file__).parent / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def memory_of_the_case_only() -> Iterator[None]:
    """``run.py`` names a memory service in the environment; the tests elsewhere shall not find it."""
    yield
    os.environ.pop("AIRFLOW__ADK_AIRFLOW__MEMORY_SERVICE_URI", None)
