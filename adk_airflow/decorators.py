"""``@task.adk_agent`` and ``@task.adk_tool``: a function says what an ADK agent or tool is asked, in an Airflow task.

::

    @task.adk_agent(agent="my_agents.writer:root_agent")
    def summary(rows: list[str]) -> str:
        return "Summarise:\\n" + "\\n".join(rows)


    @task.adk_tool(tool="my_agents.tools:send_mail")
    def send(text: str) -> dict[str, str]:
        return {"to": "team@example.com", "text": text}


    send(summary(extract()))
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

from airflow.sdk import Context
from airflow.sdk.bases.decorator import DecoratedOperator, TaskDecorator, task_decorator_factory
from airflow.sdk.definitions.context import context_merge

from adk_airflow.operators.agent import AdkAgentOperator
from adk_airflow.operators.object_arguments import KEPT_ARGUMENTS, hide
from adk_airflow.operators.tool import AdkToolOperator


def adk_agent(
    python_callable: Callable[..., Any] | None = None, *, agent: Any, multiple_outputs: bool = False, **kwargs: Any
) -> TaskDecorator:
    """``@task.adk_agent``: the function returns what the agent is asked; the task returns the agent's answer.

    Args:
        python_callable: The function. It returns a prompt (str), or a dict or pydantic model for an agent with an
            ``input_schema``. What it returns is used as it is, never rendered as a template.
        agent: As for ``AdkAgentOperator``.
        multiple_outputs: Also push each key of an answer that is a dict as an XCom of its own.
        **kwargs: Every other argument of ``AdkAgentOperator``.
    """
    _refuse("adk_agent", kwargs, "prompt", "input")
    return task_decorator_factory(
        python_callable=python_callable,
        multiple_outputs=multiple_outputs,
        decorated_operator_class=_AgentTask,
        agent=hide(agent),
        **kwargs,
    )


def adk_tool(
    python_callable: Callable[..., Any] | None = None,
    *,
    tool: Any = None,
    toolset: Any = None,
    tool_name: str | None = None,
    multiple_outputs: bool = False,
    **kwargs: Any,
) -> TaskDecorator:
    """``@task.adk_tool``: the function returns the tool's arguments; the task returns the tool's result.

    Args:
        python_callable: The function. It returns a dict, or None for no arguments; used as it is, never rendered as a template.
        tool: As for ``AdkToolOperator``.
        toolset: As for ``AdkToolOperator``.
        tool_name: As for ``AdkToolOperator``.
        multiple_outputs: Also push each key of a result that is a dict as an XCom of its own.
        **kwargs: Every other argument of ``AdkToolOperator``.
    """
    _refuse("adk_tool", kwargs, "arguments", "input")
    return task_decorator_factory(
        python_callable=python_callable,
        multiple_outputs=multiple_outputs,
        decorated_operator_class=_ToolTask,
        tool=hide(tool),
        toolset=hide(toolset),
        tool_name=tool_name,
        **kwargs,
    )


def _refuse(decorator: str, given: Mapping[str, Any], *names: str) -> None:
    """Refuses what the function returns anyway.

    Raises:
        TypeError: It was given.
    """
    for name in names:
        if name in given:
            raise TypeError(f"@task.{decorator} takes no {name}: what the function returns is used")


class _Decorated(DecoratedOperator):
    """What both have in common: the function is called in the task, with the task's context like any ``@task`` function."""

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        op_args: Collection[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(python_callable=python_callable, op_args=op_args, op_kwargs=op_kwargs, **kwargs)

    def call(self, context: Context) -> Any:
        """What the function returns."""
        context_merge(context, self.op_kwargs)
        return self.python_callable(*self.op_args, **self.determine_kwargs(context))


class _AgentTask(_Decorated, AdkAgentOperator):
    template_fields: Sequence[str] = (*DecoratedOperator.template_fields, *AdkAgentOperator.template_fields)
    template_fields_renderers: ClassVar[dict[str, str]] = {**DecoratedOperator.template_fields_renderers}
    shallow_copy_attrs: Sequence[str] = (*DecoratedOperator.shallow_copy_attrs, *KEPT_ARGUMENTS)
    custom_operator_name = "@task.adk_agent"

    def execute(self, context: Context) -> Any:
        """Returns the plain answer; XCom ``adk`` holds the envelope."""
        given = self.call(context)
        if given is None:
            raise TypeError(f"task {self.task_id!r}: its function returned None; an agent needs a prompt or an input")
        if isinstance(given, str):
            self.prompt, self._has_prompt = given, True
        else:
            self.input, self._input_of_params = (
                (given.model_dump(mode="json") if hasattr(given, "model_dump") else given),
                False,
            )
        return AdkAgentOperator.execute(self, context)


class _ToolTask(_Decorated, AdkToolOperator):
    template_fields: Sequence[str] = (*DecoratedOperator.template_fields, *AdkToolOperator.template_fields)
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **DecoratedOperator.template_fields_renderers,
        **AdkToolOperator.template_fields_renderers,
    }
    shallow_copy_attrs: Sequence[str] = (*DecoratedOperator.shallow_copy_attrs, *KEPT_ARGUMENTS)
    custom_operator_name = "@task.adk_tool"

    def execute(self, context: Context) -> Any:
        """Returns the plain result; XCom ``adk`` holds the envelope."""
        self.arguments = self.call(context)
        return AdkToolOperator.execute(self, context)
