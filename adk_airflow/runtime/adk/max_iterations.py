"""``max_iterations``: a loop that does not end is an error that shows where it went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adk_airflow.errors import LoopLimitError


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
