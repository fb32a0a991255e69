"""The plan of random graphs, against the definitions of what it says, written down as they are, however long they take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from adk_airflow.translator.build import Builder
from adk_airflow.translator.graph import START, Edge, Graph, Node
from adk_airflow.translator.regions import find_regions, is_loop
from adk_airflow.translator.rules import make_plan

ROUTES = st.sampled_from([(), (), ("x",), ("y",), ("x", "y"), (1,), (True, "z")])


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A workflow of up to eight nodes with any edges, all of which START reaches."""
    count = draw(st.integers(1, 8))
    names = draw(st.permutations([f"n{at}" for at in range(count)]))
    nodes = [
        Node(name, "join", "join", join=True) if draw(st.booleans()) else Node(name, "function", "function") for name in names
    ]
    edges = [Edge(START, names[0])]
    for at, name in enumerate(names[1:], 1):
        source = draw(st.sampled_from([START, *names[:at]]))
        edges.append(_edge(draw, source, name))
    for _ in range(draw(st.integers(0, count))):
        edges.append(_edge(draw, draw(st.sampled_from(names)), draw(st.sampled_from(names))))
    return Graph("wf", "", tuple(nodes), tuple(dict.fromkeys(draw(st.permutations(edges)))))


def _edge(draw: st.DrawFn, source: str, target: str) -> Edge:
    if source == START:
        return Edge(source, target)
    routes = draw(ROUTES)
    return Edge(source, target, routes, default=not routes and draw(st.booleans()))


def after(graph: Graph, names: Iterable[str]) -> set[str]:
    """What edges of these nodes lead to, near or far."""
    found: set[str] = set()
    while new := {edge.target for edge in graph.edges if edge.source in {*names, *found}} - found:
        found |= new
    return found


# -- regions -------------------------------------------------------------------------------------------------


@given(graphs(), st.data())
def test_nodes_that_reach_each_other_are_a_region_and_regions_come_in_the_order_of_the_edges(
    graph: Graph, data: st.DataObject
) -> None:
    names = [node.name for node in graph.nodes]
    regions = find_regions(graph)
    place = {name: at for at, region in enumerate(regions) for name in region}

    assert sorted(place) == sorted(names)
    for one, other in combinations(names, 2):
        assert (place[one] == place[other]) == (other in after(graph, [one]) and one in after(graph, [other]))
    assert all(edge.source == START or place[edge.source] <= place[edge.target] for edge in graph.edges)
    assert [is_loop(graph, region) for region in regions] == [region[0] in after(graph, region[:1]) for region in regions]
    assert all(sorted(region, key=names.index) == list(region) for region in regions)


@given(graphs(), st.data())
def test_embedded_neighbours_share_a_region_with_all_that_is_between_them(graph: Graph, data: st.DataObject) -> None:
    names = [node.name for node in graph.nodes]
    embedded = data.draw(st.sets(st.sampled_from(names)))
    place = {name: at for at, region in enumerate(find_regions(graph, embedded=embedded)) for name in region}

    assert all(place[edge.source] == place[edge.target] for edge in graph.edges if {edge.source, edge.target} <= embedded)
    assert all(edge.source == START or place[edge.source] <= place[edge.target] for edge in graph.edges)


# -- what may run at once ------------------------------------------------------------------------------------


def needed(graph: Graph) -> dict[str, set[str]]:
    """For each node those that have run before it, whatever way the run took: the largest sets that fit the edges."""
    names = [node.name for node in graph.nodes]
    found: dict[str, set[str]] = {START: set(), **{name: {START, *names} for name in names}}
    while True:
        new = {START: set[str]()}
        for node in graph.nodes:
            ways = [{edge.source, *found[edge.source]} for edge in graph.edges if edge.target == node.name]
            new[node.name] = set.union(*ways) if node.join else set.intersection(*ways)
        if new == found:
            return found
        found = new


def at_once(graph: Graph) -> set[frozenset[str]]:
    """The pairs that may run at once; one of a single name for a node with several triggers: the least set that fits."""
    joins = {node.name for node in graph.nodes if node.join}
    before = needed(graph)
    in_loop = {node.name for node in graph.nodes if node.name in after(graph, [node.name])}
    found: set[frozenset[str]] = set()
    again: set[str] = set()

    def goes_round(edge: Edge) -> bool:
        others = [other for other in graph.edges if other.source == edge.source and other != edge and other.fires_with(edge)]
        return any(edge.source in {other.target, *after(graph, [other.target])} for other in others)

    def waits(join: str, other: str) -> bool:
        if join not in joins or join in again or other not in before[join]:
            return False
        return frozenset([other]) not in found and other not in in_loop

    def candidates() -> Iterator[frozenset[str]]:
        for one, other in combinations(graph.edges, 2):
            if one.source == other.source and one.fires_with(other):
                yield frozenset([one.target, other.target])
        for pair in list(found):
            for name in pair:
                (other,) = pair - {name} or {name}
                for edge in graph.edges:
                    if edge.source == name:
                        yield frozenset([edge.target, other])
        for name in again:
            yield frozenset([name])

    while True:
        new = {pair for pair in candidates() if not waits(min(pair), max(pair)) and not waits(max(pair), min(pair))} - found
        ways = {join: [edge for edge in graph.edges if edge.target == join and edge.source != START] for join in joins - again}
        more = {
            join
            for join, edges in ways.items()
            if edges and all(frozenset([edge.source]) in found or goes_round(edge) for edge in edges)
        }
        if not new and not more:
            return found
        found |= new
        again |= more


@settings(max_examples=300)
@given(graphs())
def test_nodes_run_at_once_where_the_definition_says(graph: Graph) -> None:
    names = [node.name for node in graph.nodes]
    expected = at_once(graph)

    for one in names:
        for other in names:
            assert graph.concurrency.at_once(one, other) == (frozenset([one, other]) in expected)
    pairs = [pair for pair in combinations(names, 2) if frozenset(pair) in expected]
    assert graph.concurrency.any_at_once({name: name for name in names}) == bool(pairs)
    assert not graph.concurrency.any_at_once(dict.fromkeys(names, "one place"))


# -- what a task is told -------------------------------------------------------------------------------------


@given(graphs())
def test_a_task_is_told_its_predecessors_and_what_it_alone_triggers(graph: Graph) -> None:
    plan = make_plan(graph, mode="tasks", nodes={})
    builder = Builder(plan, "wf", "app", "group.", {}, {})
    started = {edge.target for edge in graph.edges if edge.source == START}
    looping = {name for task in plan.tasks if task.kind == "region" for name in task.nodes}
    entered = started | {name for task in plan.tasks if task.starts for name in [task.node]}

    for task in plan.tasks:
        if task.kind == "result":
            continue
        own = set(task.nodes if task.kind == "region" else [task.node])
        before = [edge.source for edge in graph.edges if edge.target in own and edge.source not in {START, *own}]
        assert [upstream.task_id for upstream in task.upstream] == list(
            dict.fromkeys(plan.output_tasks[name] for name in before)
        )
        spec = builder.spec(task)
        assert spec.output_tasks == {name: f"group.{task_id}" for name, task_id in plan.output_tasks.items()}
        only = {
            node.name
            for node in graph.nodes
            if {edge.source for edge in graph.edges if edge.target == node.name} <= own
            and node.name not in own | looping | entered
        }
        assert spec.skips == {name: f"group.{plan.first_tasks[name]}" for name in only}
