"""Runs the tasks of a DAG file as a worker does: each in a process that Airflow's own supervisor forks, watches and reports on.

Without a scheduler and without an API server: both are in this process, over the database of the tests.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from airflow.api_fastapi.execution_api.app import InProcessExecutionAPI
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import BundleDagBag, sync_bag_to_db
from airflow.executors import workloads
from airflow.executors.workloads import BundleInfo
from airflow.models.dagbag import DBDagBag
from airflow.models.xcom import XComModel
from airflow.sdk import conf, timezone
from airflow.sdk.api.client import Client
from airflow.sdk.execution_time.supervisor import supervise_task
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState, TaskInstanceState
from airflow.utils.types import DagRunTriggeredByType, DagRunType


@dataclass(frozen=True)
class Tried:
    """One try of a task.

    Attributes:
        state: What Airflow made of it, such as ``up_for_retry``.
        log: Each line of its log as JSON text, tracebacks included.
        exit_code: Of its process; negative: the signal that ended it.
        next_delay: Seconds from its end to the next try, as Airflow reckons it; None where there is none.
        retry_reason: What Airflow's database keeps as the reason of the retry.
        retry_xcom: Its XCom ``adk_retry``.
    """

    state: str
    log: list[str]
    exit_code: int
    next_delay: float | None = None
    retry_reason: str | None = None
    retry_xcom: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        return "\n".join(self.log)

    @property
    def events(self) -> list[str]:
        """The messages of the log, without tracebacks."""
        return [str(json.loads(line).get("event")) for line in self.log]


def run_tasks(name: str, source: str) -> dict[str, Tried]:
    """Runs each task of the DAG once that can start, in the order of the DAG, and gives its first try by task id.

    Args:
        name: Of the DAG and its file.
        source: The file, which defines that DAG.
    """
    folder = Path(conf.get("core", "dags_folder"))
    (folder / f"{name}.py").write_text(f'"""A DAG of a test (airflow)."""\n{source}')
    try:
        return _run(name, folder)
    finally:
        (folder / f"{name}.py").unlink()


def _run(name: str, folder: Path) -> dict[str, Tried]:
    with create_session() as session:
        DagBundlesManager().sync_bundles_to_db(session=session)
    bag = BundleDagBag(dag_folder=folder / f"{name}.py", bundle_path=folder, bundle_name="dags-folder")
    assert not bag.import_errors
    sync_bag_to_db(bag, "dags-folder", None)
    now = timezone.utcnow()
    tried: dict[str, Tried] = {}
    with create_session() as session:
        dag = DBDagBag().get_latest_version_of_dag(name, session=session)
        assert dag is not None
        run = dag.create_dagrun(
            run_id=f"manual__{now.isoformat()}",
            logical_date=now,
            data_interval=(now, now),
            run_after=now,
            run_type=DagRunType.MANUAL,
            state=DagRunState.RUNNING,
            triggered_by=DagRunTriggeredByType.TEST,
            session=session,
        )
        run.dag = dag
        session.commit()
        while run.state == DagRunState.RUNNING:
            session.expire_all()
            ready, _ = run.update_state(session=session)
            ready = [ti for ti in ready if ti.task_id not in tried]
            if not ready:
                break
            for task_id in sorted(ti.task_id for ti in ready):
                ti = run.get_task_instance(task_id, session=session)
                ti.try_number += 1
                ti.state = TaskInstanceState.QUEUED
                session.commit()
                workload = workloads.ExecuteTask.make(ti, Path(f"{name}.py"), bundle_info=BundleInfo(name="dags-folder"))
                session.commit()
                exit_code, log = _supervise(workload)
                session.expire_all()
                ti = run.get_task_instance(task_id, session=session)  # a new row, where there is a retry
                delay = None
                if ti.state == TaskInstanceState.UP_FOR_RETRY:
                    ti.task = dag.get_task(task_id)
                    delay = (ti.next_retry_datetime() - ti.end_date).total_seconds()
                shown = session.scalars(
                    XComModel.get_many(run_id=run.run_id, key="adk_retry", task_ids=task_id, dag_ids=name)
                ).first()
                xcom = shown.value if shown else None
                tried[task_id] = Tried(str(ti.state), log, exit_code, delay, ti.retry_reason, xcom)
    return tried


def _supervise(workload: workloads.ExecuteTask) -> tuple[int, list[str]]:
    client = Client(base_url=None, token="", dry_run=True, transport=_api().transport)
    client.base_url = "http://in-process.invalid./"
    exit_code = supervise_task(
        ti=workload.ti,
        bundle_info=workload.bundle_info,
        dag_rel_path=workload.dag_rel_path,
        token="",
        log_path=workload.log_path,
        client=client,
    )
    log = Path(conf.get("logging", "base_log_folder"), str(workload.log_path))
    return exit_code, log.read_text().splitlines()


@cache
def _api() -> InProcessExecutionAPI:
    return InProcessExecutionAPI()
