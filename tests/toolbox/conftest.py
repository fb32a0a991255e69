"""Connections to the real Toolbox server, a Gemini server that answers from a script, and a look at what stays open."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.servers.fixtures import gemini  # noqa: F401

from tests.servers.toolbox import toolbox  # noqa: F401


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes an Airflow connection of the type `mcp_toolbox`."""

    def make(conn_id: str, **fields: Any) -> None:
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps({"conn_type": "mcp_toolbox", **fields}))

    return make
