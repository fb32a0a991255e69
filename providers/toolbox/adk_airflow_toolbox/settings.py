"""What an Airflow connection of the type ``mcp_toolbox`` says, read and checked."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from adk_airflow_toolbox.errors import ToolboxConfigError

if TYPE_CHECKING:
    from airflow.sdk import Connection

CONN_TYPE = "mcp_toolbox"
DEFAULT_CONN_ID = "mcp_toolbox_default"
_PASSWORD = "{password}"
_HIDDEN = "***"

TokenGetter = Callable[[], Awaitable[str]]


@dataclass(frozen=True)
class ToolboxSettings:
    """Where an MCP Toolbox server is, and how to talk to it.

    Attributes:
        conn_id: The Airflow connection.
        url: ``http(s)://host[:port][/path]``, without the ``/mcp`` that the client adds.
        headers: Sent with every request: a text, or what fetches one.
        auth_token_getters: By the name of one of the server's auth services: what gives its token.
        bound_params: By the name of a parameter: its value in every tool that has it.
        secrets: The texts that ``redact`` hides; a token that is fetched later joins them.
    """

    conn_id: str
    url: str
    headers: Mapping[str, str | TokenGetter] = field(default_factory=dict, repr=False)
    auth_token_getters: Mapping[str, TokenGetter] = field(default_factory=dict, repr=False)
    bound_params: Mapping[str, Any] = field(default_factory=dict, repr=False)
    secrets: set[str] = field(default_factory=set, repr=False, compare=False)

    @property
    def where(self) -> str:
        """How errors name the server."""
        return f"connection {self.conn_id!r}, MCP Toolbox server {self.url}"

    def redact(self, text: str) -> str:
        """The text without the connection's secrets."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, _HIDDEN)
        return text


def read_settings(conn_id: str) -> ToolboxSettings:
    """Reads an Airflow connection and hides its secrets in the task's log.

    Asks Airflow and waits for the answer: on the thread of a running event loop that can hang, so call it elsewhere.

    Raises:
        ToolboxConfigError: There is no such connection, or it cannot be used.
    """
    from airflow.sdk import Connection
    from airflow.sdk.exceptions import AirflowNotFoundException

    try:
        connection = Connection.get(conn_id)
    except AirflowNotFoundException:
        raise ToolboxConfigError(
            f"Airflow has no connection {conn_id!r}: add one of the type MCP Toolbox, with the server's URL."
        ) from None
    return settings_of(connection)


def settings_of(connection: Connection) -> ToolboxSettings:
    """What the connection says.

    Raises:
        ToolboxConfigError: It cannot be used; says which field and why, without any value of it.
    """
    from airflow.sdk.log import mask_secret

    conn_id = connection.conn_id
    password = connection.password or ""
    extra = _extra(connection)
    secrets: set[str] = set()

    def hide(secret: str) -> None:
        if secret and secret not in secrets:
            secrets.add(secret)
            mask_secret(secret)

    hide(password)
    headers: dict[str, str | TokenGetter] = {}
    for name, value in _object(extra, "headers", conn_id).items():
        headers[name] = _value(value, password, f"header {name!r}", conn_id, prefix="Bearer ", hide=hide)
    getters: dict[str, TokenGetter] = {}
    for name, value in _object(extra, "auth_services", conn_id).items():
        found = _value(value, password, f"auth service {name!r}", conn_id, hide=hide)
        getters[name] = _fixed(found) if isinstance(found, str) else found
    return ToolboxSettings(
        conn_id=conn_id,
        url=_url(connection),
        headers=headers,
        auth_token_getters=getters,
        bound_params=_object(extra, "bound_params", conn_id),
        secrets=secrets,
    )


def _url(connection: Connection) -> str:
    host = (connection.host or "").strip().rstrip("/")
    url = host if "://" in host else f"{connection.schema or 'https'}://{host}"
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ToolboxConfigError(
            f"connection {connection.conn_id!r}: its URL is {'empty' if not host else 'no URL'}."
            " It must be like 'https://toolbox.example.com' or 'http://127.0.0.1:5000'."
        )
    if parts.username or parts.password:
        raise ToolboxConfigError(f"connection {connection.conn_id!r}: its URL holds a credential; put it into a header.")
    if connection.port and ":" not in parts.netloc.rpartition("]")[2]:
        url = parts._replace(netloc=f"{parts.netloc}:{connection.port}").geturl()
    return url.removesuffix("/mcp")


def _extra(connection: Connection) -> Mapping[str, Any]:
    try:
        extra = json.loads(connection.extra or "{}")
    except json.JSONDecodeError:
        extra = None
    if not isinstance(extra, dict):
        raise ToolboxConfigError(f"connection {connection.conn_id!r}: its extra is no JSON object.")
    return extra


def _object(extra: Mapping[str, Any], name: str, conn_id: str) -> dict[str, Any]:
    """A field that holds a JSON object, as such or as its text."""
    value = extra.get(name)
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else {}
        except json.JSONDecodeError:
            value = ()
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ToolboxConfigError(f'connection {conn_id!r}: {name} must be a JSON object such as {{"name": "value"}}.')
    return value


def _value(
    value: Any, password: str, what: str, conn_id: str, *, hide: Callable[[str], None], prefix: str = ""
) -> str | TokenGetter:
    """A text, in which ``{password}`` stands for the connection's password, or what fetches one."""
    if isinstance(value, str):
        if _PASSWORD in value and not password:
            raise ToolboxConfigError(f"connection {conn_id!r}: {what} uses {_PASSWORD}, but the connection has no password.")
        text = value.replace(_PASSWORD, password)
        hide(text)
        hide(text.partition(" ")[2])  # of `Bearer abc`, the server may quote the part that is the secret
        return text
    if isinstance(value, dict) and len(value) == 1:
        ((kind, given),) = value.items()
        if kind == "token" and isinstance(given, str) and given:
            hide(given)
            return prefix + given
        if kind == "google_audience" and isinstance(given, str) and given:
            from adk_airflow_toolbox.google_tokens import id_token_getter

            return id_token_getter(given, conn_id=conn_id, prefix=prefix, hide=hide)
    raise ToolboxConfigError(
        f"connection {conn_id!r}: {what} must be a text (in which {_PASSWORD} stands for the password),"
        ' {"token": "..."}, or {"google_audience": "https://..."} for a Google ID token.'
    )


def _fixed(token: str) -> TokenGetter:
    async def get() -> str:
        return token

    return get
