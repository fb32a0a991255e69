"""Runs a workflow through a real DAG run inside a test.

In ``conftest.py``, before anything imports Airflow::

    from adk_airflow.testing import use_airflow_home

    use_airflow_home(tempfile.mkdtemp())

In a test::

    from adk_airflow.testing import run_workflow


    def test_router():
        run = run_workflow(root_agent, input="hello")
        assert run.state == "success"
        assert run.output == "HELLO!"
        assert run.task_states["billing"] == ["skipped"]

The scheduler's own code decides what runs (``DAG.test``), each task runs through the task SDK's runner, and XComs pass
through Airflow's database. The first run in a process takes some seconds, each later task about a tenth of one.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from adk_airflow.runtime.wire.envelope import Envelope
    from adk_airflow.translator.options import NodeOptions
    from adk_airflow.translator.plan import Mode

_DAG_FILE = "adk_airflow_testing.py"
_DAG_SOURCE = '''"""The DAG under test (airflow)."""
from adk_airflow.testing import current_dag

dag = current_dag()
'''
_current: list[DAG] = []


@dataclass(frozen=True)
class WorkflowRun:
    """What came out of a DAG run.

    Attributes:
        state: ``success`` or ``failed``.
        output: The workflow's output, with its Python type; None for no output.
        outputs: Per node (in a task group: with its prefix) the outputs of its runs, in order; None is left out.
        session_state: The session state at the end, ``temp:`` keys left out.
        error: ``(type, message)`` of the first failure of a node, else of any task, or None.
        task_states: Per task id the states of its instances, in map-index order.
        labels: Per mapped task id, for each map index, the text that the UI shows for it.
        node_runs: Per id of a task that ran nodes in ADK, its node runs: ``{"path", "node", "iteration", "status", "route",
            "seconds", "error"}``; of a mapped task those of all its instances, in map-index order.
        node_runs: Per id of a task that runs several nodes, its node runs: ``{"path", "node", "iteration", "status", ...}``;
            of a mapped task those of all its instances, in map-index order.
        usage: What models cost in the whole run, as XCom ``usage_run`` of the task that gives the workflow's output holds it;
            None where no model was asked.
        task_usage: Per id of a task that asked a model, XCom ``usage`` of each of its instances, in map-index order.
        lost_updates: State keys that two tasks wrote side by side: ``(key, task whose value stayed, task whose is gone)``.
        run_id: Id of the DAG run, which is ADK's session id.
    """

    state: str
    output: Any = None
    outputs: Mapping[str, list[Any]] = field(default_factory=dict)
    session_state: Mapping[str, Any] = field(default_factory=dict)
    error: tuple[str, str] | None = None
    task_states: Mapping[str, list[str]] = field(default_factory=dict)
    labels: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    node_runs: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    usage: Mapping[str, Any] | None = None
    task_usage: Mapping[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    lost_updates: tuple[tuple[str, str, str], ...] = ()
    run_id: str = ""


def use_airflow_home(home: str | Path) -> Path:
    """Points this process to an Airflow of its own in ``home`` (SQLite, no examples) and makes its database.

    Raises:
        RuntimeError: Airflow was imported already and would not notice.
    """
    if "airflow.settings" in sys.modules or "airflow.configuration" in sys.modules:
        raise RuntimeError("use_airflow_home() must come before the first import of airflow: call it in conftest.py")
    home = Path(home).resolve()
    dags = home / "dags"
    dags.mkdir(parents=True, exist_ok=True)
    os.environ.update(
        AIRFLOW_HOME=str(home),
        AIRFLOW__CORE__DAGS_FOLDER=str(dags),
        AIRFLOW__CORE__LOAD_EXAMPLES="False",
        AIRFLOW__CORE__UNIT_TEST_MODE="False",
        AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{home / 'airflow.db'}",
    )
    from airflow.utils import db

    if not (home / "airflow.db").exists():
        db.initdb()
    return home


def current_dag() -> DAG | None:
    """The DAG that is being tested, None when there is none; the DAG file in the DAGs folder returns it."""
    return _current[-1] if _current else None


def run_workflow(
    workflow: Any,
    *,
    input: Any = "",
    state: Mapping[str, Any] | None = None,
    mode: Mode = "tasks",
    nodes: Mapping[str, NodeOptions] | None = None,
    llm_conn_id: str | None = None,
    logical_date: datetime | None = None,
) -> WorkflowRun:
    """Makes an ``AdkDag`` of the workflow and runs it once.

    Args:
        workflow: As for ``AdkDag``.
        input: The user message.
        state: The initial session state (the DAG's params).
        mode: As for ``AdkDag``.
        nodes: As for ``AdkDag``.
        llm_conn_id: As for ``AdkDag``.
        logical_date: The run's logical date; now if not given.
    """
    from airflow.sdk import Param

    from adk_airflow.dag import AdkDag

    dag = AdkDag(
        workflow,
        mode=mode,
        nodes=nodes,
        llm_conn_id=llm_conn_id,
        schedule=None,
        params={"input": Param(input), **{key: Param(value) for key, value in (state or {}).items()}},
    )
    return run_dag(dag, logical_date=logical_date)


def run_dag(dag: DAG, *, conf: Mapping[str, Any] | None = None, logical_date: datetime | None = None) -> WorkflowRun:
    """Runs any DAG once, in this process, and reads what its ADK tasks left.

    Args:
        dag: The DAG; made in the test or imported.
        conf: The run's configuration; keys that are params override them, in this run only.
        logical_date: The run's logical date, in UTC where it has no time zone; now if not given.

    Raises:
        RuntimeError: ``use_airflow_home`` was not called, or an event loop runs already.
        TypeError: It is no DAG.
    """
    from airflow.sdk import DAG, timezone
    from airflow.sdk import conf as settings

    if not isinstance(dag, DAG):
        raise TypeError(f"run_dag() takes a DAG, not a {type(dag).__name__}; run_workflow() takes a workflow")
    if _loop_runs():
        raise RuntimeError("a DAG run starts event loops of its own, so the test must be a plain function, not `async def`")
    folder = Path(settings.get("core", "dags_folder"))
    if not folder.is_dir():
        raise RuntimeError(
            f"there is no folder {str(folder)!r}: call use_airflow_home() in conftest.py, before airflow is imported"
        )
    (folder / _DAG_FILE).write_text(_DAG_SOURCE)
    dates: dict[str, Any] = {} if logical_date is None else {"logical_date": timezone.coerce_datetime(logical_date)}
    with _as_imported(dag, str(folder / _DAG_FILE)), _failures() as failed:
        dag_run = dag.test(run_conf=copy.deepcopy(dict(conf or {})), **dates)
    return _read(dag, dag_run, failed)


@contextlib.contextmanager
def _failures() -> Iterator[list[tuple[str, str]]]:
    """``(type, message)`` of each failure that Airflow is told of meanwhile, also before or behind the run of a node."""
    from airflow.listeners import hookimpl
    from airflow.sdk.listener import get_listener_manager

    from adk_airflow.runtime.failures import error_text

    failed: list[tuple[str, str]] = []

    class Listener:
        @hookimpl
        def on_task_instance_failed(self, error: str | BaseException | None) -> None:
            if isinstance(error, BaseException):
                failed.append((type(error).__name__, error_text(error)))

    manager, listener = get_listener_manager(), Listener()
    manager.pm.register(listener)
    try:
        yield failed
    finally:
        manager.pm.unregister(listener)


@contextlib.contextmanager
def _as_imported(dag: DAG, file: str) -> Iterator[None]:
    """The DAG is the one under test, from that file; at the end it is what it was, as if each run imported it anew.

    Airflow writes a run's configuration into the DAG's own params, because its task processes keep no DAG.
    """
    from airflow.sdk import Param

    holders = [dag.params, *(task.params or {} for task in dag.tasks)]
    found = [holder.get_param(key) if hasattr(holder, "get_param") else holder[key] for holder in holders for key in holder]
    params = {id(param): (param, param.value) for param in found if isinstance(param, Param)}
    for param, value in params.values():
        if param.has_value:
            param.value = copy.deepcopy(value)
    was = dag.fileloc
    dag.fileloc = file
    _current.append(dag)
    try:
        yield
    finally:
        _current.pop()
        dag.fileloc = was
        for param, value in params.values():
            param.value = value


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _read(dag: DAG, dag_run: Any, failed: list[tuple[str, str]]) -> WorkflowRun:
    from adk_airflow.runtime.record.usage import XCOM_RUN

    instances = sorted(dag_run.get_task_instances(), key=lambda ti: (ti.task_id, ti.map_index))
    states: dict[str, list[str]] = {}
    labels: dict[str, dict[int, str]] = {}
    for ti in instances:
        states.setdefault(ti.task_id, []).append(str(getattr(ti.state, "value", ti.state)))
        if ti.map_index >= 0:
            labels.setdefault(ti.task_id, {})[ti.map_index] = str(ti.rendered_map_index)
    envelopes = _envelopes(dag_run, instances)
    plan = getattr(dag, "plan", None)
    result = None if plan is None else envelopes.get((plan.result, -1))
    output = None if plan is None or result is None else result.last_output(plan.result_node)[1]
    errors = [envelope.error for envelope in envelopes.values() if envelope.error is not None]
    return WorkflowRun(
        state=str(getattr(dag_run.state, "value", dag_run.state)),
        output=output,
        outputs=_outputs(envelopes),
        session_state=_state(envelopes),
        error=next(iter([*errors, *failed]), None),
        task_states=states,
        labels=labels,
        node_runs=_node_runs(dag_run),
        usage=None if plan is None else _xcoms(dag_run, XCOM_RUN).get((plan.result, -1)),
        task_usage=_task_usage(dag_run),
        lost_updates=tuple(dict.fromkeys((i.key, i.kept, i.lost) for e in envelopes.values() for i in e.lost)),
        run_id=dag_run.run_id,
    )


def _node_runs(dag_run: Any) -> dict[str, list[dict[str, Any]]]:
    from adk_airflow import records
    from adk_airflow.runtime.record.transcript import XCOM_KEY

    found: dict[str, list[dict[str, Any]]] = {}
    for (task_id, map_index), reference in sorted(_xcoms(dag_run, XCOM_KEY).items()):
        with contextlib.suppress(records.RecordError):  # it could not be written: the task's log says so
            entries = records.read(dag_run.dag_id, dag_run.run_id, task_id, map_index, reference["try"])
            found.setdefault(task_id, []).extend(_node_run(entry) for entry in entries if entry["kind"] == "node")
    return found


def _task_usage(dag_run: Any) -> dict[str, list[Mapping[str, Any]]]:
    from adk_airflow.runtime.record.usage import XCOM_USAGE

    found: dict[str, list[Mapping[str, Any]]] = {}
    for (task_id, _), value in sorted(_xcoms(dag_run, XCOM_USAGE).items()):
        found.setdefault(task_id, []).append(value)
    return found


def _node_run(entry: Mapping[str, Any]) -> dict[str, Any]:
    iteration = entry["path"].rpartition("@")[2]
    shown = {name: entry.get(name) for name in ("path", "status", "route", "seconds", "error")}
    return {**shown, "node": entry["name"], "iteration": int(iteration) if iteration.isdecimal() else iteration}


def _envelopes(dag_run: Any, instances: list[Any]) -> dict[tuple[str, int], Envelope]:
    """The envelopes by task id and map index: in the order in which the tasks ended, mapped instances in that of the list."""
    from adk_airflow.runtime.wire.envelope import XCOM_KEY, Envelope

    texts = _xcoms(dag_run, XCOM_KEY)
    ended: dict[str, str] = {}
    for ti in instances:
        ended[ti.task_id] = max(ended.get(ti.task_id, ""), str(ti.end_date or ""))
    order = sorted(texts, key=lambda key: (ended.get(key[0], ""), key))
    return {key: Envelope.loads(texts[key], task=key[0]) for key in order}


def _xcoms(dag_run: Any, name: str) -> dict[tuple[str, int], Any]:
    from airflow.models.xcom import XComModel
    from airflow.sdk.execution_time.xcom import XCom
    from airflow.utils.session import create_session

    with create_session() as session:
        rows = session.query(XComModel).filter_by(dag_id=dag_run.dag_id, run_id=dag_run.run_id, key=name)
        return {(row.task_id, row.map_index): XCom.deserialize_value(row) for row in rows}


def _outputs(envelopes: Mapping[tuple[str, int], Envelope]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for (task_id, _), envelope in envelopes.items():
        for firing in envelope.firings:
            if firing.output is not None:
                group, _, name = task_id.rpartition(".")
                if firing.node == "__START__":
                    continue
                of_group = name != firing.node and group.rpartition(".")[2] == firing.node
                where = group if of_group else f"{group}.{firing.node}" if group else firing.node
                found.setdefault(where, []).append(firing.output)
    return found


def _state(envelopes: Mapping[tuple[str, int], Envelope]) -> dict[str, Any]:
    from adk_airflow.runtime.wire import codec, lineage

    merged = lineage.merge(envelope.state for envelope in envelopes.values())
    state = {key: codec.decode(entry.value) for key, entry in merged.state.items()}
    return {key: value for key, value in state.items() if not key.startswith(("temp:", "airflow:"))}
