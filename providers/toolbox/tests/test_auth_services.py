"""Tools that ask for a token, on the real server, which checks it against an issuer of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import jwt
import pytest
from adk_airflow_toolbox import ConnectionToolboxToolset, ToolboxConfigError, ToolboxUnavailableError
from cryptography.hazmat.primitives.asymmetric import rsa
from toolbox_adk import CredentialConfig, CredentialType

from tests.servers.toolbox import CONFIG, ToolboxServer

GUARDED = """
authServices:
  sso:
    kind: generic
    audience: shop
    authorizationServer: ISSUER
""" + CONFIG.replace(
    "toolsets:",
    """  my_orders:
    kind: sqlite-sql
    source: shop
    description: Lists the orders of who asks.
    authRequired: [sso]
    parameters:
      - {name: me, type: string, description: Who asks., authServices: [{name: sso, field: name}]}
    statement: SELECT id, total FROM orders WHERE customer = ? ORDER BY id
toolsets:""",
)


class Issuer:
    """An OpenID provider with one key, as far as the server asks it."""

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.url = ""

    def token(self, name: str) -> str:
        claims = {"iss": self.url, "aud": "shop", "sub": "7", "name": name, "exp": 4102444800}
        return jwt.encode(claims, self._key, algorithm="RS256", headers={"kid": "1"})

    def document(self, path: str) -> dict[str, Any]:
        if "well-known" in path:
            return {"issuer": self.url, "jwks_uri": f"{self.url}/jwks"}
        key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self._key.public_key()))
        return {"keys": [{**key, "kid": "1", "use": "sig", "alg": "RS256"}]}


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    made = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(made.document(self.path)).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made.url = f"http://127.0.0.1:{server.server_address[1]}"
        Thread(target=server.serve_forever, daemon=True).start()
        yield made
        server.shutdown()


@pytest.fixture
def guarded(issuer: Issuer, tmp_path: Path) -> Iterator[ToolboxServer]:
    with ToolboxServer(tmp_path, GUARDED.replace("ISSUER", issuer.url)) as server:
        yield server


@pytest.fixture
def ask(guarded: ToolboxServer, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Calls a tool through a connection with this extra and password; `code` is what the toolset is given beside it."""

    def call(tool_name: str, password: str = "", code: dict[str, Any] | None = None, **extra: Any) -> Any:
        fields = {"conn_type": "mcp_toolbox", "host": guarded.url, "password": password, "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps(fields))
        toolset = ConnectionToolboxToolset("shop", **code or {})

        async def run() -> Any:
            try:
                tools = {tool.name: tool for tool in await toolset.get_tools()}
                return json.loads(await tools[tool_name].run_async(args={}, tool_context=None))
            finally:
                await toolset.close()

        return asyncio.run(run())

    return call


def test_a_tool_gets_the_token_of_the_connection(ask: Callable[..., Any], issuer: Issuer) -> None:
    services = {"sso": "{password}", "another": {"token": "which no tool asks for"}}
    assert ask("my_orders", issuer.token("Ada"), auth_services=services) == [{"id": 1, "total": 12.5}, {"id": 3, "total": 7}]
    assert ask("my_orders", issuer.token("Grace"), auth_services=services) == {"id": 2, "total": 99}


def test_a_token_given_in_code_goes_before_that_of_the_connection(ask: Callable[..., Any], issuer: Issuer) -> None:
    contexts: list[Any] = []

    def grace(tool_context: Any) -> str:
        contexts.append(tool_context)
        return issuer.token("Grace")

    code = {"auth_token_getters": {"sso": grace}}
    assert ask("my_orders", issuer.token("Ada"), code, auth_services={"sso": "{password}"}) == {"id": 2, "total": 99}
    assert contexts == [None]  # the context of the call


def test_a_token_given_in_code_that_no_tool_takes_is_refused(ask: Callable[..., Any]) -> None:
    with pytest.raises(ToolboxConfigError, match=r"^connection 'shop', MCP Toolbox server .*`staff` unused by tool"):
        ask("count_orders", code={"auth_token_getters": {"staff": lambda: "token"}})


def test_credentials_given_in_code_that_cannot_be_used_name_the_connection(ask: Callable[..., Any]) -> None:
    with pytest.raises(ToolboxConfigError, match=r"^connection 'shop', MCP Toolbox server .*target_audience is required"):
        ask("count_orders", code={"credentials": CredentialConfig(type=CredentialType.WORKLOAD_IDENTITY)})


def test_a_tool_that_asks_for_none_is_called_without(ask: Callable[..., Any], issuer: Issuer) -> None:
    assert ask("count_orders", auth_services={"sso": {"token": "not looked at"}}) == {"orders": 3}


def test_a_token_that_is_not_given_is_named(ask: Callable[..., Any], guarded: ToolboxServer) -> None:
    with pytest.raises(ToolboxConfigError) as refused:
        ask("my_orders")
    assert str(refused.value).startswith(f"connection 'shop', MCP Toolbox server {guarded.url}, tool 'my_orders': ")
    assert str(refused.value).endswith(": sso. Give its token in the connection's auth services.")


def test_a_token_that_the_server_refuses_is_not_shown(ask: Callable[..., Any], issuer: Issuer, guarded: ToolboxServer) -> None:
    forged = issuer.token("Ada")[:-8] + "AAAAAAAA"
    with pytest.raises(ToolboxUnavailableError) as refused:
        ask("my_orders", forged, auth_services={"sso": "{password}"})
    text = str(refused.value)
    assert text.startswith(f"connection 'shop', MCP Toolbox server {guarded.url}, tool 'my_orders': the call failed: ")
    assert "unauthorized" in text
    assert forged not in text


def test_a_server_that_ends_meanwhile_is_named(guarded: ToolboxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps({"conn_type": "mcp_toolbox", "host": guarded.url}))
    toolset = ConnectionToolboxToolset("shop", tool_names=["count_orders"])

    async def run() -> None:
        try:
            (tool,) = await toolset.get_tools()
            guarded.stop()
            await tool.run_async(args={}, tool_context=None)
        finally:
            await toolset.close()

    with pytest.raises(ToolboxUnavailableError, match="tool 'count_orders': the call failed: ") as refused:
        asyncio.run(run())
    assert str(refused.value).startswith("connection 'shop', ")
