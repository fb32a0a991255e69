"""What a connection says, how it reaches the server, and that its secrets stay inside."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

import pytest
from adk_airflow_toolbox import ConnectionToolboxToolset, ToolboxConfigError, ToolboxHook, ToolboxUnavailableError
from adk_airflow_toolbox.settings import ToolboxSettings, settings_of
from airflow.sdk import Connection

from tests.servers.toolbox import ToolboxServer

SECRET = "correct-horse-battery"


def settings(**fields: Any) -> ToolboxSettings:
    extra = fields.pop("extra", None)
    text = extra if isinstance(extra, str) or extra is None else json.dumps(extra)
    return settings_of(Connection(conn_id="shop", conn_type="mcp_toolbox", extra=text, **fields))


def given_by(getter: Any) -> str:
    return asyncio.run(getter())


@contextmanager
def recorder(status: int = 200, answer: Any = None) -> Iterator[tuple[str, list[tuple[dict[str, str], bytes]]]]:
    """An HTTP server that gives every POST one answer and keeps what it was sent."""
    seen: list[tuple[dict[str, str], bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            seen.append((headers, body))
            text = (answer if isinstance(answer, str) else json.dumps(answer)).replace(
                "$AUTH", headers.get("authorization", "")
            )
            self.send_response(status)
            self.send_header("content-type", "text/plain" if isinstance(answer, str) else "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", seen
        finally:
            server.shutdown()


# -- the URL ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "url"),
    [
        ({"host": "http://127.0.0.1:5000"}, "http://127.0.0.1:5000"),
        ({"host": "https://toolbox.example.com/"}, "https://toolbox.example.com"),
        ({"host": "https://toolbox.example.com/mcp"}, "https://toolbox.example.com"),
        ({"host": "toolbox.example.com"}, "https://toolbox.example.com"),
        ({"host": "toolbox", "port": 5000, "schema": "http"}, "http://toolbox:5000"),
        ({"host": "http://[::1]", "port": 5000}, "http://[::1]:5000"),
        ({"host": "https://example.com/tools", "port": 8443}, "https://example.com:8443/tools"),
    ],
)
def test_the_url_is_the_host_field(fields: dict[str, Any], url: str) -> None:
    assert settings(**fields).url == url


def test_a_connection_uri_in_the_environment_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", "mcp-toolbox://http%3A%2F%2F127.0.0.1%3A5000")
    assert ToolboxHook("shop").get_conn().url == "http://127.0.0.1:5000"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, "its URL is empty. It must be like 'https://toolbox.example.com'"),
        ({"host": "ftp://example.com"}, "its URL is no URL"),
        ({"host": f"https://me:{SECRET}@example.com"}, "its URL holds a credential; put it into a header"),
        ({"host": "example.com", "extra": "{"}, "its extra is no JSON object"),
        ({"host": "example.com", "extra": {"headers": "Authorization"}}, "headers must be a JSON object"),
        ({"host": "example.com", "extra": {"bound_params": [1]}}, "bound_params must be a JSON object"),
        ({"host": "example.com", "extra": {"headers": {"X-Key": 5}}}, "header 'X-Key' must be a text"),
        ({"host": "example.com", "extra": {"headers": {"X-Key": {"key": SECRET}}}}, "header 'X-Key' must be a text"),
        ({"host": "example.com", "extra": {"auth_services": {"sso": {"token": ""}}}}, "auth service 'sso' must be a text"),
        ({"host": "example.com", "extra": {"headers": {"X-Key": "{password}"}}}, "header 'X-Key' uses {password}, but"),
    ],
)
def test_a_connection_that_cannot_be_used_says_which_field_and_nothing_of_its_value(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ToolboxConfigError) as refused:
        settings(**fields)
    assert str(refused.value).startswith(f"connection 'shop': {why}")
    assert SECRET not in str(refused.value)


# -- headers and tokens -------------------------------------------------------------------------------------


def test_the_password_goes_where_the_connection_says() -> None:
    found = settings(
        host="example.com",
        password=SECRET,
        extra={
            "headers": {"Authorization": "Bearer {password}", "X-Tenant": "north", "X-Key": {"token": "a-token"}},
            "auth_services": {"sso": "{password}", "orders": {"token": "another-token"}},
        },
    )
    assert found.headers == {"Authorization": f"Bearer {SECRET}", "X-Tenant": "north", "X-Key": "Bearer a-token"}
    assert {name: given_by(getter) for name, getter in found.auth_token_getters.items()} == {
        "sso": SECRET,
        "orders": "another-token",
    }


def test_fields_of_the_form_may_come_as_text() -> None:
    found = settings(host="example.com", extra={"headers": '{"X-Tenant": "north"}', "bound_params": "", "auth_services": None})
    assert (found.headers, found.bound_params, found.auth_token_getters) == ({"X-Tenant": "north"}, {}, {})


def test_nothing_secret_is_in_the_repr() -> None:
    found = settings(
        host="example.com",
        password=SECRET,
        extra={
            "headers": {"X-Key": "{password}"},
            "auth_services": {"sso": {"token": "a-token"}},
            "bound_params": {"pin": 1234},
        },
    )
    assert repr(found) == "ToolboxSettings(conn_id='shop', url='https://example.com')"


def test_headers_are_sent_and_an_answer_that_quotes_them_is_shown_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    with recorder(401, "no: $AUTH is not known") as (url, seen):
        monkeypatch.setenv(
            "AIRFLOW_CONN_SHOP",
            json.dumps(
                {
                    "conn_type": "mcp_toolbox",
                    "host": url,
                    "password": SECRET,
                    "extra": {"headers": {"Authorization": "Bearer {password}", "X-Tenant": "north"}},
                }
            ),
        )
        with pytest.raises(ToolboxUnavailableError) as refused:
            asyncio.run(ConnectionToolboxToolset("shop").get_tools())
        assert ToolboxHook("shop").test_connection() == (False, str(refused.value))
    assert {(headers["authorization"], headers["x-tenant"]) for headers, _ in seen} == {(f"Bearer {SECRET}", "north")}
    assert str(refused.value).startswith(f"connection 'shop', MCP Toolbox server {url} refuses the connection's credentials: ")
    assert "*** is not known" in str(refused.value)
    assert refused.value.permanent is True
    assert SECRET not in str(refused.value)


# -- Google ID tokens ---------------------------------------------------------------------------------------


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[tuple[dict[str, str], bytes]]]:
    """Default credentials of a service account whose token endpoint is a local server; gives what that was asked."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    claims = "eyJhbGciOiJub25lIn0.eyJleHAiOjQxMDI0NDQ4MDB9."  # unsigned; expires in 2100
    with recorder(answer={"id_token": claims}) as (url, seen):
        account = {
            "type": "service_account",
            "client_email": "worker@example.iam.gserviceaccount.com",
            "private_key": pem,
            "private_key_id": "1",
            "token_uri": f"{url}/token",
        }
        path = tmp_path / "account.json"
        path.write_text(json.dumps(account))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield seen


