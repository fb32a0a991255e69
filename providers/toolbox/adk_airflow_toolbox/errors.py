"""The errors a user of a Toolbox connection can cause; each message names the connection and says what to do.

None of them carries another exception along: what a client library writes into its errors may hold a credential. Where
``permanent`` is true, another try would fail in the same way; a task of adk-airflow makes none.
"""

from __future__ import annotations


class ToolboxConfigError(ValueError):
    """The Airflow connection is missing or cannot be used, or what it or the toolset gives fits no tool of the server."""

    permanent = True


class ToolboxUnavailableError(ConnectionError):
    """The server cannot be reached, refuses the credentials, or does not answer as an MCP Toolbox server.

    Args:
        message: Which server, why, and what to do.
        permanent: The server, or Google, refuses the credentials.
    """

    def __init__(self, message: str, *, permanent: bool = False) -> None:
        super().__init__(message)
        self.permanent = permanent


class ToolNotFoundError(LookupError):
    """The server has no toolset, or no tool, of that name."""

    permanent = True
