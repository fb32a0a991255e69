"""What a task finds when it starts: what reached its nodes, the session state, the user message.

Only XComs of this run are read. A direct predecessor that was skipped left no envelope; what *its* predecessors left is
read in its place, so that state never depends on which way the run went.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from adk_airflow.errors import EnvelopeError, ValueNotTransferableError
from adk_airflow.runtime.wire import codec, json_form, lineage
from adk_airflow.runtime.wire.envelope import Envelope
from adk_airflow.runtime.wire.triggers import Arrival, Trigger

if TYPE_CHECKING:
    from google.adk.workflow import Workflow

START = "__START__"
START_WRITER = "run"


@dataclass(frozen=True)
class Start:
    """What the run itself gives to the tasks that START has an edge to.

    Attributes:
        input: The user's input: text, or data that becomes JSON text, as ADK gets a user message.
        state: The initial session state.
        output: What START hands on: the message as the App's plugins and the workflow's ``input_schema`` made it.
    """

    input: Any = None
    state: Mapping[str, Any] | None = None
    output: Any = None

    def message(self) -> Any:
        """The input as the ``Content`` that ADK's Runner takes. A Content passes as it is."""
        from google.genai import types

        if isinstance(self.input, types.Content):
            return self.input
        text = self.input
        if not isinstance(text, str):
            text = "" if text is None else codec.dumps(json_form.to_json(text))
        return types.Content(role="user", parts=[types.Part(text=text)])

    def checked(self) -> Start:
        """Itself. Raises ValueNotTransferableError when the input or a state value has no JSON form."""
        codec.encode(self.input)
        for key, value in (self.state or {}).items():
            try:
                codec.encode(value)
            except ValueNotTransferableError as error:
                raise ValueNotTransferableError(f"state key {key!r}: {error}") from None
        return self

    def entries(self) -> lineage.State:
        """The initial state, written by the run before any task."""
        given = {key: codec.encode(value) for key, value in (self.state or {}).items()}
        return lineage.write({}, given, START_WRITER)


@dataclass(frozen=True)
class Inbox:
    """What reached the part: arrivals in ADK's order, merged state, lost updates so far, and the user message."""

    arrivals: tuple[Arrival, ...]
    state: lineage.State
    lost: tuple[lineage.LostUpdate, ...]
    message: Any
    scopes: Mapping[str, tuple[str | None, bool]] = field(default_factory=dict)

    def plain_state(self) -> dict[str, Any]:
        """The state as ADK's session takes it."""
        found = {}
        for key, entry in self.state.items():
            try:
                found[key] = codec.decode(entry.value)
            except EnvelopeError as error:
                raise EnvelopeError(f"state key {key!r}, written by task {entry.writer!r}: {error}") from error
        return found


Reader = Callable[[str], Any]
"""Gives the XCom ``adk`` of a task of this run, None when there is none."""


def read(workflow: Workflow, names: Collection[str], *, start: Start | None, exits: Mapping[str, str], reader: Reader) -> Inbox:
    """Reads what reached the nodes ``names``, which run together in one task.

    Args:
        workflow: The loaded workflow.
        names: The nodes.
        start: What the run gives, when START of the outermost workflow has an edge to one of them; else None.
        exits: For each node before them, near or far, the id of the task that speaks for it. In a nested workflow also for
            its START: the task that takes its input.
        reader: Reads an XCom.

    Raises:
        EnvelopeError: An envelope cannot be used, or none was found at all.
    """
    direct = [name for name in _outside(workflow, names) if name in exits]
    envelopes = read_back(workflow, direct, exits, reader)
    merged = merge(envelopes.values(), start)
    if start is None and not envelopes:
        raise EnvelopeError(
            f"workflow {workflow.name!r}, node {', '.join(names)!r}: no task before it left anything in XCom key 'adk'."
            " Clear the tasks before it so that they run again."
        )
    tasks = dict.fromkeys(exits[name] for name in _by_dependency(workflow, direct))
    arrivals = _arrivals(workflow, names, [envelopes[task] for task in tasks if task in envelopes], exits, start)
    return replace(merged, arrivals=tuple(arrivals))


def merge(envelopes: Iterable[Envelope], start: Start | None = None) -> Inbox:
    """The state, lost updates and message of several envelopes, given in predecessor order; nothing arrives."""
    envelopes = list(envelopes)
    merged = lineage.merge([*([start.entries()] if start else []), *(envelope.state for envelope in envelopes)])
    lost = dict.fromkeys([*(item for envelope in envelopes for item in envelope.lost), *merged.lost])
    message = start.message() if start else envelopes[0].message if envelopes else None
    scopes = {path: scope for envelope in envelopes for path, scope in envelope.scopes.items()}
    return Inbox((), merged.state, tuple(lost), message, scopes)


