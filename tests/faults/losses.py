"""Parts of Airflow that are lost: the supervisor of a task, the scheduler, the DAG processor, the API server."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import psutil

from tests.faults.dags.fault_calls import folder_of, write
from tests.faults.kills import ALONE, found
from tests.faults.rows import Scenario, Table
from tests.faults.stand import STORE, Stand, until
from tests.faults.verdict import Call, calls_of_agent, events, plan

LATE = b"LATEWORDS"
# Seconds that the API server is away: as long as makes Airflow give a task up that ends meanwhile.
AWAY = 100


def orphans(stand: Stand, table: Table) -> list[Scenario]:
    """Tasks that go on without their supervisor, beside their retry, and tasks that are lost with it; one after the other."""

    def end_of_orphan(case: str) -> dict[str, Any]:
        """Lets the process that was overtaken write what it has, and waits until it has ended; gives when it was lost."""
        lost = next((event for event in events(case) if event["event"] == "orphan"), None)
        assert lost is not None, "no supervisor was killed"
        (folder_of(case) / "over").touch()
        until(lambda: _ended(lost["pid"]), "the process that was overtaken goes on", timeout=60)
        return lost

    def services() -> None:
        case = "late"
        with table.row("supervisor killed: late artifact, memory and XCom of the orphan") as row:
            plan(case, ("save", "work"), what="orphan")
            run, view = stand.run("fault_late", case)
            row.check(view.state == "success", f"the run {view.state}")
            lost = end_of_orphan(case)
            row.judge(case, [("save", "work")])
            answer = stand.output(run, "save")
            row.check(answer == "in time, not written: []", f"the answer is {answer!r}")
            late = [event["call"] for event in events(case) if event["event"] == "written" and event["pid"] == lost["pid"]]
            row.check(not late, f"the orphan wrote: {', '.join(late)}")
            for place in (stand.airflow.home / STORE, stand.airflow.home / "memory"):
                row.check(not _holds(place), f"{place.name} has what the orphan wrote")

    def session() -> None:
        case = "late-session"
        with table.row("supervisor killed: late session, no further call of the orphan") as row:
            plan(case, ("kept", "T1"), what="orphan")
            run, view = stand.run("fault_session", case)
            row.check(view.state == "success", f"the run {view.state}")
            end_of_orphan(case)
            row.judge(case, calls_of_agent("kept", 1))
            answer = stand.output(run, "ask")
            row.check(answer == "kept found ['number 1']", f"the answer is {answer!r}")
            row.check(not _holds(stand.airflow.home / "sessions.db"), "the session has what the orphan wrote")

    machine = _Part(stand, table)("machine with scheduler and task lost", "machine", ("alone", "M4"), "scheduler", family=True)
    return [services, session, machine]


class _Part:
    """Makes rows of a part that is lost while an agent waits in a call."""

    def __init__(self, stand: Stand, table: Table) -> None:
        self._stand, self._table = stand, table

    def __call__(
        self, name: str, case: str, at: Call, lost: str, *, away: float = 0, goes_on: bool = False, family: bool = False
    ) -> Scenario:
        """A row.

        Args:
            name: Its name.
            case: The case.
            at: The call in which the agent waits.
            lost: The part.
            away: Seconds until the part is started again.
            goes_on: The agent waits only until the part is gone. Airflow is told to bear it: by default it ends a task that
                cannot report three times.
            family: All that the part has started is lost with it.
        """
        stand, table = self._stand, self._table

        def scenario() -> None:
            hold = folder_of(case) / "hold" / ".".join(at)
            with table.row(name) as row:
                plan(case, at, what="hold")
                if goes_on:
                    stand.airflow.restart_scheduler(AIRFLOW__WORKERS__MAX_FAILED_HEARTBEATS="30")
                run = stand.start("fault_agent", case)
                stand.wait_for(case, "begin", at)
                write(case, "kill", *at)
                stand.airflow.kill(lost, family=family)
                if goes_on:
                    hold.unlink()
                time.sleep(away)
                stand.airflow.again(lost)
                hold.unlink(missing_ok=True)
                view = stand.finish(run, timeout=420)
                row.check(view.state == "success", f"the run {view.state}")
                row.judge(case, ALONE)
                answer = stand.output(run, "ask")
                row.check(answer == found("alone", 7, 14, 21, 28, 35), f"the answer is {answer!r}")
                if goes_on:
                    tries = max(task["try_number"] for task in stand.airflow.client.task_instances(run.dag_id, run.run_id))
                    row.check(tries == 1, f"the task needed {tries} tries")

        return scenario


def losses(stand: Stand, table: Table) -> list[Scenario]:
    """Parts that are killed while an agent works, and started again; one after the other."""

    part = _Part(stand, table)
    return [
        part("scheduler killed and started again during a run", "scheduler", ("alone", "T3"), "scheduler"),
        part("scheduler away for 40 s during a run", "scheduler-away", ("alone", "T2"), "scheduler", away=40),
        part("dag-processor killed and started again during a run", "dag-processor", ("alone", "M3"), "dag-processor"),
        part("api-server killed and started again during a run", "api-server", ("alone", "T4"), "api-server", family=True),
        part(f"api-server away for {AWAY} s while a task works", "away", ("alone", "M4"), "api-server", away=AWAY, family=True),
        part(
            f"api-server away for {AWAY} s while a task ends, max_failed_heartbeats 30",
            "away-at-end",
            ("alone", "M6"),
            "api-server",
            away=AWAY,
            goes_on=True,
            family=True,
        ),
    ]


def _ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _holds(place: Path) -> bool:
    """Whether something below it holds what only an overtaken process wrote."""
    files = [place] if place.is_file() else [path for path in place.rglob("*") if path.is_file()]
    return any(LATE in path.read_bytes() for path in files)
