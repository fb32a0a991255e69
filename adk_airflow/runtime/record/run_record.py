"""Shows the node runs of a task that runs several nodes, while it runs: a log line each, and a record in XCom."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from adk_airflow.runtime import sealing
from adk_airflow.runtime.failures import masked
from adk_airflow.runtime.wire import json_form

if TYPE_CHECKING:
    from adk_airflow.runtime.record.entries import Entry

XCOM_RUNS = "adk_runs"
_SECONDS_BETWEEN_PUSHES = 2.0


class RunRecord:
    """Takes each node run as it ends.

    XCom ``adk_runs`` is a list of ``{"path", "node", "iteration", "status", "route", "seconds", "error"}`` in the order in
    which the runs ended; ``iteration`` counts a node's runs from 1, as ADK does. It is renewed every two seconds at most.

    Args:
        ti: The task instance.
        log: Where a line per run goes.
    """

    def __init__(self, ti: Any, log: Any) -> None:
        self._ti = ti
        self._log = log
        self._runs: list[dict[str, Any]] = []
        self._pushed_at = 0.0

    def add(self, entry: Entry) -> None:
        """Logs and records a run of a node."""
        if entry.kind != "node":
            return
        name, _, iteration = entry.path.rpartition("/")[2].partition("@")
        seconds = None if entry.seconds is None else round(entry.seconds, 3)
        route = entry.content.get("route")
        self._runs.append(
            {
                "path": entry.path,
                "node": name,
                "iteration": int(iteration) if iteration.isdecimal() else iteration,
                "status": entry.status,
                "route": sealing.masked(json_form.for_xcom(route))[0],
                "seconds": seconds,
                "error": masked(entry.error),
            }
        )
        said = "" if route is None else masked(f", route {route!r}")
        took = " in an earlier try" if entry.replayed else "" if seconds is None else f" after {seconds} s"
        self._log.info("Node run %s: %s%s%s", entry.path, entry.status, took, said)
        if time.monotonic() - self._pushed_at > _SECONDS_BETWEEN_PUSHES:
            self.push()

    def push(self) -> None:
        """Renews the record in XCom. What hinders that is logged: a record to look at must not fail the run."""
        self._pushed_at = time.monotonic()
        try:
            self._ti.xcom_push(key=XCOM_RUNS, value=self._runs)
        except Exception as error:
            self._log.warning("XCom %r, the record of node runs, could not be renewed: %s", XCOM_RUNS, error)
