"""What a task finds when it starts: the triggers that reached its node, the session state, the user message.

Only XComs of this run are read. A direct predecessor that was skipped left no envelope; what *its* predecessors left is
read in its place, so that state never depends on which way the run went.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adk_airflow.errors import EnvelopeError
from adk_airflow.runtime import codec, lineage
from adk_airflow.runtime.envelope import Envelope

if TYPE_CHECKING:
    from google.adk.workflow import Workflow

    from adk_airflow.runtime.host import Trigger

START = "__START__"
START_WRITER = "run"


@dataclass(frozen=True)
class Start:
    """What the run itself gives to the tasks that START has an edge to.

    Attributes:
        input: The user's input: text, or data that becomes JSON text, as ADK gets a user message.
        state: The initial session state.
    """

    input: Any = None
    state: Mapping[str, Any] | None = None

    def message(self) -> Any:
        """The input as the ``Content`` that ADK's Runner takes. A Content passes as it is."""
        from google.genai import types

        if isinstance(self.input, types.Content):
            return self.input
        text = self.input
        if not isinstance(text, str):
            text = "" if text is None else codec.dumps(codec.plain(text))
        return types.Content(role="user", parts=[types.Part(text=text)])

    def entries(self) -> lineage.State:
        """The initial state, written by the run before any task."""
        given = {key: codec.encode(value) for key, value in (self.state or {}).items()}
        return lineage.write({}, given, START_WRITER)


@dataclass(frozen=True)
class Inbox:
    """What reached the node: triggers in ADK's order, merged state, lost updates so far, and the user message."""

    triggers: tuple[Trigger, ...]
    state: lineage.State
    lost: tuple[lineage.LostUpdate, ...]
    message: Any

    def plain_state(self) -> dict[str, Any]:
        """The state as ADK's session takes it."""
        return {key: codec.decode(entry.value) for key, entry in self.state.items()}


Reader = Callable[[str], Any]
"""Gives the XCom ``adk`` of a task of this run, None when there is none."""


def read(workflow: Workflow, node: str, *, start: Start | None, exits: Mapping[str, str], reader: Reader) -> Inbox:
    """Reads the inbox of ``node``.

    Args:
        workflow: The loaded workflow.
        node: Name of the node.
        start: What the run gives, for a node that START has an edge to; else None.
        exits: For each ancestor node, the id of the task that speaks for it.
        reader: Reads an XCom.

    Raises:
        EnvelopeError: An envelope cannot be used, or none was found at all.
    """
    direct = predecessors(workflow, node)
    envelopes = _read_back(workflow, [name for name in direct if name != START], exits, reader)
    states = ([start.entries()] if start else []) + [envelope.state for envelope in envelopes.values()]
    if not states:
        raise EnvelopeError(
            f"workflow {workflow.name!r}, node {node!r}: no task before it left anything in XCom key 'adk'."
            " Clear the tasks before it so that they run again."
        )
    merged = lineage.merge(states)
    lost = dict.fromkeys([*(item for envelope in envelopes.values() for item in envelope.lost), *merged.lost])
    message = start.message() if start else next(iter(envelopes.values())).message
    triggers = _triggers(workflow, node, direct, envelopes, start)
    return Inbox(tuple(triggers), merged.state, tuple(lost), message)


def predecessors(workflow: Workflow, node: str) -> list[str]:
    """The names of the nodes with an edge to ``node``, START included, each once, in ADK's order of edges."""
    assert workflow.graph is not None
    return list(dict.fromkeys(e.from_node.name for e in workflow.graph.edges if e.to_node.name == node))


def _read_back(workflow: Workflow, names: Sequence[str], exits: Mapping[str, str], reader: Reader) -> dict[str, Envelope]:
    found: dict[str, Envelope] = {}
    seen: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop(0)
        if name in seen:
            continue
        seen.add(name)
        text = reader(exits[name])
        if text is not None:
            found[name] = Envelope.loads(text, task=exits[name])
        else:
            todo[:0] = [before for before in predecessors(workflow, name) if before != START]
    return found


def _triggers(
    workflow: Workflow,
    node: str,
    direct: Sequence[str],
    envelopes: Mapping[str, Envelope],
    start: Start | None,
) -> list[Trigger]:
    from adk_airflow.runtime import host

    from_start: list[Trigger] = []
    if start is not None:
        value = host.start_input(workflow, start.message())
        from_start = [host.Trigger(value, None, host.start_triggers_sub_branches(workflow))]
    if host.find_node(workflow, node)._requires_all_predecessors:
        return _join(node, direct, envelopes, from_start)
    found: list[Trigger] = []
    for name in direct:
        if name == START:
            found += from_start
            continue
        for firing in envelopes[name].firings if name in envelopes else ():
            trigger = host.Trigger(firing.output, firing.branch, len(firing.next) > 1)
            found += [trigger] * firing.next.count(node)
    return found


def _join(node: str, direct: Sequence[str], envelopes: Mapping[str, Envelope], from_start: Sequence[Trigger]) -> list[Trigger]:
    """A join fires when every predecessor arrived; START has arrived from the beginning.

    Predecessors that ran several times are paired in order; what is left over joins the last firing.
    """
    from adk_airflow.runtime import host

    arrived = {
        name: [f for f in envelopes[name].firings if node in f.next] if name in envelopes else []
        for name in direct
        if name != START
    }
    times = min((len(firings) for firings in arrived.values()), default=1)
    triggers = []
    for turn in range(times):
        pick = -1 if turn == times - 1 else turn
        values: dict[str, Any] = {}
        branches: list[str | None] = []
        for name in direct:
            if name == START:
                values[name] = from_start[0].input
                branches.append("")
            else:
                values[name] = arrived[name][pick].output
                branches.append(arrived[name][pick].branch)
        triggers.append(host.Trigger(values, host.common_branch(branches), False))
    return triggers
