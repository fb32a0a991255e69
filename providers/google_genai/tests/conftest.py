"""What the tests share: connections, a service account whose tokens come from this machine, and a server for both."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs

import pytest
from airflow.sdk import Connection
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

KEY = "AIza-not-a-real-key-0123456789abcdef"
TOKEN = "token-of-the-service-account-0123456789"
ANSWER = {"candidates": [{"content": {"role": "model", "parts": [{"text": "hello"}]}, "finishReason": "STOP"}]}


@dataclass
class Cloud:
    """Google on this machine: a token endpoint, and one answer for everything else.

    Attributes:
        key: An API key that stands in the connections.
        token: The access token that the token endpoint gives.
        requests: Those of the API as they came: method, path, headers (names in lower case) and body.
        assertions: The forms that asked for a token.
        status: HTTP status of the API's answers.
        answer: Their JSON.
        answering: Not set: the API answers nothing until the test ends.
        token_error: Answer of the token endpoint instead of a token, with status 400.
    """

    url: str = ""
    key: str = KEY
    token: str = TOKEN
    requests: list[SimpleNamespace] = field(default_factory=list)
    assertions: list[dict[str, list[str]]] = field(default_factory=list)
    status: int = 200
    answer: Any = field(default_factory=lambda: ANSWER)
    token_error: dict[str, str] | None = None
    answering: threading.Event = field(default_factory=threading.Event)

    def refuse(self, status: int, name: str, message: str, reason: str | None = None) -> None:
        """Answers with an error as Google words it; `{key}` in the message is the key, which Google quotes now and then."""
        message = message.replace("{key}", self.key)
        info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "googleapis.com"}
        details = {"details": [info]} if reason else {}
        self.status = status
        self.answer = {"error": {"code": status, "message": message, "status": name, **details}}


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    state = Cloud()
    state.answering.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.path == "/token":
                state.assertions.append(parse_qs(content.decode()))
                token = {"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"}
                self._send(400 if state.token_error else 200, state.token_error or token)
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = json.loads(content) if content else {}
            state.requests.append(SimpleNamespace(method=self.command, path=self.path, headers=headers, body=body))
            state.answering.wait()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # nobody waits for it any more
                self._send(state.status, state.answer)

        do_GET = do_POST

        def _send(self, status: int, answer: Any) -> None:
            payload = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield state
    state.answering.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def strange_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Every variable that could bring in other credentials says something that no test wants to see."""
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "key-of-the-environment")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "project-of-the-environment")
    monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "location-of-the-environment")
    monkeypatch.setenv("NO_GCE_CHECK", "true")  # else google-auth waits for a metadata server that is not there
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "no-gcloud"))
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


@pytest.fixture
def key_json(cloud: Cloud, private_key: str) -> str:
    """A service account key as Google Cloud gives it, but for the address of the token endpoint."""
    return json.dumps(
        {
            "type": "service_account",
            "project_id": "project-of-the-key",
            "private_key_id": "1",
            "private_key": private_key,
            "client_email": "airflow@project-of-the-key.iam.gserviceaccount.com",
            "token_uri": f"{cloud.url}/token",
        },
        indent=2,
    )


@pytest.fixture
def gemini_connection(cloud: Cloud) -> Callable[..., Connection]:
    def make(conn_id: str = "gemini", key: str | None = KEY, host: str | None = cloud.url) -> Connection:
        return Connection(conn_id=conn_id, conn_type="google_genai", password=key, host=host)

    return make


@pytest.fixture
def vertex_connection(cloud: Cloud, key_json: str) -> Callable[..., Connection]:
    def make(conn_id: str = "vertex", key: str | None = key_json, host: str | None = cloud.url, **extra: str) -> Connection:
        extra = {"project": "my-project", "location": "europe-west1", **extra}
        return Connection(conn_id=conn_id, conn_type="google_genai_vertex", password=key, host=host, extra=json.dumps(extra))

    return make
