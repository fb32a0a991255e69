"""The hook behind the connection type: what the button "Test connection" asks."""

from __future__ import annotations

import asyncio
from typing import Any

from airflow.sdk import BaseHook

from adk_airflow_toolbox.settings import CONN_TYPE, DEFAULT_CONN_ID, ToolboxSettings, settings_of


class ToolboxHook(BaseHook):
    """An MCP Toolbox server.

    Args:
        toolbox_conn_id: Airflow connection of the type ``mcp_toolbox``.
    """

    conn_name_attr = "toolbox_conn_id"
    default_conn_name = DEFAULT_CONN_ID
    conn_type = CONN_TYPE
    hook_name = "MCP Toolbox"

    def __init__(self, toolbox_conn_id: str = DEFAULT_CONN_ID, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.toolbox_conn_id = toolbox_conn_id

    def get_conn(self) -> ToolboxSettings:
        """What the connection says.

        Raises:
            ToolboxConfigError: It cannot be used.
        """
        return settings_of(self.get_connection(self.toolbox_conn_id))

    def list_tools(self, toolset_name: str | None = None) -> list[str]:
        """The names of the server's tools, in its order.

        Raises:
            ToolboxConfigError: The connection cannot be used.
            ToolboxUnavailableError: The server cannot be reached, or refuses.
            ToolNotFoundError: It has no such toolset.
        """
        from adk_airflow_toolbox.client import open_toolbox

        settings = self.get_conn()

        async def names() -> list[str]:
            toolbox = await open_toolbox(settings, toolset_name=toolset_name, timeout=10)
            await toolbox.close()
            return [tool.name for tool in toolbox.tools]

        return asyncio.run(names())

    def test_connection(self) -> tuple[bool, str]:
        """Whether the server answers, and which tools it has, or why not; never a credential."""
        try:
            tools = self.list_tools()
        except Exception as error:
            return False, str(error)
        return (
            True,
            f"The server answers. It has {len(tools)} tools: {', '.join(tools)}." if tools else "The server has no tools.",
        )
