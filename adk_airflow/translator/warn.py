"""What can differ from one ADK process for a graph; ``docs/differences.md`` explains each."""

from __future__ import annotations

from collections.abc import Sequence

from adk_airflow.translator.graph import START, Graph


def warnings_for(graph: Graph, regions: Sequence[tuple[str, ...]]) -> list[str]:
    """What this graph, divided into these regions, can meet: a line per difference, ``name: explanation``.

    Args:
        graph: The workflow's graph.
        regions: The nodes that run together, in topological order.
    """
    region_of = {name: number for number, region in enumerate(regions) for name in region}
    concurrency = graph.concurrency
    entries = _entries(graph, region_of)
    found = []
    workers = any(node.kind == "parallel_worker" and not node.policy_covers_list for node in graph.nodes)
    if workers or concurrency.any_at_once(region_of):
        found.append(
            "state-between-branches: parallel branches run in processes of their own: one does not see what the other"
            " writes to state until they join, and of two writes to one key the later predecessor's stays (reported)."
        )
        found.append("no-cancel-on-failure: when a branch fails, tasks of other branches that already run are not cancelled.")
    for node in graph.nodes:
        if node.join and _pairs(graph, node.name, region_of):
            found.append(f"join-pairing: node {node.name!r} joins nodes that may run several times; they are paired in order.")
        if not node.join and _in_edge_order(graph, node.name, region_of, entries):
            found.append(f"run-order: node {node.name!r} runs for its triggers in the order of the edges, not of their time.")
    if graph.plugins:
        found.append(
            f"plugins-per-task: run callbacks of {', '.join(graph.plugins)} are called once per task, not once per run."
        )
    return found


def human_input_warnings(graph: Graph, inside: str = "") -> list[str]:
    """A line for each thing of the workflow, and of those nested in it, that may ask a person.

    Args:
        graph: The workflow's graph.
        inside: The path of the nested workflow with a slash at the end, before the names of nodes.
    """
    found = []
    for node in graph.nodes:
        found += [
            f"human-input: node {inside + node.name!r}: {question}, which fails in an Airflow task for now."
            for question in node.questions
        ]
        if node.inner is not None:
            found += human_input_warnings(node.inner, f"{inside}{node.name}/")
    return found


def _entries(graph: Graph, region_of: dict[str, int]) -> dict[int, set[str]]:
    """For each region its nodes that an edge enters from outside."""
    found: dict[int, set[str]] = {}
    for edge in graph.edges:
        if region_of.get(edge.source) != (own := region_of[edge.target]):
            found.setdefault(own, set()).add(edge.target)
    return found


def _in_edge_order(graph: Graph, name: str, region_of: dict[str, int], entries: dict[int, set[str]]) -> bool:
    """Whether several tasks may trigger a node in one run: they all end before it runs for the first of them."""
    own = region_of[name]
    # What comes back to the only entry of a loop comes after it anyway.
    comes_back = own if entries.get(own) == {name} else None
    regions = {source: region_of.get(source) for source in graph.predecessors(name)}
    apart = {source: region for source, region in regions.items() if comes_back is None or region != comes_back}
    if len(set(apart.values())) < 2:
        return False
    # Two at once; or one has triggered it, and the other is still to come.
    concurrency = graph.concurrency
    return concurrency.any_at_once(apart) or any(concurrency.at_once(name, source) for source in apart)


def _pairs(graph: Graph, join: str, region_of: dict[str, int]) -> bool:
    """Whether a join's predecessors run in several tasks, and one of them may trigger it more than once."""
    edges = [edge for edge in graph.edges_into([join]) if edge.source != START]
    return len({region_of[edge.source] for edge in edges}) > 1 and any(map(graph.concurrency.fires_again, edges))
