"""Runs an agent as the root of ADK's own Runner, and finds its answer among the events.

ADK has no notion of a root agent's output: a caller reads the events. The rules for what an Airflow task returns are here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.parallel_agent import ParallelAgent
from google.adk.agents.sequential_agent import SequentialAgent
from pydantic import ValidationError

from adk_airflow.errors import AgentAnswerError
from adk_airflow.runtime.adk import graph
from adk_airflow.runtime.adk.runner import RunResult, drive
from adk_airflow.runtime.wire.envelope import Firing

if TYPE_CHECKING:
    from google.adk.agents.base_agent import BaseAgent
    from google.adk.events.event import Event
    from google.adk.workflow import Workflow

    from adk_airflow.runtime.adk.runner import Run
    from adk_airflow.runtime.start import Start


def validated(agent: BaseAgent, start: Start) -> Start:
    """What the run gives, its input checked by the agent's ``input_schema`` as ADK checks a node's.

    Raises:
        ValidationError: It does not fit.
    """
    return replace(start, input=graph.start_input(cast("Workflow", agent), start.input))


async def run_agent(run: Run, agent: BaseAgent) -> RunResult:
    """Runs the agent once; the single firing of the result holds its answer.

    The answer is the text of the last final response, of whichever agent of the tree gave it; with that agent's
    ``output_schema`` the data that the text holds; of a tool that skips its summary what the tool returned. Of a task-mode
    agent it is the result of its task. Where the run ends in a ``ParallelAgent`` it is a dict: the last answer of each of its
    sub-agents, by name. None: nothing was answered.

    Args:
        run: The Airflow run.
        agent: The root agent of its App.
    """
    result = RunResult(state=run.state)
    events: list[Event] = []

    def on_event(event: Event) -> None:
        if not event.partial:
            events.append(event)
        if run.on_event is not None:
            run.on_event(event)

    questions = await drive(replace(run, on_event=on_event), agent, result)
    if result.error is None:
        result.questions = questions.without_response()
    if result.error is None and not result.questions:
        try:
            result.firings = [Firing(agent.name, _answer(agent, events))]
        except (AgentAnswerError, ValidationError) as error:
            result.error = error
    return result


def _answer(agent: BaseAgent, events: Sequence[Event]) -> Any:
    last = agent
    while isinstance(last, SequentialAgent) and last.sub_agents:
        last = last.sub_agents[-1]
    if not isinstance(last, ParallelAgent):
        return _last_answer(agent, events)
    found = {}
    for branch in last.sub_agents:
        own = [event for event in events if f"{last.name}.{branch.name}" in _branch(event)]
        found[branch.name] = _last_answer(agent, own)
    return found


def _branch(event: Event) -> str:
    return event.branch or ""


def _last_answer(agent: BaseAgent, events: Sequence[Event]) -> Any:
    """What the last of the events that answers anything holds.

    Raises:
        AgentAnswerError: An error of the model came after it.
        ValidationError: The text does not fit the schema of the agent that gave it.
    """
    for event in reversed(events):
        if event.output is not None and event.author == agent.name:
            return event.output
        if (result := _unsummarised(event)) is not None:
            return result
        text = _text(event)
        if event.is_final_response() and text:
            author = agent.find_agent(event.author)
            schema = author.output_schema if isinstance(author, LlmAgent) else None
            return text if schema is None else graph.read_structured(schema, text)
        if event.error_code:
            raise AgentAnswerError(
                f"agent {agent.name!r} gave no answer: the model call of {event.author!r} ended with {event.error_code}"
                + (f" ({event.error_message})" if event.error_message else "")
            )
    return None


def _unsummarised(event: Event) -> Any:
    """What a tool returned that made its result the final response (``skip_summarization``); None for ``exit_loop``."""
    responses = event.get_function_responses() if event.actions.skip_summarization else []
    for response in reversed(responses):
        result = dict(response.response or {})
        return result["result"] if result.keys() == {"result"} else result or None
    return None


def _text(event: Event) -> str:
    parts = (event.content.parts or []) if event.content else []
    return "".join(part.text for part in parts if part.text and not part.thought)
