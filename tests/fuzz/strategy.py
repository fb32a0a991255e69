"""A Hypothesis strategy for random workflows, 2 to 25 nodes, that google-adk accepts and that end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.graphs import DEFAULT, START, Edge, Flow, Loop, Node, Write, most_runs

# A node that several triggers reach runs for each, and so does everything after it: without a limit that doubles and doubles.
MOST_RUNS_OF_A_NODE = 6

_ROUTES = ("x", "y", "1", 1, 2, True, False, 0)
_VALUES: tuple[Any, ...] = (
    None,
    0,
    "",
    False,
    [],
    {},
    7,
    "text",
    True,
    0.5,
    [1, None, "a"],
    [3],
    {"b": 1, "a": [None]},
    (1, "t"),
    [[1], []],
)
_ITEMS = (None, 0, "", False, 1, 2, "a", True)
_SHARED = ("k1", "k2", "app:k3", "temp:k4")
_ERRORS = ("ValueError", "KeyError", "RuntimeError")
_TEXTS = ("go", "", "7", "[1, 2, null]", '{"a": 1}')


@st.composite
def flows(draw: st.DrawFn, most_nodes: int = 25) -> Flow:
    """Draws a workflow.

    Args:
        most_nodes: How many nodes it has at most, those of nested workflows left out.
    """
    size = draw(st.integers(2, draw(st.integers(2, most_nodes))))  # small ones more often: they say more for their time
    habits = _Habits(
        shares_state=draw(_one_in(5)),
        failures=draw(st.sampled_from((0,) * 7 + (1, 1, 2))),
        branches=draw(st.booleans()),
    )
    nodes, edges = _graph(draw, size, "n", habits, depth=0)
    flow = Flow(
        "wf",
        tuple(nodes),
        tuple(edges),
        text=draw(st.sampled_from(_TEXTS)),
        state=draw(st.sampled_from(({}, {}, {"k1": "given"}, {"k2": [], "app:k3": 0}))),
        at_once=draw(st.sampled_from((None,) * 8 + (1, 2))),
    )
    return replace(flow, overrides=_overrides(draw, flow))


class _Habits:
    """What is the same for all nodes of a workflow, so that not every one of them has a little of everything."""

    def __init__(self, *, shares_state: bool, failures: int, branches: bool) -> None:
        self.shares_state = shares_state
        self.failures = failures
        self.branches = branches


def _one_in(n: int) -> st.SearchStrategy[bool]:
    return st.sampled_from((False,) * (n - 1) + (True,))


def _graph(draw: st.DrawFn, size: int, prefix: str, habits: _Habits, depth: int) -> tuple[list[Node], list[Edge]]:
    failing = set(draw(st.lists(st.integers(0, size - 1), max_size=habits.failures, unique=True))) if habits.failures else set()
    nodes = [_node(draw, f"{prefix}{at + 1}", at in failing, habits, depth) for at in range(size)]
    edges: list[Edge] = []
    for at, node in enumerate(nodes):
        for source in _sources(draw, at, node, habits):
            name = START if source < 0 else nodes[source].name
            edges.append(Edge(name, node.name, _edge_route(draw, nodes[source]) if source >= 0 else None))
    edges += _second_edges(draw, nodes, edges)
    if draw(_one_in(3)):
        nodes, edges = _with_loop(draw, nodes, edges)
    if draw(_one_in(4)):
        edges = draw(st.permutations(edges))
    nodes = _limited(nodes, edges)
    return nodes if draw(_one_in(4)) else _with_one_end(nodes, edges), edges


def _sources(draw: st.DrawFn, at: int, node: Node, habits: _Habits) -> list[int]:
    """The places of the nodes before it, -1 for START; the one before it is the likeliest."""
    if at == 0:
        return [-1]
    starts = (-1,) if habits.branches or node.kind == "join" else ()
    near = st.sampled_from((at - 1,) * 3 + tuple(range(max(0, at - 4), at)) + starts)
    most = 3 if node.kind in ("join", "wait") else 2 if draw(_one_in(4)) else 1
    least = min(2, at) if node.kind == "join" else 1
    return sorted(draw(st.lists(near, min_size=least, max_size=max(least, most), unique=True)))


def _edge_route(draw: st.DrawFn, source: Node) -> Any:
    if source.route is None:
        # Now and then a route that is never emitted, or a default that is always taken.
        return draw(st.sampled_from((None,) * 30 + (DEFAULT, DEFAULT, "x")))
    how, given = source.route
    values = given if how == "input" or isinstance(given, tuple) else (given,)
    likely = [route for route in values if route is not None] or ["x"]
    one = st.sampled_from(likely * 8 + list(_ROUTES))
    several = st.lists(one, min_size=2, max_size=3, unique_by=lambda route: hash(route)).map(tuple)
    return draw(st.one_of(one, st.sampled_from((None, DEFAULT)), several))


def _second_edges(draw: st.DrawFn, nodes: list[Node], edges: list[Edge]) -> list[Edge]:
    """Second edges between the same two nodes, with another route."""
    return [
        Edge(edge.source, edge.target, DEFAULT)
        for edge in edges
        if edge.route not in (None, DEFAULT) and edge.source != START and draw(_one_in(8))
    ]


def _with_loop(draw: st.DrawFn, nodes: list[Node], edges: list[Edge]) -> tuple[list[Node], list[Edge]]:
    """Makes one node decide whether to go round again from itself or from a node before it."""
    ends = [at for at, node in enumerate(nodes) if node.kind == "function" and node.route is None and not node.fails]
    if not ends:
        return nodes, edges
    end = draw(st.sampled_from(ends))
    plain = Flow("", tuple(nodes), tuple(edges))
    heads = [
        at for at in range(end + 1)
        if (at == end or nodes[end].name in plain.after([nodes[at].name])) and nodes[at].kind != "join"
    ]  # fmt: skip
    head = draw(st.sampled_from(heads))
    again, done = draw(st.sampled_from((("again", "done"), (True, False), (1, 2), ("again", None))))
    name = nodes[end].name
    nodes = [*nodes]
    nodes[end] = replace(nodes[end], route=Loop(draw(st.integers(2, 3)), again, done))
    leaving = done if done is not None else DEFAULT
    routes = st.sampled_from((leaving,) * 4 + (DEFAULT, None))
    edges = [replace(edge, route=draw(routes)) if edge.source == name else edge for edge in edges]
    first = {(edge.source, edge.target): edge for edge in reversed(edges)}
    edges = [edge for edge in edges if first[edge.source, edge.target] is edge]
    return nodes, [*edges, Edge(name, nodes[head].name, again)]


def _with_one_end(nodes: list[Node], edges: list[Edge]) -> list[Node]:
    """Lets all last nodes but one end without output, so that the workflow has one."""
    sources = {edge.source for edge in edges}
    ends = [node.name for node in nodes if node.name not in sources]
    silent = ("value", None)
    return [replace(node, output=silent) if node.name in ends[:-1] and node.kind == "function" else node for node in nodes]


def _limited(nodes: list[Node], edges: list[Edge]) -> list[Node]:
    """Turns nodes that would run too often into joins."""
    for at, node in enumerate(nodes):
        flow = Flow("", tuple(nodes), tuple(edges))
        if most_runs(flow)[node.name] > MOST_RUNS_OF_A_NODE and node.route is None:
            nodes[at] = Node(node.name, "join")
    return nodes


def _node(draw: st.DrawFn, name: str, fails: bool, habits: _Habits, depth: int) -> Node:
    kinds = ("function",) * 8 + ("join",) * 2 + ("worker",) * 2 + ("wait",) + (("workflow",) if depth == 0 else ())
    kind = "function" if fails and draw(st.booleans()) else draw(st.sampled_from(kinds))
    if kind == "join":
        return Node(name, kind)
    if kind == "wait":
        return Node(name, kind, want=draw(st.integers(1, 3)))
    inner = None
    if kind == "workflow" or (kind == "worker" and depth == 0 and draw(_one_in(5))):
        inside = _Habits(shares_state=habits.shares_state, failures=int(fails), branches=False)
        nodes, edges = _graph(draw, draw(st.integers(1, 4)), f"{name}_", inside, depth + 1)
        inner = Flow(name, tuple(nodes), tuple(edges))
    if inner is not None:
        return Node(name, kind, inner=inner, limit=draw(st.sampled_from((None, 2))) if kind == "worker" else None)
    node = Node(name, kind, writes=_writes(draw, name, kind, habits), reads=_reads(draw, name, habits))
    if draw(_one_in(8)):
        node = replace(node, attempts=2)
    if kind == "worker":
        output = draw(st.sampled_from(("trace", "trace", "same", ("value", None))))
        node = replace(node, output=output, limit=draw(st.sampled_from((None, None, 1, 2))))
        return replace(node, fails=draw(st.sampled_from(_ERRORS)), bad=draw(st.sampled_from(_ITEMS))) if fails else node
    values = st.sampled_from(_VALUES).map(lambda value: ("value", value))
    items = st.lists(st.sampled_from(_ITEMS), max_size=4).map(lambda value: ("value", value))
    output = draw(st.one_of(st.just("trace"), values, st.just("trace"), items))
    return replace(
        node,
        style=draw(st.sampled_from(("plain", "plain", "async", "generator"))),
        output=output,
        route=None if fails else draw(_emitted()),
        fails=draw(st.sampled_from(_ERRORS)) if fails else "",
    )


def _emitted() -> st.SearchStrategy[Any]:
    """What a node emits as its route."""
    one = st.sampled_from(_ROUTES)
    several = st.lists(one, min_size=1, max_size=3, unique_by=lambda route: hash(route)).map(tuple)
    by_input = st.lists(st.one_of(one, st.none()), min_size=2, max_size=3).map(lambda routes: ("input", tuple(routes)))
    value = st.one_of(one, several).map(lambda route: ("value", route))
    return st.one_of(st.none(), st.none(), st.none(), value, by_input)


def _writes(draw: st.DrawFn, name: str, kind: str, habits: _Habits) -> tuple[Write, ...]:
    if not draw(_one_in(3)):
        return ()
    key = draw(st.sampled_from(_SHARED)) if habits.shares_state and draw(st.booleans()) else f"of_{name}"
    ways = ("name", "name", "input", "append", "count") if kind == "function" else ("name", "name", "name", "count")
    return (Write(key, draw(st.sampled_from(ways))),)


def _reads(draw: st.DrawFn, name: str, habits: _Habits) -> tuple[str, ...]:
    if not draw(_one_in(4)):
        return ()
    prefix, number = name.rstrip("0123456789"), int(name[len(name.rstrip("0123456789")) :])
    earlier = tuple(f"of_{prefix}{n}" for n in range(1, number))
    shared = _SHARED if habits.shares_state else ()
    keys = earlier + shared
    return tuple(draw(st.lists(st.sampled_from(keys), max_size=2, unique=True))) if keys else ()


def _overrides(draw: st.DrawFn, flow: Flow) -> Mapping[str, Mapping[str, Any]]:
    """Now and then nodes that are embedded, in nested workflows too, or workers whose items come in batches."""
    workflows = [(node.name, node.inner) for node in flow.nodes if node.kind == "workflow" and node.inner]
    if draw(_one_in(3 if workflows else 8)):
        nested = [f"{name}/{node.name}" for name, inner in workflows for node in inner.nodes]
        paths = st.sampled_from([node.name for node in flow.nodes] + nested * 2)
        return {path: {"mode": "embedded"} for path in draw(st.lists(paths, min_size=1, max_size=4, unique=True))}
    return {
        node.name: {"batch_size": draw(st.integers(1, 3))}
        for node in flow.nodes
        # A worker in a loop runs in the loop's task, all items at once.
        if node.kind == "worker" and node.name not in flow.after([node.name]) and draw(_one_in(3))
    }
