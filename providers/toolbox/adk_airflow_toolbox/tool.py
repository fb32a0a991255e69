"""One tool of any ADK toolset, as a tool by itself."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

from google.adk.tools.base_tool import BaseTool

from adk_airflow_toolbox.errors import ToolNotFoundError

if TYPE_CHECKING:
    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.base_toolset import BaseToolset
    from google.adk.tools.tool_context import ToolContext


class ToolsetTool(BaseTool):
    """A tool that exists only while its toolset is open, as a fixed step of a graph.

    ``node(ToolsetTool(lambda: McpToolset(...), "add"))``: each run makes a toolset, calls its tool ``tool_name`` and closes
    the toolset, also when the call fails or is cancelled. The constructor calls nothing.

    The node's input is a map of arguments, as a dict, or as JSON in a text; None is no arguments. A required parameter that
    it lacks is taken from the session state. The output is the tool's result, unchanged.

    Args:
        make_toolset: Makes the toolset; called in the task, once for each run.
        tool_name: The tool's name in the toolset.
        name: The name of this tool, and so of the node; ``tool_name`` if not given.
        description: For people; the tool's own is not known before it runs.
    """

    def __init__(
        self,
        make_toolset: Callable[[], BaseToolset],
        tool_name: str,
        *,
        name: str | None = None,
        description: str | None = None,
    ) -> None:
        super().__init__(name=name or tool_name, description=description or f"The tool {tool_name!r} of a toolset.")
        self.tool_name = tool_name
        self._make_toolset = make_toolset

    @contextlib.asynccontextmanager
    async def _opened(self) -> AsyncIterator[BaseTool]:
        toolset = self._make_toolset()
        try:
            tools = {tool.name: tool for tool in await toolset.get_tools_with_prefix()}
            if self.tool_name not in tools:
                raise ToolNotFoundError(
                    f"{type(toolset).__name__} has no tool {self.tool_name!r}. It has: {', '.join(sorted(tools)) or 'none'}."
                )
            yield tools[self.tool_name]
        finally:
            await toolset.close()

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Calls the tool.

        Raises:
            ToolNotFoundError: The toolset has no such tool.
            Exception: What opening the toolset, or the tool, raises.
        """
        async with self._opened() as tool:
            known = {name: tool_context.state[name] for name in _required(tool) if name in tool_context.state}
            return await tool.run_async(args={**known, **args}, tool_context=tool_context)

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        """Refuses to be an agent's tool: an agent opens its toolset once, not at every call.

        Raises:
            TypeError: Always.
        """
        raise TypeError(
            f"The tool {self.name!r} is a ToolsetTool, which is a step of a graph. Give an agent the toolset:"
            f" tools=[...], with tool_names or tool_filter [{self.tool_name!r}]."
        )


def _required(tool: BaseTool) -> list[str]:
    """The names of the parameters that a tool, as it declares itself to a model, cannot do without."""
    from google.adk.models.llm_request import LlmRequest

    request = LlmRequest()
    request.append_tools([tool])
    declared = [entry for tools in request.config.tools or () for entry in getattr(tools, "function_declarations", None) or ()]
    schema = declared and (declared[0].parameters_json_schema or declared[0].parameters)
    names = schema.get("required") if isinstance(schema, dict) else getattr(schema, "required", None)
    return list(names or ())
