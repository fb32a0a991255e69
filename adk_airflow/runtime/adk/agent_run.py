"""Runs an agent as the root of ADK's own Runner, and finds its answer among the events.

ADK has no notion of a root agent's output: a caller reads the events. The rules for what an Airflow task returns are here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from google.adk.agents.llm.task._finish_task_tool import is_finish_task_terminal_fr
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.parallel_agent import ParallelAgent
from pydantic import ValidationError

from adk_airflow.errors import AgentAnswerError
from adk_airflow.runtime.adk import graph
from adk_airflow.runtime.adk.agent_events import AgentEvent, AgentEvents, Line
from adk_airflow.runtime.adk.questions import words_of
from adk_airflow.runtime.adk.runner import RunResult, drive
from adk_airflow.runtime.wire.envelope import Firing

if TYPE_CHECKING:
    from google.adk.agents.base_agent import BaseAgent
    from google.adk.events.event import Event
    from google.adk.workflow import Workflow

    from adk_airflow.runtime.adk.questions import Question
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
    ``output_schema`` the data that the text holds; of a tool that skips its summary what the tool returned. What an agent that
    was called like a tool said is its caller's to use, not the answer. Of a task-mode agent it is the result of its task. Where
    the run ends in a ``ParallelAgent`` it is a dict: the answer of each of its sub-agents, by name. None: nothing was
    answered.

    Args:
        run: The Airflow run.
        agent: The root agent of its App.
    """
    result = RunResult(state=run.state)
    said = AgentEvents()

    def on_event(event: Event) -> None:
        if not event.partial:
            said.note(event)
        if run.on_event is not None:
            run.on_event(event)

    app = run.app.model_copy(update={"plugins": [said, *run.app.plugins]})
    questions = await drive(replace(run, app=app, on_event=on_event), agent, result)
    if result.error is None:
        result.questions = [question for question in questions.without_response() if _asks(question, agent, said)]
    if result.error is None and not result.questions:
        try:
            result.firings = [Firing(agent.name, _answer(agent, said))]
        except (AgentAnswerError, ValidationError) as error:
            result.error = error
    return result


def _asks(question: Question, agent: BaseAgent, said: AgentEvents) -> bool:
    """Whether it is a question: no call that was cancelled, no task that ended with None as its result."""
    if question.kind != "task_agent":
        return True
    if question.interrupt_id:
        return question.interrupt_id not in said.cancelled_calls()
    finished = _finished(agent, said) if _is_task(agent) else None
    return finished is None or question.path != finished.node_info.path


def _is_task(agent: BaseAgent) -> bool:
    return isinstance(agent, LlmAgent) and agent.mode == "task"


def _finished(agent: BaseAgent, said: AgentEvents) -> Event | None:
    """The event by which the root agent finished its own task, not one of an agent that helped it."""
    own = [noted.event for noted in said.events if noted.line == said.line and noted.event.author == agent.name]
    return next((event for event in own if is_finish_task_terminal_fr(event)), None)


def _answer(root: BaseAgent, said: AgentEvents) -> Any:
    if _is_task(root):
        finished = _finished(root, said)
        return None if finished is None else finished.output
    return _answer_of(root, said, said.line, 0)


def _answer_of(root: BaseAgent, said: AgentEvents, line: Line, since: int) -> Any:
    """The answer of the agents that ran one after the other on a line, from the ``since``-th agent run on.

    Raises:
        AgentAnswerError: An error of the model came after the last answer; two answers would have the same key.
        ValidationError: A text does not fit the schema of the agent that gave it.
    """
    parallel = said.last_run(line, since, ParallelAgent)
    begun = since if parallel is None else parallel + 1
    after = [noted for noted in said.events if noted.line == line and noted.runs_begun >= begun]
    answer = _last_answer(root, after)
    if answer is not None or parallel is None:
        return answer
    agent = said.runs[parallel].agent
    names = [branch.name for branch in agent.sub_agents]
    if len(set(names)) < len(names):
        raise AgentAnswerError(
            f"agent {root.name!r}: its answer is a dict, by name, with the answer of each sub-agent of ParallelAgent"
            f" {agent.name!r}, and two of them have the same name ({', '.join(names)}). Give each a name of its own."
        )
    return {name: _answer_of(root, said, (*line, agent.name, name), parallel + 1) for name in names}


def _last_answer(root: BaseAgent, events: Sequence[AgentEvent]) -> Any:
    """What the last of the events that answers anything holds.

    Raises:
        AgentAnswerError: An error of the model came after it.
        ValidationError: The text does not fit the schema of the agent that gave it.
    """
    for noted in reversed(events):
        event = noted.event
        if event.output is not None:
            return event.output
        if (result := _unsummarised(event)) is not None:
            return result
        text = words_of(event)
        if event.is_final_response() and text:
            author = noted.run.agent if noted.run else None
            schema = author.output_schema if isinstance(author, LlmAgent) else None
            return text if schema is None else graph.read_structured(schema, text)
        if event.error_code:
            raise AgentAnswerError(
                f"agent {root.name!r} gave no answer: the model call of {event.author!r} ended with {event.error_code}"
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
