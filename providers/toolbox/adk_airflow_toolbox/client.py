"""Opens ADK's own ``ToolboxToolset`` with what a connection says, and explains why that failed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adk_airflow_toolbox.errors import ToolboxConfigError, ToolboxUnavailableError, ToolNotFoundError
from adk_airflow_toolbox.settings import ToolboxSettings

if TYPE_CHECKING:
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.toolbox_toolset import ToolboxToolset


@dataclass(frozen=True)
class OpenToolbox:
    """A session with a server: its tools, and the toolset that ends it."""

    toolset: ToolboxToolset
    tools: list[BaseTool]

    async def close(self) -> None:
        """Ends the session."""
        await self.toolset.close()


async def open_toolbox(
    settings: ToolboxSettings,
    *,
    toolset_name: str | None = None,
    tool_names: Sequence[str] | None = None,
    bound_params: Mapping[str, Any] | None = None,
    auth_token_getters: Mapping[str, Callable[..., Any]] | None = None,
    timeout: float = 30.0,
    options: Mapping[str, Any] | None = None,
) -> OpenToolbox:
    """Asks the server for tools; the session stays open for calling them.

    Raises:
        ToolboxConfigError: A parameter or token was given that none of the tools takes.
        ToolboxUnavailableError: The server cannot be reached, refuses, or is none.
        ToolNotFoundError: It has no such toolset or tool.
    """
    from google.adk.tools.toolbox_toolset import ToolboxToolset

    from adk_airflow_toolbox.toolbox_tool import ConnectionToolboxTool

    given = dict(options or {})
    headers = {**settings.headers, **given.pop("additional_headers", {})}
    toolset = ToolboxToolset(
        settings.url,
        toolset_name=toolset_name,
        tool_names=list(tool_names) if tool_names else None,
        bound_params=bound_params or None,
        auth_token_getters=auth_token_getters or None,
        additional_headers=headers,
        **given,
    )
    try:
        try:
            async with asyncio.timeout(timeout):
                tools = await toolset.get_tools()
        except Exception as error:
            raise await _explain(error, settings, headers, toolset_name, tool_names, timeout) from None
        return OpenToolbox(toolset, [ConnectionToolboxTool.of(tool, settings) for tool in tools])
    except BaseException:
        await toolset.close()
        raise


async def _explain(
    error: Exception,
    settings: ToolboxSettings,
    headers: Mapping[str, Any],
    toolset_name: str | None,
    tool_names: Sequence[str] | None,
    timeout: float,
) -> Exception:
    """The error that names the connection, the URL and what there is."""
    where = settings.where
    if isinstance(error, (ToolboxConfigError, ToolboxUnavailableError)):
        return error
    if unreachable := _unreachable(error, settings, where, timeout):
        return unreachable
    try:
        async with asyncio.timeout(timeout):
            offered = await _names(settings, headers)
    except Exception as second:
        return _unreachable(second, settings, where, timeout) or _no_answer(second, settings, where)
    has = f"It has the tools {', '.join(sorted(offered))}." if offered else "It has no tools."
    missing = [name for name in tool_names or () if name not in offered]
    if missing:
        return ToolNotFoundError(f"{where}: there is no tool {', '.join(map(repr, missing))}. {has}")
    if toolset_name:
        try:
            async with asyncio.timeout(timeout):
                await _names(settings, headers, toolset_name)
        except Exception:
            return ToolNotFoundError(f"{where}: there is no toolset {toolset_name!r}. {has}")
    return ToolboxConfigError(f"{where}: {settings.redact(str(error))}")


async def _names(settings: ToolboxSettings, headers: Mapping[str, Any], toolset_name: str | None = None) -> set[str]:
    from google.adk.tools.toolbox_toolset import ToolboxToolset

    toolset = ToolboxToolset(settings.url, toolset_name=toolset_name, additional_headers=headers)
    try:
        return {tool.name for tool in await toolset.get_tools()}
    finally:
        await toolset.close()


def _unreachable(error: Exception, settings: ToolboxSettings, where: str, timeout: float) -> ToolboxUnavailableError | None:
    from aiohttp import ClientError

    if isinstance(error, TimeoutError):
        return ToolboxUnavailableError(f"{where}: no answer within {timeout:g} s. Is the server well, and its URL right?")
    if isinstance(error, (ClientError, OSError)):
        reason = settings.redact(str(error)) or type(error).__name__
        return ToolboxUnavailableError(f"{where} cannot be reached: {reason}. Does it run, and is the connection's URL right?")
    return None


def _no_answer(error: Exception, settings: ToolboxSettings, where: str) -> ToolboxUnavailableError:
    text = settings.redact(str(error))
    if "status 401" in text or "status 403" in text:
        return ToolboxUnavailableError(
            f"{where} refuses the connection's credentials: {text}. Look at its headers and password."
        )
    return ToolboxUnavailableError(f"{where} does not answer as one: {text}")
