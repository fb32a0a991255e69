"""Divides a Graph into parts: what runs in one task. A part is one node, a loop, or neighbours that the user embeds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from graphlib import TopologicalSorter

from adk_airflow.translator.graph import START, Graph


def find_regions(graph: Graph, *, embedded: Collection[str] = ()) -> list[tuple[str, ...]]:
    """The parts in topological order, each with its nodes in ADK's order.

    Args:
        graph: The workflow's graph.
        embedded: Nodes that the user embeds: neighbours among them share a part, and with them whatever lies on a way from
            one of them to another, since the tasks of a DAG cannot depend on each other in a circle.
    """
    names = [node.name for node in graph.nodes]
    edges = [(edge.source, edge.target) for edge in graph.edges if edge.source != START]
    part_of = {name: name for name in names}
    for source, target in edges:
        if source in embedded and target in embedded:
            _unite(part_of, source, target)
    between = [(part_of[source], part_of[target]) for source, target in edges]
    for group in _circles(set(part_of.values()), between):
        first = group[0]
        for other in group[1:]:
            _unite(part_of, first, other)
    members: dict[str, list[str]] = {}
    for name in names:
        members.setdefault(part_of[name], []).append(name)
    before: dict[str, dict[str, None]] = {part: {} for part in members}
    for source, target in edges:
        if part_of[source] != part_of[target]:
            before[part_of[target]][part_of[source]] = None
    return [tuple(members[part]) for part in TopologicalSorter(before).static_order()]


def is_loop(graph: Graph, part: Collection[str]) -> bool:
    """Whether edges inside the part lead in a circle."""
    inside = [(edge.source, edge.target) for edge in graph.edges if edge.source in part and edge.target in part]
    return any(source == target for source, target in inside) or bool(_circles(set(part), inside))


def _unite(part_of: dict[str, str], one: str, other: str) -> None:
    keep, gone = part_of[one], part_of[other]
    for name, part in part_of.items():
        if part == gone:
            part_of[name] = keep


def _circles(nodes: Collection[str], edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    """The groups of two or more nodes that all reach each other."""
    following: dict[str, set[str]] = {node: set() for node in nodes}
    for source, target in edges:
        following[source].add(target)
    reach = {node: _reachable(node, following) for node in nodes}
    groups: list[list[str]] = []
    seen: set[str] = set()
    for node in sorted(nodes):
        if node not in seen:
            group = sorted({node, *(other for other in reach[node] if node in reach[other])})
            seen.update(group)
            if len(group) > 1:
                groups.append(group)
    return groups


def _reachable(node: str, following: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    todo = list(following[node])
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo.extend(following[name])
    return found
