"""Makes the workflow of one step that runs a tool, from what a user gave: the tool, or its toolset."""

from __future__ import annotations

from typing import Any

from google.adk.apps.app import App
from google.adk.tools.base_toolset import BaseToolset
from google.adk.workflow import START, BaseNode, Workflow

from adk_airflow.errors import ToolLoadError
from adk_airflow.runtime.adk.tool_node import as_node, to_tool
from adk_airflow.runtime.adk.tool_run import ToolsetStep
from adk_airflow.runtime.source import Source, import_object


def tool_step(tool: Any) -> BaseNode:
    """The node of a tool.

    Args:
        tool: The tool, a function, or the reference of either.

    Raises:
        ToolLoadError: It is something else.
        UnsupportedToolError: It works only inside a model call.
    """
    if isinstance(tool, str):
        reference, tool = tool, import_object(tool, what="tool", raises=ToolLoadError)
        if isinstance(tool, BaseToolset):
            raise ToolLoadError(
                f"tool {reference!r} is a toolset: give toolset={reference!r} and the tool_name of one of its tools"
            )
    elif isinstance(tool, BaseToolset):
        raise ToolLoadError(f"a {type(tool).__name__} is a toolset: give it as toolset=, and the tool_name of one of its tools")
    tool = to_tool(tool)
    return as_node(tool, name=_node_name(tool.name))


def toolset_step(toolset: Any, tool_name: str) -> BaseNode:
    """The node of a toolset's tool.

    Args:
        toolset: The toolset, a function that makes it, or the reference of either.
        tool_name: The tool's name.

    Raises:
        ToolLoadError: It is something else.
    """
    described_as = toolset if isinstance(toolset, str) else type(toolset).__name__
    if isinstance(toolset, str):
        toolset = import_object(toolset, what="toolset", raises=ToolLoadError)
    if callable(toolset) and not isinstance(toolset, BaseToolset):
        toolset = toolset()
    if not isinstance(toolset, BaseToolset):
        raise ToolLoadError(f"toolset {described_as!r} is no toolset but a {type(toolset).__name__}")
    return ToolsetStep(name=_node_name(tool_name), toolset=toolset, tool_name=tool_name)


def source_of(step: BaseNode, *, app_name: str) -> Source:
    """The workflow of the one step."""
    workflow = Workflow(name="adk_tool", edges=[(START, step)])
    return Source(workflow, App.model_construct(name=app_name, root_agent=workflow, plugins=[]))


def _node_name(tool: str) -> str:
    return tool if tool.isidentifier() else "tool"