def test_a_google_id_token_is_fetched_for_its_audience_once(google: list[tuple[dict[str, str], bytes]]) -> None:
    from google.auth import jwt

    found = settings(
        host="example.com",
        extra={
            "headers": {"Authorization": {"google_audience": "https://toolbox.example.com"}},
            "auth_services": {"sso": {"google_audience": "https://orders.example.com"}},
        },
    )
    assert google == []
    header, token = found.headers["Authorization"], found.auth_token_getters["sso"]
    assert (given_by(header), given_by(header)) == ("Bearer eyJhbGciOiJub25lIn0.eyJleHAiOjQxMDI0NDQ4MDB9.",) * 2
    assert given_by(token).startswith("eyJ")
    assertions = [parse_qs(body.decode())["assertion"][0] for _, body in google]
    audiences = [jwt.decode(text, verify=False)["target_audience"] for text in assertions]
    assert audiences == ["https://toolbox.example.com", "https://orders.example.com"]
    assert "eyJ" not in found.redact(f"the server said {given_by(token)}")


def test_without_google_credentials_the_connection_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "nothing.json"))
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps({"conn_type": "mcp_toolbox", "host": "http://127.0.0.1:9", "extra": {
        "headers": {"Authorization": {"google_audience": "https://toolbox.example.com"}}}}))  # fmt: skip
    with pytest.raises(ToolboxUnavailableError) as refused:
        asyncio.run(ConnectionToolboxToolset("shop").get_tools())
    assert str(refused.value) == (
        "connection 'shop': no Google ID token for 'https://toolbox.example.com' (DefaultCredentialsError)."
        " The worker needs default credentials of a service account."
    )
    assert refused.value.permanent is True


# -- the hook -----------------------------------------------------------------------------------------------


def test_the_connection_test_says_which_tools_there_are(toolbox: ToolboxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps({"conn_type": "mcp_toolbox", "host": toolbox.url}))
    hook = Connection.get("shop").get_hook()
    assert type(hook) is ToolboxHook
    assert hook.list_tools("writing") == ["add_order"]
    answered, text = hook.test_connection()
    assert answered is True
    assert text.startswith("The server answers. It has 6 tools: add_order, ")


def test_the_connection_test_says_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps({"conn_type": "mcp_toolbox"}))
    answered, text = ToolboxHook("shop").test_connection()
    assert answered is False
    assert text.startswith("connection 'shop': its URL is empty.")
