"""How long the plan of a large workflow takes."""

from __future__ import annotations

import time

from adk_airflow.translator.graph import START, Edge, Graph, Node
from adk_airflow.translator.rules import make_plan
from benchmarks.measure import Row, alternate


def ladder(nodes: int) -> Graph:
    """Two chains, the second one of joins, with a rung from each node of the first. (ADK's own check of a chain recurses.)"""
    places = range(nodes // 2)
    found = [Edge(START, "a0"), *(Edge(f"a{at}", f"b{at}") for at in places)]
    found += [Edge(f"{side}{at}", f"{side}{at + 1}") for at in places[:-1] for side in "ab"]
    both = [(Node(f"a{at}", "function", "function"), Node(f"b{at}", "join", "join", join=True)) for at in places]
    return Graph("ladder", "", tuple(node for pair in both for node in pair), tuple(found))


def rows(rounds: int) -> list[Row]:
    """2,000 nodes against 1,000, and the seconds of the latter."""
    found = alternate({"2000": lambda: _plan(2000), "1000": lambda: _plan(1000)}, rounds)
    return [
        Row("plan of 2,000 nodes (a ladder)", "plan of 1,000", "s of CPU", found["2000"], found["1000"], 2.2),
        Row("plan of 1,000 nodes", "", "s of CPU", found["1000"], [], 0.3),
    ]


def _plan(nodes: int) -> float:
    graph = ladder(nodes)
    began = time.process_time()
    make_plan(graph, mode="tasks", nodes={})
    return time.process_time() - began
