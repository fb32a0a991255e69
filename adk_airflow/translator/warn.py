"""What can differ from one ADK process for a graph; ``docs/differences.md`` explains each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from adk_airflow.translator.concurrency import Concurrency
from adk_airflow.translator.graph import START, Graph


def warnings_for(graph: Graph, regions: Sequence[tuple[str, ...]], *, nested: bool = False) -> list[str]:
    """What this graph, divided into these regions, can meet: a line per difference, ``name: explanation``.

    Args:
        graph: The workflow's graph.
        regions: The nodes that run together, in topological order.
        nested: The workflow is nested in another.
    """
    region_of = {name: number for number, region in enumerate(regions) for name in region}
    concurrency = Concurrency(graph)
    found = []
    workers = any(node.kind == "parallel_worker" and not node.policy_covers_list for node in graph.nodes)
    if workers or concurrency.any_at_once(region_of):
        found.append(
            "state-between-branches: parallel branches run in processes of their own: one does not see what the other"
            " writes to state until they join, and of two writes to one key the later predecessor's stays (reported)."
        )
        found.append("no-cancel-on-failure: when a branch fails, tasks of other branches that already run are not cancelled.")
    for node in graph.nodes:
        if node.join and _pairs(graph, node.name, region_of, concurrency):
            found.append(f"join-pairing: node {node.name!r} joins nodes that may run several times; they are paired in order.")
        if not node.join and _in_edge_order(graph, node.name, region_of, concurrency):
            found.append(f"run-order: node {node.name!r} runs for its triggers in the order of the edges, not of their time.")
        if node.reads_history and (nested or set(graph.predecessors(node.name)) != {START}):
            found.append(f"agent-history: agent {node.name!r} does not see what nodes in other tasks said.")
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


def _in_edge_order(graph: Graph, name: str, region_of: dict[str, int], concurrency: Concurrency) -> bool:
    """Whether several tasks may trigger a node in one run: they all end before it runs for the first of them."""
    own = region_of[name]
    entries = {edge.target for edge in graph.edges if region_of[edge.target] == own and region_of.get(edge.source) != own}
    # What comes back to the only entry of a loop comes after it anyway.
    sources = [source for source in graph.predecessors(name) if not (entries == {name} and region_of.get(source) == own)]
    return any(
        region_of.get(one) != region_of.get(other)
        and (
            concurrency.at_once(one, other)
            # One has triggered it, and the other is still to come.
            or concurrency.at_once(name, one)
            or concurrency.at_once(name, other)
        )
        for one, other in combinations(sources, 2)
    )


def _pairs(graph: Graph, join: str, region_of: dict[str, int], concurrency: Concurrency) -> bool:
    """Whether a join's predecessors run in several tasks, and one of them may trigger it more than once."""
    edges = [edge for edge in graph.edges if edge.target == join and edge.source != START]
    return len({region_of[edge.source] for edge in edges}) > 1 and any(map(concurrency.fires_again, edges))
