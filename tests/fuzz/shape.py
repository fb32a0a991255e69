"""Where a run as tasks may differ from ADK: read from the plan's warnings and the shape of the graph."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import cached_property
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import Any

from tests.fuzz.code import build
from tests.fuzz.graphs import DEFAULT, START, Edge, Flow, Loop, Node, everywhere

# The warnings of the plan, which docs/differences.md explains.
FAILURE = "no-cancel-on-failure"
STATE = "state-between-branches"
PAIRING = "join-pairing"
RUN_ORDER = "run-order"


class Shape:
    """The tasks of a workflow, which of them waits for which, and what follows from that.

    A unit is a task, or the three tasks of a parallel worker. A nested workflow that is a task group has a unit for its input,
    one for its output, and those of its nodes between them.

    Attributes:
        unit_of: For each node, nested ones too, the unit that it runs in; of a task group, its output.
        path_of: For each node, its path: the names of the workflows that it is in and its own, with slashes.
        before: For each unit, the units that it waits for directly, in the order in which it reads them.
    """

    def __init__(self, flow: Flow) -> None:
        from adk_airflow.translator import plan_workflow

        self.flow = flow
        self.plan = plan_workflow(build(flow), nodes={name: dict(given) for name, given in flow.overrides.items()})
        self.warnings = {text.partition(":")[0] for text in self._warnings_of_lists()}
        self.unit_of: dict[str, str] = {}
        self.path_of: dict[str, str] = {}
        self.before: dict[str, list[str]] = {}
        self.mapped = {_unit(task.task_id) for task in self.plan.tasks if task.kind == "item"}
        self.regions = {task.task_id for task in self.plan.tasks if task.kind == "region"}
        self._gates: dict[str, list[str]] = {}
        self._read(flow, "", None)

    def _read(self, flow: Flow, prefix: str, given: str | None) -> None:
        entries: dict[str, str] = {} if given is None else {START: given}
        exits = dict(entries)
        for node in flow.nodes:
            path = f"{prefix}{node.name}"
            for inner, inner_path in _with_paths(node, path):
                self.path_of[inner.name] = inner_path
            entry, end = _unit(self.plan.first_tasks[path]), _unit(self.plan.output_tasks[path])
            entries[node.name], exits[node.name] = entry, end
            for unit in (entry, end):
                self.before.setdefault(unit, [])
            for inner in everywhere(node):
                self.unit_of[inner.name] = end
        for edge in flow.edges:
            source, target = exits.get(edge.source), entries[edge.target]
            if source is not None and source != target and source not in self.before[target]:
                self.before[target].append(source)
        for node in flow.nodes:
            if node.inner is not None and entries[node.name] != exits[node.name]:
                self._read(node.inner, f"{prefix}{node.name}/", entries[node.name])
                sources = {edge.source for edge in node.inner.edges}
                ends = [inner.name for inner in node.inner.nodes if inner.name not in sources]
                last = [self.unit_of[name] for name in ends or [inner.name for inner in node.inner.nodes]]
                self.before[exits[node.name]] = list(dict.fromkeys([entries[node.name], *last]))
                self._gates[exits[node.name]] = list(dict.fromkeys(last))

    def _warnings_of_lists(self) -> list[str]:
        """The plan's warnings, if it knew which nodes emit several routes in a list (see docs/differences.md)."""
        from adk_airflow.translator import plan_workflow

        known = build(_with_lists_on_edges(self.flow))
        given = {name: dict(given) for name, given in self.flow.overrides.items()}
        return [*self.plan.warnings, *plan_workflow(known, nodes=given).warnings]

    def units(self, tasks: Collection[str]) -> set[str]:
        """The units of tasks; the task that picks the workflow's output is none."""
        return {_unit(task) for task in tasks} & self.before.keys()

    @cached_property
    def after(self) -> dict[str, set[str]]:
        """For each unit, those that wait for it, near or far."""
        return {unit: {other for other in self.before if unit in _reach(self.before, other)} for unit in self.before}

    def shared_keys(self) -> set[str]:
        """The state keys that one task writes and another, or another item of a worker, uses beside it in ADK."""
        nodes = [inner for node in self.flow.nodes for inner in everywhere(node)]
        return {
            key
            for writer in nodes
            for key in written(writer)
            if any(key in (*written(user), *user.reads) and self._beside(writer, user) for user in nodes)
        }

    def _beside(self, one: Node, other: Node) -> bool:
        unit, other_unit = self.unit_of[one.name], self.unit_of[other.name]
        if unit == other_unit:
            return unit in self.mapped
        if other_unit in self.after[unit]:
            return unit in self.regions  # ADK runs what it hands on while the region goes on
        if unit in self.after[other_unit]:
            return other_unit in self.regions
        return True

    def paired_joins(self) -> set[str]:
        """The outermost nodes that are, or hold, the joins that the plan names in its warnings."""
        joins = {text.split("'")[1] for text in self._warnings_of_lists() if text.startswith(PAIRING)}
        return {self.path_of[name].partition("/")[0] for name in joins}

    def ends(self, *, last: str = "", failed: Collection[str] = ()) -> dict[str, float]:
        """For each node the place of its unit when one unit runs after another, in the order in which they are read.

        Args:
            last: This unit fails: all that waits for none of ``failed`` comes before it, all else after it.
            failed: The units that failed.
        """
        before = {unit: set(sources) for unit, sources in self.before.items()}

        def put(first: str, second: str) -> None:
            for gate in self._gates.get(second, [second]):
                if first != gate and gate not in _reach(before, first):
                    before[gate].add(first)

        if last:
            lost = {other for unit in failed for other in self.after[unit]}
            for unit in self.before:
                if unit != last:
                    put(*((last, unit) if unit in lost else (unit, last)))
        for sources in self.before.values():
            for first, second in pairwise(sources):
                put(first, second)
        place = {unit: at for at, unit in enumerate(TopologicalSorter(before).static_order(), start=1)}
        return {name: float(place[unit]) for name, unit in self.unit_of.items()}


