"""Opens a session with a Toolbox server as a connection says, loads its tools, and explains why that failed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adk_airflow_toolbox.errors import ToolboxConfigError, ToolboxUnavailableError, ToolNotFoundError
from adk_airflow_toolbox.settings import ToolboxSettings

if TYPE_CHECKING:
    from google.adk.tools.base_tool import BaseTool


@dataclass(frozen=True)
class OpenToolbox:
    """A session with a server: its tools, and toolbox-adk's client that ends it."""

    client: Any
    tools: list[BaseTool]

    async def close(self) -> None:
        """Ends the session."""
        await self.client.close()


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
    from toolbox_adk import ToolboxClient  # type: ignore[import-untyped]

    from adk_airflow_toolbox.toolbox_tool import ConnectionToolboxTool

    given = dict(options or {})
    headers = {**settings.headers, **given.pop("additional_headers", {})}
    bound = {"bound_params": dict(bound_params or {})}
    if secure := given.pop("secure_params", None):
        bound["secure_params"] = secure
    telemetry = given.pop("telemetry_attributes", None)
    own_getters = dict(auth_token_getters or {})
    try:
        client = ToolboxClient(settings.url, additional_headers=headers, **given)
    except Exception as error:
        raise ToolboxConfigError(f"{settings.where}: {settings.redact(str(error))}") from None
    try:
        try:
            async with asyncio.timeout(timeout):
                loaded = await _load(client, toolset_name, tool_names or (), bound)
            _check_used(own_getters, loaded)
        except Exception as error:
            raise await _explain(error, settings, headers, toolset_name, tool_names, timeout) from None
        tools: list[BaseTool] = [
            ConnectionToolboxTool(
                tool,
                settings,
                auth_config=client.credential_config,
                # When it is called, the tool takes of these the ones that it needs.
                adk_token_getters={**settings.auth_token_getters, **own_getters},
                telemetry_attributes=telemetry,
            )
            for tool in loaded
        ]
        return OpenToolbox(client, tools)
    except BaseException:
        await client.close()
        raise


async def _load(client: Any, toolset_name: str | None, tool_names: Sequence[str], bound: Mapping[str, Any]) -> list[Any]:
    """The tools of toolbox-core, as ADK's ``ToolboxToolset`` loads them: a toolset, then single tools; neither is all."""
    tools = list(await client.load_toolset(toolset_name, **bound)) if toolset_name or not tool_names else []
    return tools + [await client.load_tool(name, **bound) for name in tool_names]


def _check_used(getters: Mapping[str, Callable[..., Any]], tools: Sequence[Any]) -> None:
    """Raises the ``ValueError`` of toolbox-core where none of the tools takes the token of a getter."""
    for service, getter in getters.items():
        refusal: ValueError | None = None
        for tool in tools:
            try:
                tool.add_auth_token_getter(service, getter)  # makes a copy
            except ValueError as error:
                refusal = error
            else:
                break
        else:
            raise refusal or ValueError(f"There is no tool that could take the token of {service!r}.")


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
    from toolbox_adk import ToolboxClient

    client = ToolboxClient(settings.url, additional_headers=dict(headers))
    try:
        return {tool.__name__ for tool in await client.load_toolset(toolset_name)}
    finally:
        await client.close()


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
            f"{where} refuses the connection's credentials: {text}. Look at its headers and password.", permanent=True
        )
    return ToolboxUnavailableError(f"{where} does not answer as one: {text}")
