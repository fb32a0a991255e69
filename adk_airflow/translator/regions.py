"""Divides a Graph into regions: the nodes that run together in one task.

The smallest is a single node; others are a loop, or neighbours that the user embeds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from graphlib import TopologicalSorter

from adk_airflow.translator.graph import START, Graph


def find_regions(graph: Graph, *, embedded: Collection[str] = ()) -> list[tuple[str, ...]]:
    """The regions in topological order, each with its nodes in ADK's order.

    Args:
        graph: The workflow's graph.
        embedded: Nodes that the user embeds: neighbours among them share a region, and with them whatever lies on a way from
            one of them to another, since the tasks of a DAG cannot depend on each other in a circle.
    """
    names, embedded = [node.name for node in graph.nodes], set(embedded)
    edges = [(edge.source, edge.target) for edge in graph.edges if edge.source != START]
    groups = _Groups(names)
    for source, target in edges:
        if source in embedded and target in embedded:
            groups.unite(source, target)
    for circle in _circles(dict.fromkeys((groups[source], groups[target]) for source, target in edges)):
        for other in circle[1:]:
            groups.unite(circle[0], other)
    region_of = {name: groups[name] for name in names}
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
    names = set(region)
    edges = ((edge.source, edge.target) for name in region for edge in graph.edges_from(name) if edge.target in names)
    inside = dict.fromkeys(edges)
    return any(source == target for source, target in inside) or bool(_circles(inside))


class _Groups:
    """Names in groups, each called by the name of one of its members."""

    def __init__(self, names: Iterable[str]) -> None:
        self._leads_to = {name: name for name in names}

    def __getitem__(self, name: str) -> str:
        while (above := self._leads_to[name]) != name:
            self._leads_to[name] = self._leads_to[above]
            name = above
        return name

    def unite(self, one: str, other: str) -> None:
        self._leads_to[self[other]] = self[one]


def _circles(edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    """The groups of two or more nodes that all reach each other (Tarjan's strongly connected components)."""
    following: dict[str, list[str]] = {}
    for source, target in edges:
        following.setdefault(source, []).append(target)
    found: list[list[str]] = []
    number: dict[str, int] = {}  # in the order of the visit
    least: dict[str, int] = {}  # the first node of the way that is reached from here
    way: list[str] = []
    on_way: set[str] = set()
    for root in following:
        if root in number:
            continue
        visits = [(root, iter(following[root]))]
        number[root] = least[root] = len(number)
        way.append(root)
        on_way.add(root)
        while visits:
            node, targets = visits[-1]
            for target in targets:
                if target not in number:
                    number[target] = least[target] = len(number)
                    way.append(target)
                    on_way.add(target)
                    visits.append((target, iter(following.get(target, ()))))
                    break
                if target in on_way:
                    least[node] = min(least[node], number[target])
            else:
                visits.pop()
                if visits:
                    least[visits[-1][0]] = min(least[visits[-1][0]], least[node])
                if least[node] == number[node]:
                    group = [way.pop()]
                    while group[-1] != node:
                        group.append(way.pop())
                    on_way.difference_update(group)
                    if len(group) > 1:
                        found.append(group)
    return found
