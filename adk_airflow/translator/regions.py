"""Divides a Graph into regions: the nodes that run together in one task.

The smallest is a single node; others are a loop, or neighbours that the user embeds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from graphlib import TopologicalSorter

from adk_airflow.translator.graph import START, Graph


def find_regions(graph: Graph, *, embedded: Collection[str] = ()) -> list[tuple[str, ...]]:
    """The regions in topological order, each with its nodes in ADK's order.

    Args:
        graph: The workflow's graph.
        embedded: Nodes that the user embeds: neighbours among them share a region, and with them whatever lies on a way from
            one of them to another, since the tasks of a DAG cannot depend on each other in a circle.
    """
    names = [node.name for node in graph.nodes]
    edges = [(edge.source, edge.target) for edge in graph.edges if edge.source != START]
    region_of = {name: name for name in names}
    for source, target in edges:
        if source in embedded and target in embedded:
            _unite(region_of, source, target)
    between = [(region_of[source], region_of[target]) for source, target in edges]
    for group in _circles(set(region_of.values()), between):
        first = group[0]
        for other in group[1:]:
            _unite(region_of, first, other)
    members: dict[str, list[str]] = {}
    for name in names:
        members.setdefault(region_of[name], []).append(name)
    before: dict[str, dict[str, None]] = {region: {} for region in members}
    for source, target in edges:
        if region_of[source] != region_of[target]:
            before[region_of[target]][region_of[source]] = None
    return [tuple(members[region]) for region in TopologicalSorter(before).static_order()]


def is_loop(graph: Graph, region: Collection[str]) -> bool:
    """Whether edges inside the region lead in a circle."""
    inside = [(edge.source, edge.target) for edge in graph.edges if edge.source in region and edge.target in region]
    return any(source == target for source, target in inside) or bool(_circles(set(region), inside))


def _unite(region_of: dict[str, str], one: str, other: str) -> None:
    keep, gone = region_of[one], region_of[other]
    for name, region in region_of.items():
        if region == gone:
            region_of[name] = keep


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
