"""``max_iterations``: a loop that does not end is an error that shows where it went."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from google.adk.workflow import BaseNode, Workflow

from adk_airflow.errors import LoopLimitError, NodeOverrideError


def check_max_iterations(workflow: Workflow, given: Mapping[str, int], where: str) -> None:
    """Refuses limits that would have no effect.

    Args:
        workflow: The workflow.
        given: How often a node may run, by its path.
        where: How the error names the workflow, such as ``workflow 'draft'``.

    Raises:
        NodeOverrideError: It names a node that is not there (with the nearest right name) or is in no loop, or a limit is no
            integer of 1 or more.
    """
    if not isinstance(given, Mapping):
        raise NodeOverrideError(f"{where}: max_iterations takes a dict of limits by node name, not {given!r}")
    found = dict(_by_path(workflow, ""))
    for path, limit in given.items():
        if path not in found:
            inside = [other for other in found if other.endswith(f"/{path}")]
            near = inside or difflib.get_close_matches(str(path), found, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"It has: {', '.join(sorted(found))}."
            raise NodeOverrideError(f"{where} has no node {path!r}, which max_iterations names. {hint}")
        if type(limit) is not int or limit < 1:
            raise NodeOverrideError(f"{where}, node {path!r}: max_iterations {limit!r} is not an integer of 1 or more")
        if not _in_loop(*found[path]):
            raise NodeOverrideError(f"{where}, node {path!r}: max_iterations is for nodes of a loop, and this one is in none")


def node_paths(workflow: Workflow) -> list[str]:
    """The paths of all nodes of a workflow, those of nested ones included."""
    return [path for path, _ in _by_path(workflow, "")]


def _by_path(workflow: Workflow, inside: str) -> Iterator[tuple[str, tuple[Workflow, BaseNode]]]:
    for node in workflow.graph.nodes if workflow.graph is not None else ():
        yield inside + node.name, (workflow, node)
        if isinstance(node, Workflow):
            yield from _by_path(node, f"{inside}{node.name}/")


def _in_loop(workflow: Workflow, node: BaseNode) -> bool:
    """Whether edges lead from the node back to it."""
    assert workflow.graph is not None
    reached: set[str] = set()
    todo = [node.name]
    while todo:
        source = todo.pop()
        following = {edge.to_node.name for edge in workflow.graph.edges if edge.from_node.name == source} - reached
        reached |= following
        todo.extend(following)
    return node.name in reached


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
