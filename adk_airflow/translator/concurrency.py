"""Which nodes of a workflow may run at once: read from its edges, without running anything."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from adk_airflow.translator.graph import START, Edge, Graph


class Concurrency:
    """Follows the ways that a run can be on at once.

    A run splits where a node has edges that fire together: several from START, plain ones, or some that share a route. The
    edges of a router that stand for different routes exclude each other, and so does all that only they lead to. A router that
    emits several routes in a list is known only when it runs: it is taken to emit one.

    Sets of nodes are integers with a bit for each, since a workflow may have hundreds of branches.
    """

    def __init__(self, graph: Graph) -> None:
        self._names = [START, *(node.name for node in graph.nodes)]
        self._place = {name: at for at, name in enumerate(self._names)}
        self._joins = {self._place[node.name] for node in graph.nodes if node.join}
        self._out: list[list[Edge]] = [[] for _ in self._names]
        self._in: list[list[Edge]] = [[] for _ in self._names]
        for edge in graph.edges:
            self._out[self._place[edge.source]].append(edge)
            self._in[self._place[edge.target]].append(edge)

    def at_once(self, one: str, other: str) -> bool:
        """Whether both may run at the same time; of one node: whether two triggers of it may wait at the same time."""
        return bool(self._beside[self._place[one]] >> self._place[other] & 1)

    def any_at_once(self, apart: dict[str, int]) -> bool:
        """Whether two nodes that are in different places, by ``apart``, may run at the same time."""
        masks: dict[int, int] = {}
        for name, place in apart.items():
            masks[place] = masks.get(place, 0) | 1 << self._place[name]
        return any(self._beside[self._place[name]] & ~masks[place] for name, place in apart.items())

    def fires_again(self, edge: Edge) -> bool:
        """Whether the edge may fire several times in a run: its node has several triggers, or goes round a loop as well."""
        source = self._place[edge.source]
        return bool(self._beside[source] >> source & 1) or self._goes_round(edge)

    def _goes_round(self, edge: Edge) -> bool:
        source = self._place[edge.source]
        return any(
            other is not edge and other.fires_with(edge) and self._after[self._place[other.target]] >> source & 1
            for other in self._out[source]
        )

    @cached_property
    def _after(self) -> list[int]:
        """For each node itself and those that its edges lead to, near or far."""
        after = [1 << at for at in range(len(self._names))]
        changed = True
        while changed:
            changed = False
            for at in reversed(range(len(self._names))):
                found = after[at]
                for edge in self._out[at]:
                    found |= after[self._place[edge.target]]
                changed |= found != after[at]
                after[at] = found
        return after

    @cached_property
    def _in_loop(self) -> int:
        """The nodes that an own edge leads back to."""
        return sum(
            1 << at
            for at in range(len(self._names))
            if any(self._after[self._place[edge.target]] >> at & 1 for edge in self._out[at])
        )

    def repeating(self) -> set[str]:
        """The nodes that may run several times in a run whatever is emitted, lists of routes too.

        Those in a loop, those with several ways in or behind such a node; a join, when all nodes before it may: of START, which
        it waits for once, it is given the input each time.
        """
        found = self._in_loop
        changed = True
        while changed:
            changed = False
            for at in range(1, len(self._names)):
                join = at in self._joins
                ways = [found >> self._place[edge.source] & 1 for edge in self._in[at] if not (join and edge.source == START)]
                repeats = bool(ways) and all(ways) if join else len(ways) > 1 or any(ways)
                if repeats and not found >> at & 1:
                    found |= 1 << at
                    changed = True
        return {name for at, name in enumerate(self._names) if found >> at & 1}

    @cached_property
    def _needed(self) -> list[int]:
        """For each node those that have run before it, whatever way the run took."""
        everything = (1 << len(self._names)) - 1
        needed = [0, *([everything] * (len(self._names) - 1))]
        changed = True
        while changed:
            changed = False
            for at in range(1, len(self._names)):
                sources = [self._place[edge.source] for edge in self._in[at]]
                found = 0 if at in self._joins else everything
                for source in sources:
                    way = needed[source] | 1 << source
                    found = found | way if at in self._joins else found & way
                changed |= found != needed[at]
                needed[at] = found
        return needed

    @cached_property
    def _beside(self) -> list[int]:
        """For each node those that may run at the same time as it."""
        beside = [0] * len(self._names)
        repeating: set[int] = set()

        def comes_before(one: int, join: int) -> bool:
            """Whether the join waits for it, and it does not run once more while the join does."""
            if join not in self._joins or join in repeating or not self._needed[join] >> one & 1:
                return False
            return not (beside[one] >> one & 1 or self._in_loop >> one & 1)

        def put(one: int, other: int) -> bool:
            new = not beside[one] >> other & 1 and not comes_before(one, other) and not comes_before(other, one)
            if new:
                beside[one] |= 1 << other
                beside[other] |= 1 << one
            return new

        changed = True
        while changed:
            changed = False
            for at, edges in enumerate(self._out):
                targets = [self._place[edge.target] for edge in edges]
                for number, edge in enumerate(edges):
                    for second in range(number):
                        if edge.fires_with(edges[second]):
                            changed |= put(targets[number], targets[second])
                for target in targets:
                    for other in _bits(beside[at] & ~beside[target]):
                        changed |= put(other, target)
            for join in self._joins - repeating:
                ways = [(self._place[edge.source], edge) for edge in self._in[join] if edge.source != START]
                if ways and all(beside[source] >> source & 1 or self._goes_round(edge) for source, edge in ways):
                    repeating.add(join)
                    changed |= put(join, join) or True
        return beside


def _bits(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
