"""Airflow's Fernet key as a fixture; conftest imports it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

SetKey = Callable[[str], None]


@pytest.fixture
def set_key(monkeypatch: pytest.MonkeyPatch) -> Iterator[SetKey]:
    """`set_key(key)` sets `[core] fernet_key` until the test ends; empty: there is none."""
    from adk_airflow.runtime.wire import sealed

    def set_key(key: str) -> None:
        monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", key)
        sealed._fernet.cache_clear()

    yield set_key
    sealed._fernet.cache_clear()
