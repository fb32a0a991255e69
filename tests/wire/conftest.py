from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _pythons_own_recursion_limit() -> Iterator[None]:
    """Airflow raises it to 5000 for good when a test before copied an operator; in a task nobody has."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(before)
