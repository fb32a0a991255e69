"""What a run asks a person: which node, in which way, and the question."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from google.adk.agents.llm_agent import LlmAgent
from google.adk.plugins.base_plugin import BasePlugin

from adk_airflow.runtime.adk.graph import static_node

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.workflow import BaseNode

Kind = Literal["input", "confirmation", "credential", "long_running_tool", "task_agent"]

_KINDS: dict[str, Kind] = {
    "adk_request_input": "input",
    "adk_request_confirmation": "confirmation",
    "adk_request_credential": "credential",
}
_ASKS: dict[Kind, str] = {
    "input": "asks a person for input",
    "confirmation": "asks a person to confirm a tool call",
    "credential": "asks a person for credentials",
    "long_running_tool": "waits for the answer of the long-running tool",
    "task_agent": "is an agent in task mode that asks a person",
}


@dataclass(frozen=True)
class Question:
    """One thing that a node waits for.

    Attributes:
        path: ADK's path of the node run, such as ``wf@1/review@3``; the agent's name, where ADK gives it no path.
        kind: How it asks.
        text: The question, or the name of the tool; nothing of a request for credentials, which may hold secrets.
        interrupt_id: ADK's id of the interrupt; nothing of a task-mode agent, which has none.
    """

    path: str
    kind: Kind
    text: str = ""
    interrupt_id: str = ""

    def __str__(self) -> str:
        if self.kind == "long_running_tool":
            return f"node {self.path} {_ASKS[self.kind]} {self.text!r}"
        return f"node {self.path} {_ASKS[self.kind]}" + (f": {self.text!r}" if self.text else "")


class Questions(BasePlugin):
    """Listens to one run: what is asked in it, and which of its agents in task mode end without a result.

    A task-mode agent asks in plain words; ADK would wait for the user's next message. Which agent is one is seen as it runs, by
    the path of its run: one that a node makes at run time counts too, and another node of its name does not.

    Args:
        root: The outermost workflow, or the agent.
    """

    def __init__(self, root: BaseNode) -> None:
        super().__init__(name="adk_airflow_questions")
        self._root = root
        self._asked: dict[str, Question] = {}
        self._without_response: dict[str, Question] = {}
        self._working: dict[str, str] = {}
        self._with_output: set[str] = set()
        self._invocation_id: str | None = None

    async def before_agent_callback(self, *, agent: Any, callback_context: Any) -> None:
        """Notes an agent in task mode, by the path of its run.

        Not one that an ``AgentTool`` runs in an invocation of its own, nor a step of a ``SequentialAgent`` or the like: ADK
        runs these to their end, whatever they say.
        """
        self._invocation_id = self._invocation_id or callback_context.invocation_id
        path = callback_context.node_path or ""
        is_node = path.rpartition("/")[2].partition("@")[0] == agent.name
        is_ours = callback_context.invocation_id == self._invocation_id
        if is_node and is_ours and isinstance(agent, LlmAgent) and agent.mode == "task":
            self._working[path] = ""

    def on_event(self, event: Event) -> None:
        """Takes one event of the run."""
        path = event.node_info.path
        if event.partial:
            return
        for call in event.get_function_calls():
            # A call of anything else that gets no response is the hand-over to an agent in task mode, which asks.
            other: Kind = "long_running_tool" if call.id in (event.long_running_tool_ids or ()) else "task_agent"
            kind = _KINDS.get(call.name or "", other)
            # A step of a SequentialAgent or the like that is the root has no path.
            self._asked[call.id or ""] = self._without_response[call.id or ""] = Question(
                path or event.author, kind, _text(kind, call), call.id or ""
            )
        for response in event.get_function_responses():
            self._without_response.pop(response.id or "", None)
        if event.output is not None or event.node_info.message_as_output:
            self._with_output.add(path)
        elif path in self._working:
            self._working[path] = words_of(event) or self._working[path]

    def unanswered(self, interrupt_ids: Iterable[str]) -> list[Question]:
        """What a person is asked at the end of the run, in the order in which it was asked.

        Args:
            interrupt_ids: The interrupts that ADK's engine stopped for.
        """
        ids = dict.fromkeys(interrupt_ids)
        found = [question for name, question in self._asked.items() if name in ids]
        found += [Question(self._root.name, "input", "", name) for name in ids if name not in self._asked]
        asking = [Question(path, "task_agent", words) for path, words in self._working.items() if self._waits(path)]
        return _without_echoes(found + asking)

    def without_response(self) -> list[Question]:
        """What an agent that is the root waits for: its calls that nobody has answered, and what it asks itself."""
        calls = list(self._without_response.values())
        asking = [Question(path, "task_agent", words) for path, words in self._working.items() if path not in self._with_output]
        # Where an agent in task mode asks, the call that handed over to it says less.
        return _without_echoes([call for call in calls if call.kind != "task_agent" or not asking] + asking)

    def _waits(self, path: str) -> bool:
        """Whether ADK waits for the agent: not when it has a result, or when the node that called it goes on without one."""
        if path in self._with_output:
            return False
        known, node = static_node(self._root, path)
        return known == path or (node.wait_for_output and known not in self._with_output)


def _without_echoes(questions: list[Question]) -> list[Question]:
    """Leaves out an agent in task mode that asks nothing itself: its tool waits, or an agent that it handed over to asks."""

    def is_echo(question: Question) -> bool:
        others = (other.path for other in questions if other is not question)
        silent = question.kind == "task_agent" and not question.text
        return silent and any(f"{path}/".startswith(f"{question.path}/") for path in others)

    return [question for question in questions if not is_echo(question)]


def _text(kind: Kind, call: Any) -> str:
    arguments = call.args or {}
    if kind == "input":
        return str(arguments.get("message") or "")
    if kind == "confirmation":
        asked = arguments.get("originalFunctionCall") or {}
        confirmation = arguments.get("toolConfirmation") or {}
        return ": ".join(filter(None, (str(asked.get("name") or ""), str(confirmation.get("hint") or ""))))
    return str(call.name) if kind in ("long_running_tool", "task_agent") else ""


def words_of(event: Event) -> str:
    """The text of an event, without thoughts."""
    parts = (event.content.parts or []) if event.content else []
    return "".join(part.text for part in parts if part.text and not part.thought)
