"""The servers as fixtures; conftest imports them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.servers.gemini import GeminiRequest, GeminiServer

# A developer's own settings must not lead a test to the real services.
_OF_GEMINI = ("GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_VERTEX_BASE_URL")


@pytest.fixture
def gemini(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[GeminiRequest], Any]], GeminiServer]]:
    """`gemini(script)` starts a server and leads google-genai's clients to it until the test ends."""
    with ExitStack() as servers:

        def start(script: Callable[[GeminiRequest], Any]) -> GeminiServer:
            server = servers.enter_context(GeminiServer(script))
            for name in _OF_GEMINI:
                monkeypatch.delenv(name, raising=False)
            for name, value in server.environment.items():
                monkeypatch.setenv(name, value)
            monkeypatch.setenv("NO_PROXY", "127.0.0.1")
            return server

        yield start
