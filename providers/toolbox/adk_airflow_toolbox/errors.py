"""The errors a user of a Toolbox connection can cause; each message names the connection and says what to do.

None of them carries another exception along: what a client library writes into its errors may hold a credential.
"""

from __future__ import annotations


class ToolboxConfigError(ValueError):
    """The Airflow connection is missing or cannot be used, or what it or the toolset gives fits no tool of the server."""


class ToolboxUnavailableError(ConnectionError):
    """The server cannot be reached, refuses the credentials, or does not answer as an MCP Toolbox server."""


class ToolNotFoundError(LookupError):
    """The server has no toolset, or no tool, of that name."""
