"""The tools of an MCP Toolbox server that an Airflow connection names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from google.adk.tools.base_toolset import BaseToolset, ToolPredicate

from adk_airflow_toolbox.adk_private import keep_no_tools, passes_filter
from adk_airflow_toolbox.client import OpenToolbox, open_toolbox
from adk_airflow_toolbox.settings import DEFAULT_CONN_ID, read_settings
from adk_airflow_toolbox.tool import ToolsetTool

if TYPE_CHECKING:
    from google.adk.agents.readonly_context import ReadonlyContext
    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_configs import ToolArgsConfig
    from google.adk.tools.tool_context import ToolContext


class ConnectionToolboxToolset(BaseToolset):
    """ADK's ``ToolboxToolset`` for the server, headers and tokens of an Airflow connection.

    The constructor does nothing, so the toolset may stand at the top of a workflow module. The connection is read, and the
    server asked for its tools, when an agent needs them first; ADK's Runner closes the toolset after the task, also when it
    fails or is cancelled. It may be opened again then.

    A server that cannot be reached, and a toolset or tool that it does not have, fail the agent with one of
    ``adk_airflow_toolbox.errors``; ADK alone would log it and let the model answer without its tools.

    Args:
        conn_id: Airflow connection of the type ``mcp_toolbox``.
        toolset_name: A toolset of the server; with ``tool_names``, in addition to them. Neither: all tools.
        tool_names: Tools of the server.
        bound_params: Values, or callables that make them, that the model does not choose. Unlike those of the connection,
            each must be a parameter of one of the tools.
        auth_token_getters: By the name of an auth service: what gives its token. Unlike those of the connection, each must
            be needed by one of the tools.
        open_timeout: How many seconds the server may take to list its tools.
        tool_filter: As in ``BaseToolset``.
        tool_name_prefix: As in ``BaseToolset``.
        **options: As in ADK's ``ToolboxToolset``, such as ``credentials`` or ``telemetry_attributes``.
    """

    def __init__(
        self,
        conn_id: str = DEFAULT_CONN_ID,
        *,
        toolset_name: str | None = None,
        tool_names: Sequence[str] | None = None,
        bound_params: Mapping[str, Any] | None = None,
        auth_token_getters: Mapping[str, Callable[..., Any]] | None = None,
        open_timeout: float = 30.0,
        tool_filter: ToolPredicate | list[str] | None = None,
        tool_name_prefix: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(tool_filter=tool_filter, tool_name_prefix=tool_name_prefix)
        keep_no_tools(self)
        self.conn_id = conn_id
        self.toolset_name = toolset_name
        self.tool_names = list(tool_names) if tool_names is not None else None
        self.bound_params = dict(bound_params or {})
        self.auth_token_getters = dict(auth_token_getters or {})
        self.open_timeout = open_timeout
        self.options = options
        self._forget()

    @classmethod
    def from_config(cls, config: ToolArgsConfig, config_abs_path: str) -> ConnectionToolboxToolset:
        """Makes it for an agent that is written in YAML, whose ``args`` are those above."""
        return cls(**config.model_dump())

    def _forget(self) -> None:
        # A lock of its own for each opening: a lock belongs to the event loop on which it was first waited for.
        self._lock = asyncio.Lock()
        self._open: OpenToolbox | None = None
        self._failure: Exception | None = None

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """The tools, in the server's order; asks the server once until it is closed.

        Raises:
            ToolboxConfigError: The connection is missing or wrong.
            ToolboxUnavailableError: The server cannot be reached, or refuses.
            ToolNotFoundError: The server has no such toolset or tool; the message lists what it has.
        """
        async with self._lock:
            if self._open is None:
                try:
                    self._open = await self._make()
                except Exception as error:
                    self._failure = error
                    raise
                self._failure = None
        return [tool for tool in self._open.tools if passes_filter(self, tool, readonly_context)]

    async def _make(self) -> OpenToolbox:
        # In a thread: reading a connection on the event loop's own can hang while another request is in flight.
        settings = await asyncio.to_thread(read_settings, self.conn_id)
        return await open_toolbox(
            settings,
            toolset_name=self.toolset_name,
            tool_names=self.tool_names,
            bound_params=self.bound_params,
            auth_token_getters=self.auth_token_getters,
            timeout=self.open_timeout,
            options=self.options,
        )

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        """Fails the agent when its tools could not be had: ADK only logs what ``get_tools`` raises.

        Raises:
            Exception: What ``get_tools`` raised.
        """
        failure, self._failure = self._failure, None  # so that a retry of the node tries again
        if failure is not None:
            raise failure

    async def close(self) -> None:
        """Ends the session with the server; nothing happens when there is none."""
        opened = self._open
        self._forget()
        if opened is not None:
            await opened.close()

    def tool(self, tool_name: str, *, name: str | None = None) -> ToolsetTool:
        """One tool of the server as a fixed step of a graph: ``node(toolset.tool("search_orders"))``.

        Each run of it opens a session of its own and closes it. Only this tool is asked for, whatever ``toolset_name``,
        ``tool_names`` and ``tool_filter`` of this toolset say.

        Args:
            tool_name: The tool's name on the server.
            name: The name of the tool, and so of the node; the same if not given.
        """

        def make() -> ConnectionToolboxToolset:
            return ConnectionToolboxToolset(
                self.conn_id,
                tool_names=[tool_name],
                bound_params=self.bound_params,
                auth_token_getters=self.auth_token_getters,
                open_timeout=self.open_timeout,
                **self.options,
            )

        return ToolsetTool(make, tool_name, name=name)
