"""A real Airflow to break: its parts can be killed and started again, its runs are of cases whose calls are counted."""

from __future__ import annotations

import contextlib
import dataclasses
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from adk_airflow.local import AirflowApiError, RunView, StandaloneAirflow, processes, watch_run
from adk_airflow.local.processes import ProcessRef
from adk_airflow.local.server import _COMPONENTS, _LATE_COMPONENTS, _SCHEDULER
from tests.faults.postgres import Postgres
from tests.faults.verdict import Call, events, plan

T = TypeVar("T")
STORE = "store"
"""The folder below Airflow's home with artifacts and records."""
COMMANDS: Mapping[str, list[str]] = {**_COMPONENTS, **_SCHEDULER, **_LATE_COMPONENTS}


class BreakableAirflow(StandaloneAirflow):
    """An Airflow whose parts can be killed and started again."""

    def __init__(self, home: Path, dags: Path, *, settings: Mapping[str, str]) -> None:
        super().__init__(home, dags, settings=settings)
        self._env: dict[str, str] = {}
        self._killed: list[ProcessRef] = []

    def _launch(self, components: Mapping[str, list[str]], env: Mapping[str, str]) -> None:
        self._env = dict(env)
        super()._launch(components, env)

    def kill(self, name: str, *, family: bool = False) -> None:
        """Ends a part with a SIGKILL, which leaves it no moment to end anything else.

        Args:
            name: Such as "scheduler".
            family: Also all processes that it started, tasks among them, as when the machine is lost.
        """
        [ref] = [ref for ref in self.components if ref.name == name]
        leader = ref.find()
        assert leader is not None, f"{name} runs no more"
        doomed = ref.family() if family else [leader]
        for process in doomed:
            process.kill()
        leader.wait(timeout=30)
        self._killed.append(ref)
        self._forget(name)

    def again(self, name: str, **settings: str) -> None:
        """Starts a part that was killed, and waits until it is healthy.

        Args:
            name: The part.
            settings: Environment variables that are other from now on.
        """
        self._env |= settings
        began = time.time()
        super()._launch({name: COMMANDS[name]}, self._env)
        deadline = time.monotonic() + 180
        while name.replace("-", "_") in self.client.unhealthy(since=began) or "api-server" in self.client.unhealthy():
            assert time.monotonic() < deadline, f"{name} did not become healthy"
            time.sleep(0.25)

    def revive(self) -> None:
        """Starts the parts again that have ended by themselves, as Airflow's do where SQLite is locked for longer than 5 s."""
        for ref in self.components:
            if ref.find() is None:
                self._forget(ref.name)
                self.again(ref.name)

    def restart_scheduler(self, **settings: str) -> None:
        """Ends the scheduler in peace, and starts it with other settings."""
        processes.end([ref for ref in self.components if ref.name == "scheduler"], grace=15)
        self._forget("scheduler")
        self.again("scheduler", **settings)

    def _forget(self, name: str) -> None:
        assert self._state is not None
        kept = tuple(ref for ref in self.components if ref.name != name)
        self._state = dataclasses.replace(self._state, components=kept)

    def stop(self, *, grace: float = 15.0) -> list[str]:
        """Ends all, also what killed parts have left behind."""
        ended = super().stop(grace=grace)
        return ended + processes.end(self._killed, grace=2.0)


@dataclass(frozen=True)
class Started:
    """A run of a case."""

    dag_id: str
    run_id: str
    case: str