def written(node: Node) -> list[str]:
    """The state keys that a node itself writes."""
    keys = [write.key for write in node.writes]
    keys += ["got_" + node.name] if node.kind == "wait" else []
    return keys + (["round_" + node.name] if isinstance(node.route, Loop) else [])


def _with_lists_on_edges(flow: Flow) -> Flow:
    """The workflow in which all edges that one list of routes fires have a route in common."""

    def edge(given: Edge) -> Edge:
        if given.source == START or given.route in (None, DEFAULT):
            return given
        own = given.route if isinstance(given.route, tuple) else (given.route,)
        lists = [emitted for emitted in _emitted(flow[given.source]) if isinstance(emitted, (tuple, list))]
        shared = tuple(f"with {emitted!r}" for emitted in lists if set(emitted) & set(own))
        return replace(given, route=(*own, *shared)) if shared else given

    nodes = tuple(node if node.inner is None else replace(node, inner=_with_lists_on_edges(node.inner)) for node in flow.nodes)
    return replace(flow, nodes=nodes, edges=tuple(edge(given) for given in flow.edges))


def _emitted(node: Node) -> tuple[Any, ...]:
    """All that a node may emit as its route."""
    if node.route is None:
        return ()
    if isinstance(node.route, Loop):
        return (node.route.again, node.route.done)
    how, given = node.route
    return tuple(given) if how == "input" else (given,)


def _unit(task_id: str) -> str:
    group, _, name = task_id.rpartition(".")
    return group if name in ("items", "run", "collect") else task_id


def _with_paths(node: Node, path: str) -> Iterator[tuple[Node, str]]:
    yield node, path
    if node.inner is not None:
        for inner in node.inner.nodes:
            yield from _with_paths(inner, f"{path}/{inner.name}")


def _reach(before: dict[str, list[str]] | dict[str, set[str]], unit: str) -> set[str]:
    """The units before one, near or far."""
    found: set[str] = set()
    todo = [unit]
    while todo:
        for other in before[todo.pop()]:
            if other not in found:
                found.add(other)
                todo.append(other)
    return found
