"""Runs the tasks of a DAG file as a worker does: each in a process that Airflow's own supervisor forks, watches and reports on.

Without a scheduler and without an API server: both are in this process, over the database of the tests. What a scheduler
decides between two tries of a task, Airflow's own ``DagRun.update_state`` and ``schedule_tis`` decide here.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from airflow.api_fastapi.execution_api.app import InProcessExecutionAPI
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import BundleDagBag, sync_bag_to_db
from airflow.executors import workloads
from airflow.executors.local_executor import LocalExecutor
from airflow.executors.workloads import BundleInfo
from airflow.jobs.scheduler_job_runner import SchedulerJobRunner
from airflow.models.dagbag import DBDagBag
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance, clear_task_instances
from airflow.models.xcom import XComModel
from airflow.sdk import conf, timezone
from airflow.sdk.api.client import Client
from airflow.sdk.execution_time.supervisor import supervise_task
from airflow.sdk.execution_time.xcom import XCom
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
    with dag_files({f"{name}.py": f'"""A DAG of a test (airflow)."""\n{source}'}):
        run = SupervisedRun(name, f"{name}.py")
        run.go(tries=1)
    return {task: tries[0] for task, tries in run.tried.items()}


@contextmanager
def dag_files(sources: Mapping[str, str]) -> Iterator[None]:
    """The files are in the DAGs folder, and their DAGs in the database, as long as the block runs.

    Args:
        sources: The text by file name; a file without a DAG may be there for others to import.
    """
    folder = _folder()
    for name, source in sources.items():
        (folder / name).write_text(source)
    try:
        with create_session() as session:
            DagBundlesManager().sync_bundles_to_db(session=session)
        for name in sources:
            bag = BundleDagBag(dag_folder=folder / name, bundle_path=folder, bundle_name="dags-folder")
            assert not bag.import_errors, bag.import_errors
            if bag.dags:
                sync_bag_to_db(bag, "dags-folder", None)
        yield
    finally:
        for name in sources:
            (folder / name).unlink()


class SupervisedRun:
    """A run of a DAG whose files are there (``dag_files``).

    Attributes:
        tried: The tries of each task, by its id; of a mapped one by ``id[map_index]``.

    Args:
        dag_id: The DAG.
        file: The name of its file.
        params: What the run is given.
    """

    def __init__(self, dag_id: str, file: str, params: Mapping[str, Any] | None = None) -> None:
        self.dag_id, self.tried = dag_id, dict[str, list[Tried]]()
        self._file = Path(file)
        now = timezone.utcnow()
        self.run_id = f"manual__{now.isoformat()}"
        with create_session() as session:
            dag = DBDagBag().get_latest_version_of_dag(dag_id, session=session)
            assert dag is not None
            self._dag = dag
            dag.create_dagrun(
                run_id=self.run_id,
                logical_date=now,
                data_interval=(now, now),
                run_after=now,
                run_type=DagRunType.MANUAL,
                conf=dict(params or {}),
                state=DagRunState.RUNNING,
                triggered_by=DagRunTriggeredByType.TEST,
                session=session,
            )

    def go(self, *, tries: int | None = None) -> str:
        """Runs one try after the other until no task can start, and gives the state of the run.

        Args:
            tries: As many of each task at most.
        """
        with create_session() as session:
            run = self._run(session)
            run.state = DagRunState.RUNNING  # as the scheduler does with a run that was cleared
            session.commit()
            while run.state == DagRunState.RUNNING:
                session.expire_all()
                ready, _ = run.update_state(session=session)
                ready = [ti for ti in ready if self._may_try(ti, tries)]
                if not ready:
                    waiting = [ti for ti in run.get_task_instances() if ti.state == TaskInstanceState.UP_FOR_RETRY]
                    if not any(self._may_try(ti, tries) for ti in waiting):
                        break
                    time.sleep(0.05)  # its retry_delay
                    continue
                keys = [(ti.task_id, ti.map_index) for ti in ready]
                run.schedule_tis(ready, session=session)
                session.commit()
                for task_id, map_index in sorted(keys):
                    self._try(run, task_id, map_index, session)
            return str(run.state)

    def clear(self, *task_ids: str, downstream: bool = False, map_indexes: Collection[int] | None = None) -> None:
        """Clears tasks as a person does in the UI.

        Args:
            task_ids: The tasks. None named: all of the run.
            downstream: Also what comes after them.
            map_indexes: Of a mapped task only these.
        """
        with create_session() as session:
            found = set(task_ids) or set(self._dag.task_ids)
            if downstream:
                found |= {
                    after for name in task_ids for after in self._dag.get_task(name).get_flat_relative_ids(upstream=False)
                }
            instances = [ti for ti in self._run(session).get_task_instances(session=session) if ti.task_id in found]
            if map_indexes is not None:
                instances = [ti for ti in instances if ti.map_index in map_indexes]
            clear_task_instances(instances, session)

    def xcom(self, task_id: str, key: str = "return_value", *, map_index: int = -1) -> Any:
        """What a task left; None for nothing."""
        with create_session() as session:
            rows = session.query(XComModel).filter_by(dag_id=self.dag_id, run_id=self.run_id, task_id=task_id)
            row = rows.filter_by(key=key, map_index=map_index).one_or_none()
            return None if row is None else XCom.deserialize_value(row)

    def _may_try(self, ti: TaskInstance, tries: int | None) -> bool:
        return tries is None or len(self.tried.get(_key(ti), ())) < tries

    def _run(self, session: Any) -> DagRun:
        run = session.query(DagRun).filter_by(dag_id=self.dag_id, run_id=self.run_id).one()
        run.dag = self._dag
        return run

    def _try(self, run: DagRun, task_id: str, map_index: int, session: Any) -> None:
        ti = run.get_task_instance(task_id, map_index=map_index, session=session)
        assert ti is not None
        session.refresh(ti)
        if ti.state != TaskInstanceState.SCHEDULED:  # nothing to run, so Airflow has let it succeed
            return
        ti.state = TaskInstanceState.QUEUED
        session.commit()
        workload = workloads.ExecuteTask.make(ti, self._file, bundle_info=BundleInfo(name="dags-folder"))
        session.commit()
        key = ti.key
        exit_code, log = _supervise(workload)
        session.expire_all()
        # A supervisor reports no process that was killed: the scheduler sees that the task is over, and yet runs.
        executor = LocalExecutor(parallelism=1)
        executor.success(key)
        SchedulerJobRunner.process_executor_events(executor, None, DBDagBag(), session)
        session.commit()
        session.expire_all()
        after = run.get_task_instance(task_id, map_index=map_index, session=session)  # a new row, where there is a retry
        assert after is not None
        delay = None
        if after.state == TaskInstanceState.UP_FOR_RETRY:
            after.task = self._dag.get_task(task_id)
            delay = (after.next_retry_datetime() - after.end_date).total_seconds()
        shown = self.xcom(task_id, "adk_retry", map_index=map_index)
        one = Tried(str(after.state), log, exit_code, delay, after.retry_reason, shown)
        self.tried.setdefault(_key(after), []).append(one)


def _key(ti: TaskInstance) -> str:
    return ti.task_id if ti.map_index < 0 else f"{ti.task_id}[{ti.map_index}]"


def _folder() -> Path:
    return Path(conf.get("core", "dags_folder"))


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
