"""What a random workflow is made of: plain data, small enough to be drawn and shrunk."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

START = "START"
DEFAULT = "DEFAULT_ROUTE"


@dataclass(frozen=True)
class Write:
    """A write to ``ctx.state``.

    Attributes:
        key: The key.
        how: ``name`` (the node's name), ``input`` (what the node got), ``append`` (its name to a list) or ``count`` (one more).
    """

    key: str
    how: str = "name"


@dataclass(frozen=True)
class Loop:
    """How a node decides whether to go round again: until its counter in state reaches ``limit``."""

    limit: int
    again: Any = "again"
    done: Any = "done"


@dataclass(frozen=True)
class Node:
    """A node.

    Attributes:
        name: Its name, unique in the whole workflow, nested ones included.
        kind: ``function``, ``join``, ``worker`` (a parallel worker), ``workflow`` (nested) or ``wait`` (``wait_for_output``).
        style: Of a function: ``plain``, ``async`` or ``generator``.
        output: ``trace`` (its name and what it got and read), ``same`` (its input), or ``("value", x)``.
        reads: State keys that it reads into its trace.
        writes: What it writes to state.
        route: None, ``("value", route)``, ``("input", (routes...))`` (one of them, by what it got), or a Loop.
        fails: Name of the exception that it raises, after its writes; a worker raises it for the items that are ``bad``.
        bad: For a worker that fails: the item that it cannot take.
        attempts: It fails before that attempt and has a ``retry_config`` when more than 1.
        limit: For a worker: ``max_parallel_workers``.
        want: For a wait: how many triggers it waits for.
        inner: For a workflow, or a worker over one: that workflow.
    """

    name: str
    kind: str = "function"
    style: str = "plain"
    output: Any = "trace"
    reads: tuple[str, ...] = ()
    writes: tuple[Write, ...] = ()
    route: Any = None
    fails: str = ""
    bad: Any = None
    attempts: int = 1
    limit: int | None = None
    want: int = 1
    inner: Flow | None = None


@dataclass(frozen=True)
class Edge:
    """An edge: plain, with a route, with several (a tuple), or with ``DEFAULT``."""

    source: str
    target: str
    route: Any = None


@dataclass(frozen=True)
class Flow:
    """A workflow.

    Attributes:
        name: Its name.
        nodes: Its nodes; an edge leads from an earlier to a later one, loops aside.
        edges: Its edges in ADK's order.
        text: The user message.
        state: The initial session state.
        at_once: ``max_concurrency``.
        overrides: For the run as tasks: ``nodes=`` of ``AdkDag``, by path.
    """

    name: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    text: str = "go"
    state: Mapping[str, Any] = field(default_factory=dict)
    at_once: int | None = None
    overrides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Node:
        return next(node for node in self.nodes if node.name == name)

    def after(self, names: Collection[str]) -> set[str]:
        """The nodes that edges lead to from ``names``, near or far."""
        found: set[str] = set()
        todo = list(names)
        while todo:
            name = todo.pop()
            for edge in self.edges:
                if edge.source == name and edge.target not in found:
                    found.add(edge.target)
                    todo.append(edge.target)
        return found


def everywhere(node: Node) -> Iterator[Node]:
    """The node and, for a nested workflow, all nodes in it."""
    yield node
    if node.inner is not None:
        for inner in node.inner.nodes:
            yield from everywhere(inner)


def all_nodes(flow: Flow) -> list[Node]:
    """The nodes of the workflow and of all workflows in it."""
    return [inner for node in flow.nodes for inner in everywhere(node)]


def change(flow: Flow, alter: Any) -> Flow:
    """The workflow with every node, nested ones too, replaced by ``alter(node)``."""

    def altered(node: Node) -> Node:
        node = alter(node)
        return node if node.inner is None else replace(node, inner=change(node.inner, alter))

    return replace(flow, nodes=tuple(altered(node) for node in flow.nodes))


def without(flow: Flow, names: Collection[str]) -> Flow:
    """The workflow without some nodes, their edges, and whatever is then out of reach."""
    edges = [edge for edge in flow.edges if edge.source not in names and edge.target not in names]
    left = replace(flow, edges=tuple(edges))
    reached = left.after([START])
    return replace(
        left,
        nodes=tuple(node for node in flow.nodes if node.name in reached),
        edges=tuple(edge for edge in edges if edge.target in reached and edge.source in {START, *reached}),
        overrides={path: given for path, given in flow.overrides.items() if path.partition("/")[0] in reached},
    )


def most_runs(flow: Flow) -> dict[str, int]:
    """For each node how often it runs at most; START counts as one run.

    A loop's node decides with a counter in state, so that it goes round ``limit - 1`` times in all.
    """
    runs = {START: 1}
    place = {node.name: at for at, node in enumerate(flow.nodes)}
    for node in flow.nodes:
        ways: dict[str, int] = {}
        rounds = 0
        for edge in flow.edges:
            if edge.target == node.name:
                if edge.source == START or place[edge.source] < place[node.name]:
                    ways[edge.source] = ways.get(edge.source, 0) + runs[edge.source]
                else:
                    rounds += flow[edge.source].route.limit - 1
        counts = ways.values()
        runs[node.name] = (min(counts, default=0) if node.kind == "join" else sum(counts)) + rounds
    return runs
