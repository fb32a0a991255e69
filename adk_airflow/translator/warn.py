"""What can differ from one ADK process for a graph; ``docs/differences.md`` explains each."""

from __future__ import annotations

from collections.abc import Sequence

from adk_airflow.translator.graph import START, Graph


def warnings_for(graph: Graph, parts: Sequence[tuple[str, ...]], *, nested: bool = False) -> list[str]:
    """One line per difference that this graph, divided into these parts, can meet: ``name: explanation``."""
    part_of = {name: number for number, part in enumerate(parts) for name in part}
    found = []
    if _has_parallel_tasks(graph, part_of):
        found.append(
            "state-between-branches: parallel branches run in processes of their own: one does not see what the other"
            " writes to state until they join, and of two writes to one key the later predecessor's stays (reported)."
        )
        found.append("no-cancel-on-failure: when a branch fails, tasks of other branches that already run are not cancelled.")
    for node in graph.nodes:
        if node.join and _pairs(graph, node.name, part_of):
            found.append(f"join-pairing: node {node.name!r} joins nodes that may run several times; they are paired in order.")
        if _in_edge_order(graph, node.name, part_of):
            found.append(f"run-order: node {node.name!r} runs for its triggers in the order of the edges, not of their time.")
        if node.reads_history and (nested or set(graph.predecessors(node.name)) != {START}):
            found.append(f"agent-history: agent {node.name!r} does not see what nodes in other tasks said.")
        if node.asks_people:
            found.append(f"human-input: node {node.name!r} asks a person, which fails in an Airflow task for now.")
        if node.may_ask_people:
            found.append(f"human-input: agent {node.name!r} is in task mode; if it asks a person, its task fails for now.")
    if graph.plugins:
        found.append(
            f"plugins-per-task: run callbacks of {', '.join(graph.plugins)} are called once per task, not once per run."
        )
    return found


def _has_parallel_tasks(graph: Graph, part_of: dict[str, int]) -> bool:
    """Whether nodes that ADK would run side by side are in several tasks: branches, or the items of a parallel worker."""
    for name in (START, *part_of):
        if len({part_of[target] for target in graph.successors(name) if part_of[target] != part_of.get(name)}) > 1:
            return True
    workers = any(node.kind == "parallel_worker" and not node.list_wide for node in graph.nodes)
    return workers or any(_hands_on_while_it_runs(graph, part_of, number) for number in set(part_of.values()))


def _hands_on_while_it_runs(graph: Graph, part_of: dict[str, int], part: int) -> bool:
    """Whether several nodes that run in one task may trigger another task before the last of them has run.

    The targets of one router are left out, as when a loop decides to go round or to leave: as a rule only one of them runs.
    """
    edges = [edge for edge in graph.edges if part_of.get(edge.source) == part]
    if all(part_of[edge.target] == part for edge in edges):
        return False
    if len(_entries(graph, part_of, part)) > 1:
        return True
    for name in {edge.source for edge in edges}:
        own = [edge for edge in edges if edge.source == name]
        plain = {edge.target for edge in own if not (edge.routes or edge.default)}
        stays = {edge.target for edge in own if part_of[edge.target] == part}
        leaves = {edge.target for edge in own} - stays
        if len(plain & stays) > 1 or (stays and plain & leaves) or (leaves and plain & stays):
            return True
    return False


def _entries(graph: Graph, part_of: dict[str, int], part: int) -> set[str]:
    """The nodes of a part that edges from outside lead to."""
    return {edge.target for edge in graph.edges if part_of[edge.target] == part and part_of.get(edge.source) != part}


def _in_edge_order(graph: Graph, name: str, part_of: dict[str, int]) -> bool:
    """Whether several tasks may trigger a node that is no join: they all end before it runs for the first of them.

    The targets of one router are left out: as a rule only one of them runs.
    """
    node = next(node for node in graph.nodes if node.name == name)
    own = part_of[name]
    # What comes back to the only entry of a loop comes after it anyway.
    comes_back = _entries(graph, part_of, own) == {name}
    before = [source for source in graph.predecessors(name) if source != START and not (comes_back and part_of[source] == own)]
    from_start = START in graph.predecessors(name)
    if node.join or len({part_of[source] for source in before}) + from_start < 2:
        return False
    ways = [edge for source in before for edge in graph.edges if edge.target == source]
    one_router = len({edge.source for edge in ways}) == 1 and all(edge.routes or edge.default for edge in ways)
    return from_start or not one_router


def _pairs(graph: Graph, join: str, part_of: dict[str, int]) -> bool:
    """Whether a join's predecessors run in several tasks, one of them possibly more than once."""
    before = [name for name in graph.predecessors(join) if name != START]
    if len({part_of[name] for name in before}) < 2:
        return False
    return any(may_repeat(graph, name) for name in before)


def may_repeat(graph: Graph, name: str) -> bool:
    """Whether the node may run several times: it, or a node before it, has several ways in and is no join, or is in a loop."""
    return _may_repeat(graph, name, frozenset())


def _may_repeat(graph: Graph, name: str, after: frozenset[str]) -> bool:
    if name == START:
        return False
    if name in after:
        return True  # a loop
    node = next(node for node in graph.nodes if node.name == name)
    ways = [edge for edge in graph.edges if edge.target == name]
    if node.join:
        return False
    return len(ways) > 1 or any(_may_repeat(graph, edge.source, after | {name}) for edge in ways)
