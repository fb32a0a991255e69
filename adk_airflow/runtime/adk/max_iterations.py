"""``max_iterations``: a loop that does not end is an error that shows where it went."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from google.adk.workflow import Workflow

from adk_airflow.errors import LoopLimitError, NodeOverrideError


def check(workflow: Workflow, most: Mapping[str, int]) -> None:
    """Refuses limits that would have no effect.

    Args:
        workflow: The workflow.
        most: How often a node may run, by its path.

    Raises:
        NodeOverrideError: It names a node that is not there (with the nearest right name) or is in no loop, or a limit is no
            integer of 1 or more.
    """
    if not isinstance(most, Mapping):
        raise NodeOverrideError(f"workflow {workflow.name!r}: max_iterations takes a dict of limits by node name, not {most!r}")
    in_loop = dict(_by_path(workflow, "")) if most else {}
    for path, limit in most.items():
        if path not in in_loop:
            inside = [other for other in in_loop if other.endswith(f"/{path}")]
            near = inside or difflib.get_close_matches(str(path), in_loop, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else f" It has: {', '.join(sorted(in_loop))}."
            raise NodeOverrideError(f"workflow {workflow.name!r} has no node {path!r}.{hint}")
        if type(limit) is not int or limit < 1:
            problem = f"max_iterations {limit!r} is not an integer of 1 or more"
        elif not in_loop[path]:
            problem = "max_iterations is for nodes of a loop, and this one is in none"
        else:
            continue
        raise NodeOverrideError(f"workflow {workflow.name!r}, node {path!r}: {problem}")


def _by_path(workflow: Workflow, inside: str) -> Iterator[tuple[str, bool]]:
    """The path of each node, and whether it is in a loop of its workflow."""
    graph = workflow.graph
    assert graph is not None
    following: dict[str, set[str]] = {}
    for edge in graph.edges:
        following.setdefault(edge.from_node.name, set()).add(edge.to_node.name)
    for node in graph.nodes:
        reached: set[str] = set()
        todo = [node.name]
        while todo:
            new = following.get(todo.pop(), set()) - reached
            reached |= new
            todo += new
        yield inside + node.name, node.name in reached
        if isinstance(node, Workflow) and node.graph is not None:
            yield from _by_path(node, f"{inside}{node.name}/")


class IterationLimit:
    """How often nodes of a workflow have run since it began, and how often they may.

    Args:
        workflow: The workflow's name.
        most: For each node that has a limit: the limit.
    """

    def __init__(self, workflow: str, most: Mapping[str, int]) -> None:
        self._workflow = workflow
        self._most = most
        self.restart()

    def restart(self) -> None:
        """The workflow begins."""
        self._runs: dict[str, int] = {}
        self._routes: list[str] = []

    def note(self, node: str, route: Any) -> None:
        """A run of the node gave this route, or none."""
        if route is not None:
            self._routes = [*self._routes[-4:], f"{node}: {route!r}"]

    def begin(self, node: str) -> None:
        """A run of the node begins.

        Raises:
            LoopLimitError: It has run as often as it may; the message shows the last routes.
        """
        runs = self._runs.get(node, 0)
        if runs >= self._most.get(node, runs + 1):
            raise LoopLimitError(
                f"workflow {self._workflow!r}, node {node!r} has run {runs} times, its max_iterations, and is triggered again."
                f" The last routes were {', '.join(self._routes) or 'none'}."
            )
        self._runs[node] = runs + 1
