"""Waiting for what another process does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(holds: Callable[[], T]) -> T:
    """Calls it until what it gives counts as true, and gives that. Fails after two minutes."""
    deadline = time.monotonic() + 120
    while not (found := holds()):
        assert time.monotonic() < deadline, "waited two minutes"
        time.sleep(0.1)
    return found
