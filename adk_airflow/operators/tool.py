"""An ADK tool as one Airflow task, without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from adk_airflow.operators.base import AdkStartOperator
from adk_airflow.operators.object_arguments import KEPT_ARGUMENTS, HidingPartial, hide, shown
from adk_airflow.runtime.task import Task, materialized

if TYPE_CHECKING:
    from adk_airflow.runtime.adk.runner import RunResult
    from adk_airflow.runtime.inbox import Inbox
    from adk_airflow.runtime.source import Source


class AdkToolOperator(AdkStartOperator):
    """Calls an ADK tool once, as ``as_node`` does in a graph, and returns what the tool returns.

    Args:
        tool: ``"package.module:attribute"`` of a tool or a function, imported in the task only; or such an object.
        toolset: Instead of a tool: a toolset, given in the same ways, or a function that makes it. It is opened in the task and
            closed when the task ends, however it ends.
        tool_name: Which of the toolset's tools; with the toolset's prefix if it has one.
        arguments: The tool's arguments: a dict, or text that is a JSON object. Templated. A required parameter that is
            missing is read from the session state.
        state: The initial session state. None: the run's params. Templated.

    Raises:
        ToolLoadError: In the task: there is no such tool.
        UnsupportedToolError: In the task: the tool works only inside a model call.
        ToolInputError: In the task: the arguments are no map.
    """

    template_fields: Sequence[str] = ("arguments", *AdkStartOperator.template_fields)
    template_fields_renderers = {"arguments": "json"}
    custom_operator_name = "ADK tool"
    adk_objects = ("tool", "toolset")
    partial = HidingPartial()
    shallow_copy_attrs: Sequence[str] = KEPT_ARGUMENTS

    def __init__(
        self,
        *,
        tool: Any = None,
        toolset: Any = None,
        tool_name: str | None = None,
        arguments: Any = None,
        **kwargs: Any,
    ) -> None:
        task_id = kwargs["task_id"]
        if (tool is None) == (toolset is None):
            raise TypeError(
                f"AdkToolOperator {task_id!r} takes either a tool, or a toolset and the tool_name of one of its tools"
            )
        if (toolset is None) != (tool_name is None):
            raise TypeError(f"AdkToolOperator {task_id!r}: toolset and tool_name belong together")
        super().__init__(**kwargs)
        self.tool = hide(tool)
        self.toolset = hide(toolset)
        self.tool_name = tool_name
        self.arguments = arguments

    def load(self) -> Source:
        """Imports the tool or toolset, and google-adk with it; gives the workflow of the one step that runs it."""
        from adk_airflow.runtime import tool_source

        if self.toolset is not None:
            step = tool_source.toolset_step(shown(self.toolset), str(self.tool_name))
        else:
            step = tool_source.tool_step(shown(self.tool))
        return tool_source.source_of(step, app_name=self.dag_id)

    def name_of(self, source: Source) -> str:
        """The tool's name."""
        from adk_airflow.runtime.adk import tool_run

        return tool_run.tool_name(source.workflow)

    def where(self, source: Source) -> str:
        """The tool."""
        return f"tool {self.name_of(source)!r}"

    def given_input(self, context: Mapping[str, Any]) -> Any:
        """The arguments."""
        return materialized(self.arguments)

    def receive(self, task: Task) -> Inbox:
        """The arguments and the state."""
        from adk_airflow.runtime.inbox import merge

        start = self.start(task)
        task.received = start.input
        return merge([], start)

    def run(self, task: Task) -> RunResult:
        """Calls the tool."""
        from adk_airflow.runtime.adk import tool_run

        return task.wait_for(tool_run.run_step(task.adk_run(), task.received))
