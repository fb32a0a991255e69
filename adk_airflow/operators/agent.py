"""An ADK agent as one Airflow task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from adk_airflow.operators.base import AdkInputOperator
from adk_airflow.operators.object_arguments import KEPT_ARGUMENTS, HidingPartial, hide, shown
from adk_airflow.runtime.source import Source, load_agent
from adk_airflow.runtime.task import Task, materialized

if TYPE_CHECKING:
    from adk_airflow.runtime.adk.runner import RunResult
    from adk_airflow.runtime.start import Start


class AdkAgentOperator(AdkInputOperator):
    """Asks an ADK agent once: ADK's own Runner runs it as the root agent, with all that its App gives it.

    The task returns the agent's answer: the text of the last final response of whichever agent gave it, or with that agent's
    ``output_schema`` the data in it; of a task-mode agent the result of its task; for a ``ParallelAgent`` a dict of its
    sub-agents' last answers. XCom ``adk`` holds the session state as well.

    Args:
        agent: ``"package.module:attribute"`` of an agent or App, imported in the task only; or such an object.
        prompt: The user message. Templated; may be the output of an upstream task.
        input: Instead of a prompt: data, or a pydantic model. It reaches the agent as JSON text, validated by its
            ``input_schema`` if it has one. Templated. Without either: the run's ``params["input"]``.
        state: The initial session state. None: the run's other params. Templated.
        session_id: An ADK session kept by ``[adk_airflow] session_service_uri``: a later run that gives the same id goes
            on in it. Templated. Empty: a session of the run's own.

    Raises:
        AgentLoadError: In the task: there is no such agent.
        AgentAnswerError: In the task: the last model call failed, so there is no answer.
        HumanInputNotSupportedError: In the task: the agent asks a person.
    """

    template_fields: Sequence[str] = ("prompt", *AdkInputOperator.template_fields, "session_id")
    custom_operator_name = "ADK agent"
    adk_objects = ("agent",)
    partial = HidingPartial()
    shallow_copy_attrs: Sequence[str] = KEPT_ARGUMENTS

    def __init__(
        self, *, agent: Any, prompt: Any = None, input: Any = None, session_id: str | None = None, **kwargs: Any
    ) -> None:
        if prompt is not None and input is not None:
            raise TypeError(f"AdkAgentOperator {kwargs.get('task_id')!r} takes a prompt or an input, not both")
        if hasattr(input, "model_dump"):
            input = input.model_dump(mode="json")
        super().__init__(input=input, **kwargs)
        self.agent = hide(agent)
        self._has_prompt = prompt is not None
        self.prompt = prompt
        self.session_id = session_id

    def load(self) -> Source:
        """Imports the agent, and google-adk with it."""
        return load_agent(shown(self.agent), app_name=self.dag_id)

    def name_of(self, source: Source) -> str:
        """The agent's name."""
        return source.workflow.name

    def where(self, source: Source) -> str:
        """The agent."""
        return f"agent {source.workflow.name!r}"

    def given_input(self, context: Mapping[str, Any]) -> Any:
        """The prompt if there is one, else the input."""
        return materialized(self.prompt) if self._has_prompt else super().given_input(context)

    def start(self, task: Task) -> Start:
        """What the run gives, its input checked by the agent's ``input_schema``."""
        start = super().start(task)
        if self._has_prompt:
            return start
        from adk_airflow.runtime.adk import agent_run

        agent: Any = task.source.workflow
        return agent_run.validated(agent, start)

    def run(self, task: Task) -> RunResult:
        """Asks the agent."""
        from adk_airflow.runtime.adk import agent_run

        agent: Any = task.source.workflow
        task.session_id = self.session_id or ""
        return task.wait_for(agent_run.run_agent(task.adk_run(), agent))
