"""What a task finds when it starts: what reached its nodes, the session state, the user message.

Only XComs of this run are read. A direct predecessor that was skipped left no envelope; what *its* predecessors left is
read in its place, so that state never depends on which way the run went.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from adk_airflow.errors import EnvelopeError
from adk_airflow.runtime.start import START, Start
from adk_airflow.runtime.wire import codec, lineage
from adk_airflow.runtime.wire.envelope import Envelope, Records, merged_records
from adk_airflow.runtime.wire.triggers import Arrival, Trigger

if TYPE_CHECKING:
    from google.adk.workflow import Workflow

    from adk_airflow.runtime.envelopes import Envelopes


@dataclass(frozen=True)
class Inbox:
    """What a task was given.

    Attributes:
        arrivals: What reached its nodes, in ADK's order.
        state: The session state, merged, encoded.
        lost: State updates that were lost in merges so far.
        message: The user message that started the run.
        scopes: For each nested workflow on the way here: ADK's branch for it, and whether it is a sub-branch.
        asked: The ids of the tasks so far in which a model was asked.
        records: The tries of tasks before whose events a node may see.
        error: Why ADK can run nothing, although this task's turn has come: what the run was given does not fit.
    """

    arrivals: tuple[Arrival, ...]
    state: lineage.State
    lost: tuple[lineage.LostUpdate, ...]
    message: Any
    scopes: Mapping[str, tuple[str | None, bool]] = field(default_factory=dict)
    asked: tuple[str, ...] = ()
    error: Exception | None = None
    records: Records = field(default_factory=dict)

    @cached_property
    def values(self) -> dict[str, Any]:
        """The session state as ADK's session takes it, decoded when it is first asked for."""
        found = {}
        for key, entry in self.state.items():
            try:
                found[key] = codec.decode(entry.value)
            except EnvelopeError as error:
                raise EnvelopeError(f"state key {key!r}, written by task {entry.writer!r}: {error}") from error
        return found


def read(
    workflow: Workflow,
    names: Collection[str],
    *,
    start: Start | None,
    output_tasks: Mapping[str, str],
    envelopes: Envelopes,
) -> Inbox:
    """Reads what reached the nodes ``names``, which run together in one task.

    Args:
        workflow: The loaded workflow.
        names: The nodes.
        start: What the run gives, when START of the outermost workflow has an edge to one of them; else None.
        output_tasks: For each node of the workflow the id of the task that leaves its output. In a nested workflow also for its
            START: the task that takes its input.
        envelopes: Reads what they left.

    Raises:
        EnvelopeError: An envelope cannot be used, or none was found at all.
    """
    direct = [name for name in _outside(workflow, names) if name in output_tasks]
    found = read_back(workflow, direct, output_tasks, envelopes)
    merged = merge(found.values(), start)
    if start is None and not found:
        raise EnvelopeError(
            f"workflow {workflow.name!r}, node {', '.join(names)!r}: no task before it left anything in XCom key 'adk'."
            " Clear the tasks before it so that they run again."
        )
    tasks = dict.fromkeys(output_tasks[name] for name in _by_dependency(workflow, direct))
    arrivals = _arrivals(workflow, names, [found[task] for task in tasks if task in found], output_tasks, start)
    return replace(merged, arrivals=tuple(arrivals))


def merge(envelopes: Iterable[Envelope], start: Start | None = None) -> Inbox:
    """The state, lost updates and message of several envelopes, given in predecessor order; nothing arrives."""
    envelopes = list(envelopes)
    merged = lineage.merge([*([start.entries()] if start else []), *(envelope.state for envelope in envelopes)])
    lost = dict.fromkeys([*(item for envelope in envelopes for item in envelope.lost), *merged.lost])
    message = start.message() if start else envelopes[0].message if envelopes else None
    scopes = {path: scope for envelope in envelopes for path, scope in envelope.scopes.items()}
    asked = dict.fromkeys(task for envelope in envelopes for task in envelope.asked)
    records = merged_records(envelope.records for envelope in envelopes)
    return Inbox((), merged.state, tuple(lost), message, scopes, tuple(asked), records=records)


