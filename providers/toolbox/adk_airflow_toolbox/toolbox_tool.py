"""A tool of an MCP Toolbox server, with what a connection gives to all tools of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import ClientError
from toolbox_adk import ToolboxTool  # type: ignore[import-untyped]

from adk_airflow_toolbox.errors import ToolboxConfigError, ToolboxUnavailableError
from adk_airflow_toolbox.settings import ToolboxSettings

if TYPE_CHECKING:
    from google.adk.tools.tool_context import ToolContext


class ConnectionToolboxTool(ToolboxTool):  # type: ignore[misc]
    """What ADK's ``ToolboxToolset`` made, for a connection: its errors name it."""

    settings: ToolboxSettings

    @classmethod
    def of(cls, tool: Any, settings: ToolboxSettings) -> ConnectionToolboxTool:
        """Adds the connection's parameters and tokens where the tool takes them; ADK refuses what no tool takes."""
        parameters = tool._get_declaration().parameters
        declared = parameters.properties if parameters is not None else {}
        known = {name: value for name, value in settings.bound_params.items() if name in declared}
        bound = tool.bind_params(known) if known else tool
        made = cls(
            core_tool=bound._core_tool,
            auth_config=bound._auth_config,
            # When it is called, the tool takes of these the ones that it needs.
            adk_token_getters={**settings.auth_token_getters, **bound._adk_token_getters},
            telemetry_attributes=bound._telemetry_attributes,
        )
        made.settings = settings
        return made

    async def run_async(self, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Calls the tool.

        Raises:
            ToolboxConfigError: The tool asks for a token that neither the connection nor the toolset gives.
            ToolboxUnavailableError: The server cannot be reached any more, or refuses the call.
            Exception: The arguments do not fit the tool.
        """
        try:
            return await super().run_async(args=args, tool_context=tool_context)
        except PermissionError as error:
            raise ToolboxConfigError(f"{self._what}: {error}. Give its token in the connection's auth services.") from None
        except (ClientError, OSError, RuntimeError) as error:
            reason = self.settings.redact(str(error)) or type(error).__name__
            raise ToolboxUnavailableError(f"{self._what}: the call failed: {reason}") from None

    @property
    def _what(self) -> str:
        return f"{self.settings.where}, tool {self.name!r}"
