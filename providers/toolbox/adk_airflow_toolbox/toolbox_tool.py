"""A tool of an MCP Toolbox server, with what a connection gives to all tools of it."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

from aiohttp import ClientError
from toolbox_adk import ToolboxTool  # type: ignore[import-untyped]

from adk_airflow_toolbox.errors import ToolboxConfigError, ToolboxUnavailableError
from adk_airflow_toolbox.settings import ToolboxSettings

if TYPE_CHECKING:
    from google.adk.tools.tool_context import ToolContext


class ConnectionToolboxTool(ToolboxTool):  # type: ignore[misc]
    """ADK's ``ToolboxTool`` for a connection: bound to its parameters, and its errors name it.

    Args:
        core_tool: The tool of toolbox-core, as the client loaded it.
        settings: What the connection says. Of its parameters those are bound that the tool has.
        **options: As in ``ToolboxTool``.
    """

    def __init__(self, core_tool: Any, settings: ToolboxSettings, **options: Any) -> None:
        known = signature(core_tool).parameters
        bound = {name: value for name, value in settings.bound_params.items() if name in known}
        super().__init__(core_tool.bind_params(bound) if bound else core_tool, **options)
        self.settings = settings

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
        except TimeoutError:
            raise ToolboxUnavailableError(f"{self._what}: the server did not answer the call in time. Is it well?") from None
        except (ClientError, OSError, RuntimeError) as error:
            reason = self.settings.redact(str(error)) or type(error).__name__
            raise ToolboxUnavailableError(f"{self._what}: the call failed: {reason}") from None

    @property
    def _what(self) -> str:
        return f"{self.settings.where}, tool {self.name!r}"
