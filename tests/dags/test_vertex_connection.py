"""A DAG run whose agent uses a Vertex AI connection, for its model and for what it searches; no credential is left anywhere."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from adk_airflow_google_genai import VertexAiSearchConnectionTool
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.adk.agents import LlmAgent
from google.adk.workflow import START, Workflow
from sqlalchemy import select

from adk_airflow.testing import run_workflow
from tests.servers.gemini import GeminiRequest, GeminiServer

TOKEN = "token-of-the-service-account-0123456789"
STORE = "projects/p/locations/global/collections/default_collection/dataStores/manuals"


@pytest.fixture
def token_uri() -> Iterator[str]:
    """Where google-auth gets the tokens of a service account."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            answer = json.dumps({"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/token"
    server.shutdown()
    thread.join()
    server.server_close()


def service_account(token_uri: str) -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    fields = {"type": "service_account", "project_id": "p", "private_key_id": "1", "client_email": "airflow@p.iam"}
    return json.dumps({**fields, "private_key": pem, "token_uri": token_uri})


def test_an_agent_asks_and_searches_with_a_vertex_ai_connection(
    token_uri: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def script(request: GeminiRequest) -> str:
        return f"asked: {request.last_text}"

    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    key = service_account(token_uri)
    tool = VertexAiSearchConnectionTool(conn_id="vertex_eu", max_results=5)
    agent = LlmAgent(name="librarian", model="gemini-2.5-flash", instruction="Search.", tools=[tool])
    with GeminiServer(script) as server:
        extra = {"project": "my-project", "location": "europe-west1", "data_store": STORE}
        connection = {"conn_type": "google_genai_vertex", "password": key, "host": server.url, "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_VERTEX_EU", json.dumps(connection))
        run = run_workflow(Workflow(name="library", edges=[(START, agent)]), input="Where is it?", llm_conn_id="vertex_eu")

    assert run.error is None
    assert run.output == "asked: Where is it?"
    (request,) = server.requests
    assert "/projects/my-project/locations/europe-west1/publishers/google/models/gemini-2.5-flash:" in request.path
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert request.body["tools"] == [{"retrieval": {"vertex_ai_search": {"datastore": STORE, "max_results": 5}}}]
    with create_session() as session:
        texts = [str(value) for value in session.scalars(select(XComModel.value).where(XComModel.run_id == run.run_id))]
    shown = capsys.readouterr()
    for secret in (TOKEN, json.loads(key)["private_key"].splitlines()[1]):
        assert not [text for text in [*texts, shown.out, shown.err] if secret in text]
