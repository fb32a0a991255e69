"""A log line for each node run of a task that runs several nodes, as it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_airflow.runtime.failures import masked

if TYPE_CHECKING:
    from adk_airflow.runtime.record.entries import Entry, Reader


def node_runs_to(log: Any) -> Reader:
    """A reader of entries that tells a log of each node run.

    Args:
        log: The task's log.
    """

    def tell(entry: Entry) -> None:
        if entry.kind != "node":
            return
        route = entry.content.get("route")
        said = "" if route is None else masked(f", route {route!r}")
        took = " in an earlier try" if entry.replayed else "" if entry.seconds is None else f" after {entry.seconds:.3f} s"
        log.info("Node run %s: %s%s%s", entry.path, entry.status, took, said)

    return tell