def predecessors(workflow: Workflow, node: str) -> list[str]:
    """The names of the nodes with an edge to ``node``, START included, each once, in ADK's order of edges."""
    assert workflow.graph is not None
    return list(dict.fromkeys(e.from_node.name for e in workflow.graph.edges if e.to_node.name == node))


def _all_predecessors(workflow: Workflow) -> dict[str, dict[str, None]]:
    """The predecessors of every node that has some, by name."""
    assert workflow.graph is not None
    found: dict[str, dict[str, None]] = {}
    for edge in workflow.graph.edges:
        found.setdefault(edge.to_node.name, {})[edge.from_node.name] = None
    return found


def _by_dependency(workflow: Workflow, names: Sequence[str]) -> list[str]:
    """The order in which the nodes' runs reach their successors: as given, but none before one that it depends on."""
    if len(names) < 2:
        return list(names)
    direct = _all_predecessors(workflow)
    before = {name: _ancestors(direct, name) for name in names}
    found: list[str] = []
    while len(found) < len(names):
        rest = [name for name in names if name not in found]
        # In a loop all depend on each other; they then run in one task, which knows the order.
        found.append(next((name for name in rest if not before[name] & set(rest) - {name}), rest[0]))
    return found


def _ancestors(direct: Mapping[str, Iterable[str]], node: str) -> set[str]:
    """The nodes before one, near or far, by the predecessors of each node."""
    found: set[str] = set()
    todo = list(direct.get(node, ()))
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += direct.get(name, ())
    return found


def _outside(workflow: Workflow, names: Collection[str]) -> list[str]:
    """The predecessors of ``names`` that are not among them, each once, in ADK's order of edges."""
    assert workflow.graph is not None
    edges = [(e.from_node.name, e.to_node.name) for e in workflow.graph.edges]
    return list(dict.fromkeys(source for source, target in edges if target in names and source not in names))


def read_back(
    workflow: Workflow, names: Sequence[str], output_tasks: Mapping[str, str], envelopes: Envelopes
) -> dict[str, Envelope]:
    """What the tasks of the nodes ``names`` left, by task id; of their predecessors where one was skipped."""
    found: dict[str, Envelope] = {}
    seen: set[str] = set()
    todo = list(names)
    direct: dict[str, dict[str, None]] | None = None
    envelopes.ask(output_tasks[name] for name in names if name in output_tasks)
    while todo:
        name = todo.pop(0)
        task = output_tasks.get(name)
        if name in seen or task is None or task in found:  # the outermost START has no task
            continue
        seen.add(name)
        envelope = envelopes.get(task)
        if envelope is not None:
            found[task] = envelope
            continue
        if direct is None:
            direct = _all_predecessors(workflow)
        if any(output_tasks.get(before) not in envelopes.states for before in direct.get(name, ())):
            envelopes.ask(output_tasks[before] for before in _ancestors(direct, name) if before in output_tasks)
        todo[:0] = direct.get(name, ())
    return found


def _arrivals(
    workflow: Workflow,
    names: Collection[str],
    envelopes: Sequence[Envelope],
    output_tasks: Mapping[str, str],
    start: Start | None,
) -> list[Arrival]:
    from adk_airflow.runtime.adk import graph

    joins = {name for name in names if graph.waits_for_all(graph.find_node(workflow, name))}
    paired = {name for name in joins if _comes_from_several_tasks(workflow, name, names, output_tasks)}
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
        found += _pair(workflow, name, envelopes, output_tasks, start)
    return found


def _comes_from_several_tasks(workflow: Workflow, join: str, names: Collection[str], output_tasks: Mapping[str, str]) -> bool:
    before = [name for name in predecessors(workflow, join) if name in output_tasks]
    inside = any(name in names for name in predecessors(workflow, join))
    return not inside and len({output_tasks[name] for name in before}) != 1


def _pair(
    workflow: Workflow, join: str, envelopes: Sequence[Envelope], output_tasks: Mapping[str, str], start: Start | None
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
        if name in output_tasks
    }
    started = arrived.pop(START, [])
    if START in output_tasks and START in direct and not started:
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