class Stand:
    """Airflow, and what is needed to run cases on it."""

    def __init__(self, airflow: BreakableAirflow, database: Postgres | None) -> None:
        self.airflow, self.database = airflow, database

    def start(self, dag_id: str, case: str, *kills: Call, run_id: str | None = None, **params: Any) -> Started:
        """Triggers a run whose process is killed at these calls."""
        plan(case, *kills)
        run_id = run_id or f"{case}_{time.time_ns()}"

        def triggered() -> bool:
            try:
                self.airflow.client.trigger(dag_id, conf={"case": case, **params}, run_id=run_id)
            except AirflowApiError as error:
                if error.status not in (500, 503):  # the answers where SQLite is busy
                    raise
                return False
            return True

        until(triggered, f"run of {dag_id}", timeout=30)
        return Started(dag_id, run_id, case)

    def finish(self, run: Started, *, timeout: float = 240, check: Callable[[], None] | None = None) -> RunView:
        """Waits for its end.

        Args:
            run: The run.
            timeout: Seconds.
            check: Called meanwhile. None: it fails where a part of Airflow has ended.
        """
        return watch_run(self.airflow.client, run.dag_id, run.run_id, timeout=timeout, check=check or self.airflow.check)

    def run(self, dag_id: str, case: str, *kills: Call, **params: Any) -> tuple[Started, RunView]:
        """Both."""
        started = self.start(dag_id, case, *kills, **params)
        return started, self.finish(started)

    def output(self, run: Started, task: str, *, map_index: int = -1) -> Any:
        """What a task returned."""
        return self.airflow.client.xcom(run.dag_id, run.run_id, task, map_index=map_index)

    def outputs(self, run: Started) -> list[Any]:
        """What the tasks returned."""
        tasks = self.airflow.client.task_instances(run.dag_id, run.run_id)
        return [self.output(run, task["task_id"], map_index=task["map_index"]) for task in tasks]

    def artifacts(self, run: Started) -> list[tuple[str, int, str]]:
        """Name, version and text of each artifact of the run."""
        session = f"session-{quote(run.run_id, safe='')}"
        found = (self.airflow.home / STORE / "artifacts").glob(f"*/*/{session}/*/*/*.txt")
        # A process that was killed while it saved one may leave its draft beside the versions.
        versions = [path for path in found if path.parent.name.isdecimal()]
        return sorted((unquote(path.name), int(path.parent.name), path.read_text()) for path in versions)

    def clear(self, run: Started, tasks: Collection[Any], *, downstream: bool = False) -> None:
        """Clears tasks as a person does in the UI: ids, or pairs of id and map index."""
        body = {
            "dry_run": False,
            "dag_run_id": run.run_id,
            "task_ids": list(tasks),
            "include_downstream": downstream,
            "only_failed": False,
            "reset_dag_runs": True,
        }
        self.airflow.client.request("POST", f"/dags/{run.dag_id}/clearTaskInstances", json=body)

    def clear_run(self, run: Started) -> None:
        """Clears a whole run."""
        path = f"/dags/{run.dag_id}/dagRuns/{run.run_id}/clear"
        self.airflow.client.request("POST", path, json={"dry_run": False, "only_failed": False})

    def wait_for(self, case: str, event: str, call: Call, *, times: int = 1) -> None:
        """Until this was written down of a call so often."""

        def seen() -> bool:
            found = [e for e in events(case) if (e["event"], e["line"], e["call"]) == (event, *call)]
            return len(found) >= times

        until(seen, f"{case}: no {event} of {call}", check=self.airflow.check)

    def logs(self, run: Started) -> str:
        """The text of all logs of the run."""
        lines = []
        for folder in (self.airflow.home / "logs").glob(f"dag_id={run.dag_id}/run_id={run.run_id}"):
            lines += [path.read_text(errors="replace") for path in sorted(folder.rglob("*.log"))]
        return "\n".join(lines)

    def _locked(self, sql: str) -> subprocess.Popen[bytes]:
        """Runs what locks; anew where PostgreSQL ended it because Airflow waited for it, and it for Airflow."""
        assert self.database is not None
        for _ in range(10):
            lock = self.database.sql(sql)
            with contextlib.suppress(subprocess.TimeoutExpired):
                lock.wait(2)  # a deadlock is noticed after one second
                continue
            return lock
        raise AssertionError("the tables could not be locked")

    @contextmanager
    def locked_database(self, seconds: float) -> Iterator[None]:
        """Nobody else can write to the database (PostgreSQL: to the tables of tasks) for so long, from now on."""
        if self.database is not None:
            tables = "task_instance, xcom, task_state_store, dag_run"
            lock = self._locked(f"begin; lock table {tables} in access exclusive mode; select pg_sleep({seconds}); commit")
            yield
            assert lock.wait() == 0
            return
        held = sqlite3.connect(self.airflow.home / "airflow.db", timeout=30, isolation_level=None, check_same_thread=False)
        held.execute("begin exclusive")
        timer = threading.Timer(seconds, held.rollback)
        timer.start()
        try:
            yield
        finally:
            timer.join()
            held.close()


def until(holds: Callable[[], T], what: str, *, timeout: float = 180, check: Callable[[], None] = lambda: None) -> T:
    """Calls it until what it gives counts as true, and gives that."""
    deadline = time.monotonic() + timeout
    while not (found := holds()):
        check()
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout:.0f} s: {what}")
        time.sleep(0.1)
    return found
