"""Runs a tool as the one step of a workflow under ADK's Runner, and opens and closes the toolset that it comes from."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from google.adk.events.event import Event
from google.adk.tools.base_toolset import BaseToolset
from google.adk.workflow import START, BaseNode, Workflow

from adk_airflow.errors import ToolLoadError
from adk_airflow.runtime.adk import credentials
from adk_airflow.runtime.adk.engine import run_part
from adk_airflow.runtime.adk.runner import Run, RunResult
from adk_airflow.runtime.adk.tool_node import as_node
from adk_airflow.runtime.wire.triggers import Arrival, Trigger

if TYPE_CHECKING:
    from google.adk.agents.context import Context

CLOSE_SECONDS = 10.0
"""How long a toolset may take to close; then the task ends without it."""

_log = logging.getLogger(__name__)


class ToolsetStep(BaseNode):
    """Opens a toolset with the context of its run, and runs one of its tools."""

    rerun_on_resume: bool = True
    toolset: BaseToolset
    tool_name: str

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        credentials.hide(self.toolset)
        tools = {tool.name: tool for tool in await self.toolset.get_tools_with_prefix(ctx)}
        if self.tool_name not in tools:
            names = ", ".join(sorted(tools)) or "none"
            raise ToolLoadError(f"{type(self.toolset).__name__} has no tool {self.tool_name!r}. Its tools are: {names}.")
        output = await ctx.run_node(as_node(tools[self.tool_name], name=self.name), node_input=node_input)
        if output is not None:
            yield Event(output=output)


def tool_name(workflow: Workflow) -> str:
    """The name of the tool that the step runs."""
    step = _step_of(workflow)
    return step.tool_name if isinstance(step, ToolsetStep) else str(getattr(step, "tool").name)  # noqa: B009


async def run_step(run: Run, arguments: Any) -> RunResult:
    """Calls the tool once; the single firing of the result holds what it returned.

    Args:
        run: The Airflow run, with the workflow of the step.
        arguments: The tool's arguments, as ``as_node`` takes them.
    """
    step = _step_of(run.workflow)
    try:
        return await run_part(run, [step.name], [Arrival(step.name, Trigger(arguments))])
    finally:
        if isinstance(step, ToolsetStep):
            await _close(step.toolset)


async def _close(toolset: BaseToolset) -> None:
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await toolset.close()
    except Exception as error:  # what the tool did counts, not how its server was left
        _log.warning("%s did not close: %s: %s", type(toolset).__name__, type(error).__name__, error)


def _step_of(workflow: Workflow) -> Any:
    assert workflow.graph is not None
    return next(node for node in workflow.graph.nodes if node.name != START.name)