def predecessors(workflow: Workflow, node: str) -> list[str]:
    """The names of the nodes with an edge to ``node``, START included, each once, in ADK's order of edges."""
    assert workflow.graph is not None
    return list(dict.fromkeys(e.from_node.name for e in workflow.graph.edges if e.to_node.name == node))


def _by_dependency(workflow: Workflow, names: Sequence[str]) -> list[str]:
    """The order in which the nodes' runs reach their successors: as given, but none before one that it depends on."""
    before = {name: _ancestors(workflow, name) for name in names}
    found: list[str] = []
    while len(found) < len(names):
        rest = [name for name in names if name not in found]
        # In a loop all depend on each other; they then run in one task, which knows the order.
        found.append(next((name for name in rest if not before[name] & set(rest) - {name}), rest[0]))
    return found


def _ancestors(workflow: Workflow, node: str) -> set[str]:
    found: set[str] = set()
    todo = predecessors(workflow, node)
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += predecessors(workflow, name)
    return found


def _outside(workflow: Workflow, names: Collection[str]) -> list[str]:
    """The predecessors of ``names`` that are not among them, each once, in ADK's order of edges."""
    assert workflow.graph is not None
    edges = [(e.from_node.name, e.to_node.name) for e in workflow.graph.edges]
    return list(dict.fromkeys(source for source, target in edges if target in names and source not in names))


def read_back(workflow: Workflow, names: Sequence[str], exits: Mapping[str, str], reader: Reader) -> dict[str, Envelope]:
    """The envelopes of the tasks that speak for ``names``, by task id; of their predecessors where one was skipped."""
    found: dict[str, Envelope] = {}
    seen: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop(0)
        task = exits.get(name)
        if name in seen or task is None or task in found:  # the outermost START has no task
            continue
        seen.add(name)
        text = reader(task)
        if text is not None:
            found[task] = Envelope.loads(text, task=task)
            if (error := found[task].error) is not None:
                raise EnvelopeError(
                    f"workflow {workflow.name!r}: task {task!r} failed ({': '.join(error)}) and was marked as a success"
                    " afterwards, so it has no output to hand on. Clear it, so that it runs again."
                )
        else:
            todo[:0] = predecessors(workflow, name)
    return found


def _arrivals(
    workflow: Workflow,
    names: Collection[str],
    envelopes: Sequence[Envelope],
    exits: Mapping[str, str],
    start: Start | None,
) -> list[Arrival]:
    from adk_airflow.runtime.adk import graph

    joins = {name for name in names if graph.find_node(workflow, name)._requires_all_predecessors}
    paired = {name for name in joins if _comes_from_several_tasks(workflow, name, names, exits)}
    found: list[Arrival] = []
    if start is not None:
        trigger = Trigger(start.output, None, graph.start_triggers_sub_branches(workflow))
        for name in names:
            if START in predecessors(workflow, name) and name not in paired:
                found.append(Arrival(name, trigger, START if name in joins else None))
    for envelope in envelopes:
        for firing in envelope.firings:
            trigger = Trigger(firing.output, firing.branch, len(firing.next) > 1)
            for name in firing.next:
                if name in names and name not in paired:
                    found.append(Arrival(name, trigger, firing.node if name in joins else None))
    for name in paired:
        found += _pair(workflow, name, envelopes, exits, start)
    return found


def _comes_from_several_tasks(workflow: Workflow, join: str, names: Collection[str], exits: Mapping[str, str]) -> bool:
    before = [name for name in predecessors(workflow, join) if name in exits]
    inside = any(name in names for name in predecessors(workflow, join))
    return not inside and len({exits[name] for name in before}) != 1


def _pair(
    workflow: Workflow, join: str, envelopes: Sequence[Envelope], exits: Mapping[str, str], start: Start | None
) -> list[Arrival]:
    """The firings of a join whose predecessors ran in different tasks, so that their order in time says nothing.

    Predecessors that ran several times are paired in order; what is left over joins the last firing. A predecessor that
    never arrived keeps the join from firing. START fires once and counts as arrived for every firing of the join.
    """
    from adk_airflow.runtime.adk import graph

    direct = predecessors(workflow, join)
    arrived = {
        name: [f for envelope in envelopes for f in envelope.firings_of(name) if join in f.next]
        for name in direct
        if name in exits
    }
    started = arrived.pop(START, [])
    if START in exits and START in direct and not started:
        return []
    times = min((len(firings) for firings in arrived.values()), default=1)
    found = []
    for turn in range(times):
        picked = {name: firings[-1 if turn == times - 1 else turn] for name, firings in arrived.items()}
        values = {name: picked[name].output if name in picked else None for name in direct}
        if started:
            values[START] = started[-1].output
        elif START in direct and start is not None:
            values[START] = start.output
        branch = graph.common_branch([picked[name].branch if name in picked else "" for name in direct])
        found.append(Arrival(join, Trigger(values, branch, False)))
    return found
