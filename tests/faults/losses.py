"""Parts of Airflow that are lost: the supervisor of a task, the scheduler, the DAG processor, the API server."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import psutil

from tests.faults.dags.fault_calls import folder_of, write
from tests.faults.kills import ALONE, found
from tests.faults.rows import Scenario, Table
from tests.faults.stand import Stand, until
from tests.faults.verdict import Call, calls_of_agent, events, plan

LATE = b"LATEWORDS"
# Seconds that the API server is away: as long as makes Airflow give a task up that ends meanwhile.
AWAY = 100


def orphans(stand: Stand, table: Table) -> list[Scenario]:
    """Tasks whose supervisor is killed, and which go on beside their retry; all may run side by side."""

    def of(case: str, kind: str) -> dict[str, Any] | None:
        return next((event for event in events(case) if event["event"] == kind), None)

    def end_of_orphan(case: str) -> None:
        """Lets the one that was overtaken write what it has, and waits until it has ended."""
        lost = of(case, "orphan")
        assert lost is not None, "no supervisor was killed"
        (folder_of(case) / "over").touch()
        until(lambda: _ended(lost["pid"]), "the process that was overtaken goes on", timeout=60)

    def services() -> None:
        case = "late"
        with table.row("supervisor killed: late artifact, memory and XCom of the orphan") as row:
            plan(case, ("save", "work"), what="orphan")
            run, view = stand.run("fault_late", case)
            row.check(view.state == "success", f"the run {view.state}")
            end_of_orphan(case)
            row.judge(case, [("save", "work")])
            answer = stand.output(run, "save")
            row.check(answer == "in time, not written: []", f"the answer is {answer!r}")
            for place in ("artifacts", "memory"):
                row.check(not _holds(stand.airflow.home / place), f"{place} have what the orphan wrote")
            row.check(of(case, "refused"), "the orphan was refused nothing")

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

    return [services, session]


def losses(stand: Stand, table: Table) -> list[Scenario]:
    """Parts that are killed while an agent works, and started again; one after the other."""

    def part(name: str, case: str, at: Call, lost: str, *, away: float = 0, family: bool = False) -> Scenario:
        def scenario() -> None:
            with table.row(name) as row:
                plan(case, at, what="hold")
                run = stand.start("fault_agent", case)
                stand.wait_for(case, "begin", at)
                write(case, "kill", *at)
                stand.airflow.kill(lost, family=family)
                if away:
                    (folder_of(case) / "hold" / ".".join(at)).unlink()
                time.sleep(away)
                stand.airflow.again(lost)
                if not away:
                    (folder_of(case) / "hold" / ".".join(at)).unlink()
                view = stand.finish(run, timeout=420)
                row.check(view.state == "success", f"the run {view.state}")
                row.judge(case, ALONE)
                answer = stand.output(run, "ask")
                row.check(answer == found("alone", 7, 14, 21, 28, 35), f"the answer is {answer!r}")
                if away:
                    tries = max(task["try_number"] for task in stand.airflow.client.task_instances(run.dag_id, run.run_id))
                    row.check(tries == 1, f"the task needed {tries} tries")

        return scenario

    return [
        part("scheduler killed and started again during a run", "scheduler", ("alone", "T3"), "scheduler"),
        part("machine with scheduler and task lost", "machine", ("alone", "M4"), "scheduler", family=True),
        part("dag-processor killed and started again during a run", "dag-processor", ("alone", "M3"), "dag-processor"),
        part("api-server killed and started again during a run", "api-server", ("alone", "T4"), "api-server", family=True),
        part(f"api-server away for {AWAY} s while a task ends", "away", ("alone", "M6"), "api-server", away=AWAY, family=True),
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
