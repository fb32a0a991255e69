"""``make test-faults``: breaks a real Airflow, and prints what its runs cost then. See docs/testing.md."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.faults.answers import answers
from tests.faults.clears import clears
from tests.faults.kills import kills
from tests.faults.losses import losses, orphans
from tests.faults.model import FaultyModel
from tests.faults.places import places
from tests.faults.postgres import Postgres, postgres
from tests.faults.rows import Scenario, Table
from tests.faults.shapes import SHAPES, shapes
from tests.faults.stand import STORE, BreakableAirflow, Stand

DAGS = Path(__file__).parent / "dags"
GROUPS = ("kills", "shapes", "clears", "answers", "orphans", "losses", "places")
# Runs at once. Airflow's scheduler ends where SQLite is locked too long, which a few more runs bring about.
_SIDE_BY_SIDE = {"sqlite": 2, "postgres": 6}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the groups on each database; 0 when every row is ok."""
    parser = argparse.ArgumentParser(prog="make test-faults", description=__doc__)
    parser.add_argument("--database", choices=("sqlite", "postgres", "both"), default="both")
    parser.add_argument("--only", action="append", choices=GROUPS, help="a group of rows; may be given several times")
    parser.add_argument("--keep", action="store_true", help="keep the folders with Airflow's logs and the counted calls")
    given = parser.parse_args(arguments)
    names = ("sqlite", "postgres") if given.database == "both" else (given.database,)
    tables = []
    for name in names:
        folder = Path(tempfile.mkdtemp(prefix=f"adk-airflow-faults-{name}-"))
        try:
            tables.append(_run(name, folder, given.only or GROUPS))
        finally:
            if given.keep:
                print(f"Kept: {folder}")
            else:
                shutil.rmtree(folder, ignore_errors=True)
    rows = [row for table in tables for row in table.rows]
    failed = sum(bool(row.wrong) for row in rows)
    print(f"\n{len(rows) - failed} of {len(rows)} rows are ok" + (f", {failed} are NOT" if failed else ""))
    return 1 if failed else 0


def _run(name: str, folder: Path, groups: Sequence[str]) -> Table:
    table = Table(name)
    with _stand(name, folder) as (stand, model):
        table.heading()
        scenarios = {
            "kills": (kills(stand, table), _SIDE_BY_SIDE[name]),
            "shapes": (shapes(stand, table), _SIDE_BY_SIDE[name]),
            "clears": (clears(stand, table), _SIDE_BY_SIDE[name]),
            "answers": (answers(stand, table, model), 1),
            "orphans": (orphans(stand, table), 1),
            "losses": (losses(stand, table), 1),
            "places": (places(stand, table), 1),
        }
        for group, (rows, at_once) in scenarios.items():
            if group not in groups:
                continue
            if group == "orphans":
                # Airflow gives a task without a supervisor so many seconds; it must be more than other groups need.
                stand.airflow.restart_scheduler(AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT="20")
            _all(rows, at_once)
            if group == "orphans":
                stand.airflow.restart_scheduler(AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT="300")
    return table


def _all(rows: Sequence[Scenario], at_once: int) -> None:
    with ThreadPoolExecutor(at_once) as threads:
        for done in [threads.submit(row) for row in rows]:
            done.result()


@contextlib.contextmanager
def _stand(name: str, folder: Path) -> Iterator[tuple[Stand, FaultyModel]]:
    """A real Airflow with the DAGs of the faults, and the model that their agents ask."""
    shutil.copytree(DAGS, folder / "dags", ignore=shutil.ignore_patterns("__pycache__", "__init__.py"))
    os.environ["FAULTS_FOLDER"] = str(folder / "calls")
    home = folder / "home"
    with contextlib.ExitStack() as stack:
        database: Postgres | None = stack.enter_context(postgres()) if name == "postgres" else None
        model = stack.enter_context(FaultyModel())
        settings = {
            **model.environment,
            "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "180",
            "AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "False",
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "2",
            "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "15",
            "AIRFLOW__ADK_AIRFLOW__ARTIFACTS_URI": f"file://{home / STORE / 'artifacts'}",
            "AIRFLOW__ADK_AIRFLOW__TRANSCRIPTS_URI": f"file://{home / STORE / 'records'}",
            "AIRFLOW__ADK_AIRFLOW__MEMORY_SERVICE_URI": f"file://{home / 'memory'}",
            "AIRFLOW__ADK_AIRFLOW__SESSION_SERVICE_URI": f"sqlite:///{home / 'sessions.db'}",
        }
        if database is not None:
            settings["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] = database.url
        airflow = stack.enter_context(BreakableAirflow(home, folder / "dags", settings=settings))
        for dag_id in _dag_ids():
            airflow.client.wait_for_dag(dag_id, since=airflow.started_at, timeout=180)
            airflow.client.unpause(dag_id)
        yield Stand(airflow, database), model


def _dag_ids() -> list[str]:
    return [
        *(
            "fault_agent",
            "fault_answers",
            "fault_agent_node",
            "fault_agent_twin",
            "fault_pair",
            "fault_chain",
            "fault_two_tasks",
        ),
        *(f"fault_backfill_{name}" for name in ("a", "b", "c")),
        *("fault_loop", "fault_loop_embedded", "fault_batch", "fault_mapped", "fault_dynamic"),
        *(dag_id for dag_id, _ in SHAPES.values()),
        *("fault_late", "fault_session", "fault_store", "fault_no_store"),
    ]


if __name__ == "__main__":
    sys.exit(main())
