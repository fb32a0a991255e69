"""Whose event is it: the events of a tree of agents, each with the run of the agent that gave it.

An event names its author. Names need not be unique in a tree, a branch is missing from the events of some agents and, where an
agent hands over to another, is now and then that of the event before. So the agents that begin and end are noted as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from google.adk.agents.parallel_agent import ParallelAgent
from google.adk.plugins.base_plugin import BasePlugin

from adk_airflow.runtime.adk import graph

if TYPE_CHECKING:
    from google.adk.agents.base_agent import BaseAgent
    from google.adk.events.event import Event

Line = tuple[str, ...]
"""The segments of a branch. The agents on one run one after the other; ``ParallelAgent`` and agents as tools open others."""


@dataclass
class AgentRun:
    """One run of one agent.

    Attributes:
        agent: The agent, or the copy of it that ADK runs.
        line: Where it runs.
        ended: Whether it has ended; a callback of its may still answer.
    """

    agent: BaseAgent
    line: Line
    ended: bool = False


@dataclass(frozen=True)
class AgentEvent:
    """An event and where it comes from.

    Attributes:
        event: The event.
        run: The run of the agent that gave it; None for an author that is none of the agents that ran.
        line: Where it was said; None: it cannot be known.
        runs_begun: How many agent runs had begun before it.
    """

    event: Event
    run: AgentRun | None
    line: Line | None
    runs_begun: int


class AgentEvents(BasePlugin):
    """Notes the agents of one invocation as they begin and end, and their events.

    An ADK plugin, to be the first: one that answers in an agent's place keeps those after it from being called.
    """

    def __init__(self) -> None:
        super().__init__(name="adk_airflow_agent_events")
        self.runs: list[AgentRun] = []
        self.events: list[AgentEvent] = []
        self._invocation_id: str | None = None

    @property
    def line(self) -> Line:
        """Where the root agent runs."""
        return self.runs[0].line if self.runs else ()

    async def before_agent_callback(self, *, agent: Any, callback_context: Any) -> None:
        """Notes that the agent begins. The agent of an ``AgentTool`` has an invocation of its own, which is not noted."""
        self._invocation_id = self._invocation_id or callback_context.invocation_id
        if callback_context.invocation_id == self._invocation_id:
            self.runs.append(AgentRun(agent, graph.branch_segments(callback_context.branch)))

    async def after_agent_callback(self, *, agent: Any, callback_context: Any) -> None:
        """Notes that the agent ends."""
        if callback_context.invocation_id == self._invocation_id:
            line = graph.branch_segments(callback_context.branch)
            for run in reversed(self.runs):
                if run.agent is agent and run.line == line and not run.ended:
                    run.ended = True
                    break

    def note(self, event: Event) -> None:
        """Notes an event, as it happens."""
        line = graph.branch_segments(event.branch)
        run = self._run_of(event.author, line)
        self.events.append(AgentEvent(event, run, run.line if run else self._line_of_unknown(line), len(self.runs)))

    def last_run(self, line: Line, since: int, kind: type[BaseAgent]) -> int | None:
        """The index of the last run on a line, from the ``since``-th on, of an agent of this kind."""
        found = (at for at in range(len(self.runs) - 1, since - 1, -1) if self.runs[at].line == line)
        return next((at for at in found if isinstance(self.runs[at].agent, kind)), None)

    def cancelled_calls(self) -> set[str]:
        """The ids of the calls in branches of a ``ParallelAgent`` that ended because one of its agents escalated."""
        escalated = (noted for noted in self.events if noted.event.actions.escalate)
        ended = {noted.line[:-1] for noted in escalated if noted.line and noted.line[-1] == noted.event.author}
        within = [noted for noted in self.events if noted.line and any(noted.line[: len(line)] == line for line in ended)]
        return {call.id or "" for noted in within for call in noted.event.get_function_calls()}

    def _run_of(self, author: str, line: Line) -> AgentRun | None:
        runs = [run for run in reversed(self.runs) if run.agent.name == author]
        exact = [run for run in runs if run.line == line]
        if not exact and line and "@" in line[-1]:
            return None  # a message of a tool: in its agent's name, on a branch of the tool's own
        running = [run for run in runs if not run.ended]
        near = [run for run in running if run.line == line[: len(run.line)] or line == run.line[: len(line)]]
        return next(iter([run for run in exact if not run.ended] or near or exact or runs), None)

    def _line_of_unknown(self, line: Line) -> Line | None:
        """The line of an event whose author is no agent: its branch, unless agents side by side may have left that out."""
        split = any(run.line == line and not run.ended and isinstance(run.agent, ParallelAgent) for run in self.runs)
        return None if split else line
