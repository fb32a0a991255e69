"""A tool as a fixed step of a graph: the predecessor's output becomes its arguments, its result the node's output.

ADK's own ``node(tool)`` runs the tool; what this adds is in ``as_node``. It touches ADK's private ``_ToolNode``.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.workflow._tool_node import _ToolNode
from google.genai import types

from adk_airflow.errors import ToolInputError, ToolLoadError, UnsupportedToolError

if TYPE_CHECKING:
    from google.adk.agents.context import Context
    from google.adk.workflow import BaseNode, RetryConfig


def as_node(
    tool: BaseTool | Callable[..., Any],
    name: str | None = None,
    retry_config: RetryConfig | None = None,
    timeout: float | None = None,
) -> BaseNode:
    """A workflow node that runs the tool as a fixed step. Each call makes a new node.

    Input: a map of arguments; a string or ``Content`` whose text is a JSON object; None, or a string or ``Content`` whose text
    is blank or ``null``, for no arguments. A required parameter that is not in it is read from session state. Output: what
    the tool returns, unchanged; None is no output. State and artifacts that the tool writes travel with it; a confirmation
    that it asks for, a transfer and ``skip_summarization`` are dropped, since only a model call can honor them.

    ADK's own ``node(tool)`` differs: it takes any text or value as the argument of a tool with one parameter, and a tool that
    requires confirmation asks a person.

    Args:
        tool: The tool, or a function, which becomes a ``FunctionTool``.
        name: The node's name; the tool's if not given.
        retry_config: When and how often a failed call is repeated.
        timeout: How long a call may take, in seconds.

    Raises:
        UnsupportedToolError: The tool works only inside a model call.
        ToolLoadError: It is no tool, or its name is no node's name.
        ToolInputError: When the node runs: its input is none of these.
    """
    tool = to_tool(tool)
    refuse_model_side(tool, f"tool {tool.name!r}")
    name = name or tool.name
    if not name.isidentifier():
        raise ToolLoadError(
            f"tool {tool.name!r}: {name!r} cannot name a node. Use as_node(tool, name='...'), a Python identifier."
        )
    return _ToolStep(tool=tool, name=name, retry_config=retry_config, timeout=timeout)


def to_tool(given: Any) -> BaseTool:
    """The tool itself, or a function as a ``FunctionTool``.

    Raises:
        ToolLoadError: It is neither.
    """
    if isinstance(given, BaseTool):
        return given
    if callable(given) and not isinstance(given, type):
        return FunctionTool(given)
    raise ToolLoadError(f"a {type(given).__name__} is no tool: give a google.adk tool or a function")


def refuse_model_side(tool: Any, where: str) -> None:
    """Refuses a tool that has no implementation of its own: it only adds something to a model's request.

    Raises:
        UnsupportedToolError: It is one; ``where`` names it.
    """
    if isinstance(tool, BaseTool) and type(tool).run_async is BaseTool.run_async:
        raise UnsupportedToolError(
            f"{where}: {type(tool).__name__} works only inside a model call, so it cannot be a node."
            " Give it to an LlmAgent (tools=[...]) and use that agent as the node."
        )


class _ToolStep(_ToolNode):
    async def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        async with aclosing(super()._run_impl(ctx=ctx, node_input=self._arguments(node_input))) as items:
            async for item in items:
                ctx.actions.transfer_to_agent = None
                ctx.actions.skip_summarization = None
                yield item

    def _take_requested_confirmation(self, *, ctx: Context, args: dict[str, Any]) -> None:
        """Drops it: the error that the gate answered with in the tool's place stays as the output."""
        ctx.actions.requested_tool_confirmations.clear()

    def _arguments(self, given: Any) -> dict[str, Any] | None:
        if isinstance(given, types.Content):
            given = "".join(part.text for part in given.parts or [] if part.text and not part.thought)
        what = f"a {type(given).__name__}"
        if isinstance(given, str):
            text, what = given.strip(), "text that is no JSON"
            if not text:
                return None
            try:
                given = json.loads(text)
                what = f"JSON text of a {type(given).__name__}"
            except ValueError:
                pass
        if given is None:
            return None
        if isinstance(given, Mapping):
            return dict(given)
        raise ToolInputError(
            f"node {self.name!r}: its input is {what}, which cannot become arguments of tool {self.tool.name!r}."
            " Give it a dict, or text that is a JSON object; nothing, blank text or null calls the tool without arguments."
        )
