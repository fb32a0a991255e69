"""The servers as fixtures; conftest imports them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, TypeVar

import pytest

from tests.servers.anthropic import AnthropicRequest, AnthropicServer
from tests.servers.gemini import GeminiRequest, GeminiServer
from tests.servers.scripted import ScriptedServer

S = TypeVar("S", bound=ScriptedServer[Any])

# A developer's own settings must not lead a test to the real services.
_ELSEWHERE = (
    "GEMINI_API_KEY",
    "GOOGLE_GENAI_USE_VERTEXAI",
    "GOOGLE_GENAI_USE_ENTERPRISE",
    "GOOGLE_VERTEX_BASE_URL",
    "ANTHROPIC_AUTH_TOKEN",
)


@pytest.fixture
def gemini(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[GeminiRequest], Any]], GeminiServer]]:
    """`gemini(script)` starts a server and leads google-genai's clients to it until the test ends."""
    with ExitStack() as servers:

        def start(script: Callable[[GeminiRequest], Any]) -> GeminiServer:
            return _lead_to(servers.enter_context(GeminiServer(script)), monkeypatch)

        yield start


@pytest.fixture
def anthropic(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[AnthropicRequest], Any]], AnthropicServer]]:
    """`anthropic(script)` starts a server and leads Anthropic's clients to it until the test ends."""
    with ExitStack() as servers:

        def start(script: Callable[[AnthropicRequest], Any]) -> AnthropicServer:
            return _lead_to(servers.enter_context(AnthropicServer(script)), monkeypatch)

        yield start


def _lead_to(server: S, monkeypatch: pytest.MonkeyPatch) -> S:
    for name in _ELSEWHERE:
        monkeypatch.delenv(name, raising=False)
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return server
