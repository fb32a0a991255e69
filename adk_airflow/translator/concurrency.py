"""Which nodes of a workflow may run at once: read from its edges, without running anything."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from functools import cached_property, reduce
from operator import or_

from adk_airflow.translator.graph import START, Edge, Graph, Route


class Concurrency:
    """Follows the ways that a run can be on at once.

    A run splits where a node has edges that fire together: several from START, plain ones, or some that share a route. The
    edges of a router that stand for different routes exclude each other, and so does all that only they lead to. A router that
    emits several routes in a list is known only when it runs: it is taken to emit one.

    Sets of nodes are integers with a bit for each, and what is found of a node is found for all others at once: a workflow may
    have thousands of nodes. Each of the sets below grows until a round over all nodes, in the order of the edges where there is
    one, adds nothing; that takes a few rounds.
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
        self._targets = [[self._place[edge.target] for edge in edges] for edges in self._out]
        self._sources = [[self._place[edge.source] for edge in edges] for edges in self._in]
        self._order = list(self._along_the_edges())

    def _along_the_edges(self) -> Iterator[int]:
        """All places, each before those that its edges lead to, as far as no loop is in the way."""
        finished: list[int] = []
        seen: set[int] = set()
        for root in range(len(self._names)):
            if root in seen:
                continue
            seen.add(root)
            visits = [(root, iter(self._targets[root]))]
            while visits:
                at, targets = visits[-1]
                target = next((target for target in targets if target not in seen), None)
                if target is None:
                    finished.append(at)
                    visits.pop()
                else:
                    seen.add(target)
                    visits.append((target, iter(self._targets[target])))
        return reversed(finished)

    def at_once(self, one: str, other: str) -> bool:
        """Whether both may run at the same time; of one node: whether two triggers of it may wait at the same time."""
        return bool(self._beside[self._place[one]] >> self._place[other] & 1)

    def any_at_once(self, apart: Mapping[str, Hashable]) -> bool:
        """Whether two of these nodes that are in different places, by ``apart``, may run at the same time."""
        masks: dict[Hashable, int] = {}
        for name, place in apart.items():
            masks[place] = masks.get(place, 0) | 1 << self._place[name]
        everything = reduce(or_, masks.values(), 0)
        return any(self._beside[self._place[name]] & everything & ~masks[place] for name, place in apart.items())

    def fires_again(self, edge: Edge) -> bool:
        """Whether the edge may fire several times in a run: its node has several triggers, or goes round a loop as well."""
        source = self._place[edge.source]
        return bool(self._beside[source] >> source & 1) or self._goes_round(edge)

    def _goes_round(self, edge: Edge) -> bool:
        source = self._place[edge.source]
        return bool(self._in_loop >> source & 1) and any(
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
            for at in reversed(self._order):
                found = after[at]
                for target in self._targets[at]:
                    found |= after[target]
                changed |= found != after[at]
                after[at] = found
        return after

    @cached_property
    def _in_loop(self) -> int:
        """The nodes that an own edge leads back to."""
        return sum(
            1 << at for at in range(len(self._names)) if any(self._after[target] >> at & 1 for target in self._targets[at])
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
            for at in self._order:
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
            for at in self._order:
                if at == 0:
                    continue
                found = 0 if at in self._joins else everything
                for source in self._sources[at]:
                    way = needed[source] | 1 << source
                    found = found | way if at in self._joins else found & way
                changed |= found != needed[at]
                needed[at] = found
        return needed

    @cached_property
    def _beside(self) -> list[int]:
        """For each node those that may run at the same time as it."""
        count = len(self._names)
        together = [self._fire_together(at) for at in range(count)]
        before_joins = [self._needed[at] if at in self._joins else 0 for at in range(count)]
        joins_after = _turned(before_joins)
        waiting = sum(1 << join for join in self._joins)  # the joins that wait for all, each time that they run
        beside = [0] * count
        changed = True
        while changed:
            changed = False
            again = self._in_loop | sum(1 << at for at in range(count) if beside[at] >> at & 1)
            for at in self._order:
                for target, fire in zip(self._targets[at], together[at], strict=True):
                    # Not with what a join waits for, unless that runs once more while the join does.
                    apart = before_joins[target] & ~again if waiting >> target & 1 else 0
                    if not again >> target & 1:
                        apart |= joins_after[target] & waiting
                    found = beside[target] | (fire | beside[at]) & ~apart
                    changed |= found != beside[target]
                    beside[target] = found
            for join in self._joins:
                ways = [(source, edge) for source, edge in zip(self._sources[join], self._in[join], strict=True) if source]
                if waiting >> join & 1 and ways and all(beside[at] >> at & 1 or self._goes_round(edge) for at, edge in ways):
                    waiting ^= 1 << join
                    beside[join] |= 1 << join
                    changed = True
            if changed:
                beside = [one | other for one, other in zip(beside, _turned(beside), strict=True)]
        return beside

    def _fire_together(self, at: int) -> list[int]:
        """For each edge of a node the targets of the others that fire with it."""
        edges, targets = self._out[at], self._targets[at]
        if len(edges) == 1:
            return [0]
        of_plain, of_default, of_all = 0, 0, 0
        of_route: dict[Route, int] = {}
        several: dict[int, list[Edge]] = {}
        for edge, target in zip(edges, targets, strict=True):
            of_all |= 1 << target
            of_plain |= (1 << target) * edge.plain
            of_default |= (1 << target) * edge.default
            several.setdefault(target, []).append(edge)
            for route in edge.routes:
                of_route[route] = of_route.get(route, 0) | 1 << target
        found = []
        for edge, target in zip(edges, targets, strict=True):
            fire = of_all if edge.plain else reduce(or_, (of_route[route] for route in edge.routes), of_plain)
            fire |= of_default * edge.default
            own = any(other is not edge and edge.fires_with(other) for other in several[target])
            found.append(fire & ~(1 << target) | own << target)
        return found


def _turned(rows: list[int]) -> list[int]:
    """The matrix of bits with rows for columns: bit ``i`` of number ``k`` is bit ``k`` of number ``i``.

    Quarters of the matrix change places, then quarters of these, until they are single bits: each step over whole rows.
    """
    size = 1 << (len(rows) - 1).bit_length() if rows else 0
    matrix = [*rows, *[0] * (size - len(rows))]
    half = size // 2
    while half:
        low = (1 << half) - 1  # the right half of each quarter, all along a row
        width = 2 * half
        while width < size:
            low |= low << width
            width *= 2
        for first in range(0, size, 2 * half):
            for at in range(first, first + half):
                upper, lower = matrix[at], matrix[at + half]
                swapped = (upper >> half ^ lower) & low
                matrix[at], matrix[at + half] = upper ^ swapped << half, lower ^ swapped
        half //= 2
    return matrix[: len(rows)]
