"""The conformance cases on a running Airflow: a DAG per case in its DAGs folder, its REST API for runs, XComs and logs.

Outputs of ADK's events come back in the tasks' logs, a line each, so that nothing needs to be shared but the DAG files.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

FOLDER = "adk_conformance"
MARK = "adk-conformance-output "
SECONDS_TO_PARSE = 180.0
AT_ONCE = 16

_DAG_FILE = '''"""The conformance cases as DAGs for Airflow; written and removed by tests/conformance/run.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "modules"))

from airflow.sdk import get_parsing_context

import {module}
from on_airflow import make_dags

cases = [case for case in {module}.CASES if case.id in {ids!r}]
globals().update(make_dags(cases, {mode!r}, get_parsing_context().dag_id))
'''


def dag_id_of(case: Any, mode: str) -> str:
    return f"conformance_{mode}_{case.id}"


def make_dags(cases: list[Any], mode: Any, dag_id: str | None) -> dict[str, Any]:
    """The DAGs of the cases that can be built: in a task that of the task, with the case's memory, else all."""
    import run as conformance

    from adk_airflow import AdkDag
    from adk_airflow.errors import AdkAirflowError

    def note(path: str, value: Any) -> None:
        logging.getLogger("adk_conformance").info("%s%s", MARK, json.dumps([path, value]))

    found = {}
    for case in cases:
        name = dag_id_of(case, mode)
        if dag_id not in (None, name):
            continue
        app, _ = conformance.build(case, note)
        if app is None:
            continue
        if dag_id is not None:
            conformance.remember(case.memory)
        with contextlib.suppress(AdkAirflowError):  # refused: the same is seen where the runs are made
            found[name] = AdkDag(
                app, dag_id=name, mode=mode, schedule=None, params=_params(case), is_paused_upon_creation=False
            )
    return found


def _params(case: Any) -> dict[str, Any]:
    from airflow.sdk import Param

    return {"input": Param(case.input), **{key: Param(value) for key, value in case.state.items()}}


@contextlib.contextmanager
def deployed(
    url: str, dags: Path, cases: list[Any], module: Path, mode: Any, *, user: str | None, timeout: float
) -> Iterator[Callable[[Any, str], dict[str, Any]]]:
    """Puts the cases into an Airflow; gives what runs one, while the next ones run already.

    Args:
        url: Address of the API server.
        dags: The DAGs folder, as this machine sees it.
        cases: Those to run.
        module: The file that they come from.
        mode: As for ``AdkDag``.
        user: ``NAME:PASSWORD``; None: the environment variable AIRFLOW_TOKEN is a token.
        timeout: Seconds for all runs together.
    """
    from adk_airflow.local.client import AirflowClient

    def login() -> tuple[str, str]:
        name, _, password = (user or "").partition(":")
        return name, password

    folder = dags / FOLDER
    with AirflowClient(url, login=login) as client:
        if user is None:
            client._http.headers["Authorization"] = f"Bearer {os.environ['AIRFLOW_TOKEN']}"
        try:
            began = time.time()
            run_id = f"conformance-{began:.0f}"
            plans = _plans(cases, mode)
            _write(folder, module, mode, sorted(plans))
            for name, _, _ in plans.values():
                if client.wait_for_dag(name, since=began, timeout=SECONDS_TO_PARSE)["is_paused"]:  # known from before
                    _again(lambda name=name: client.unpause(name))
            end = time.monotonic() + timeout
            waiting = list(plans)

            def run(case: Any, mode: Any) -> dict[str, Any]:
                if case.id not in plans:
                    return _why_not(case, mode)
                ahead = [*plans][: [*plans].index(case.id) + AT_ONCE]
                while waiting and waiting[0] in ahead:
                    name = plans[waiting.pop(0)][0]
                    _again(lambda name=name: client.trigger(name, run_id=run_id))
                return _read(client, case, *plans[case.id], run_id, end)

            yield run
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _again(request: Callable[[], Any]) -> Any:
    """The answer to a request, which is made again where Airflow's database was too busy for it, as SQLite is at times."""
    from adk_airflow.local.errors import AirflowApiError

    end = time.monotonic() + SECONDS_TO_PARSE
    while True:
        try:
            return request()
        except AirflowApiError as error:
            if error.status == 409:  # made by a request that was answered with an error
                return None
            if (error.status or 0) < 500 or time.monotonic() > end:
                raise
        time.sleep(1.0)


def _write(folder: Path, module: Path, mode: str, ids: list[str]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    modules = folder / "modules"
    modules.mkdir(parents=True)
    here = Path(__file__).parent
    for file in {here / "run.py", here / "on_airflow.py", here / "fake_llm.py", module, *module.parent.glob("fake_llm.py")}:
        shutil.copy(file, modules)
    (folder / ".airflowignore").write_text("modules/**\n")
    (folder / "conformance_dags.py").write_text(_DAG_FILE.format(module=module.stem, mode=mode, ids=ids))


def _plans(cases: list[Any], mode: Any) -> dict[str, tuple[str, str, Any]]:
    """By case that becomes a DAG: the DAG's id, the workflow's name and the plan."""
    import run as conformance

    from adk_airflow import plan_workflow
    from adk_airflow.errors import AdkAirflowError

    found = {}
    for case in cases:
        app, _ = conformance.build(case, lambda path, value: None)
        if app is not None:
            with contextlib.suppress(AdkAirflowError):
                found[case.id] = (dag_id_of(case, mode), app.root_agent.name, plan_workflow(app, mode=mode))
    return found


def _why_not(case: Any, mode: Any) -> dict[str, Any]:
    import run as conformance

    from adk_airflow import plan_workflow
    from adk_airflow.errors import AdkAirflowError

    app, failed = conformance.build(case, lambda path, value: None)
    if app is None:
        return failed
    try:
        plan_workflow(app, mode=mode)
    except AdkAirflowError as error:
        return {"status": "refused", "error": f"{type(error).__name__}: {error}"}
    raise AssertionError(f"{case.id} has no run although it can be planned")


def _read(client: Any, case: Any, dag_id: str, name: str, plan: Any, run_id: str, end: float) -> dict[str, Any]:
    """Waits for the run, and gives it in the form of EXPECTED.json."""
    import run as conformance

    from adk_airflow import testing
    from adk_airflow.runtime.wire.envelope import XCOM_KEY, Envelope

    while (state := _again(lambda: client.run(dag_id, run_id))["state"]) not in ("success", "failed"):
        if time.monotonic() > end:
            raise TimeoutError(f"the run {run_id} of {dag_id} is still {state}")
        time.sleep(0.5)
    instances = sorted(
        client.task_instances(dag_id, run_id), key=lambda ti: (ti["end_date"] or "", ti["task_id"], ti["map_index"])
    )
    envelopes, outputs, states = {}, [], {}
    for ti in instances:
        task_id, index = ti["task_id"], ti["map_index"]
        states.setdefault(task_id, []).append(str(ti["state"]))
        text = client.xcom(dag_id, run_id, task_id, XCOM_KEY, map_index=index)
        if text is not None:
            envelopes[task_id, index] = Envelope.loads(text, task=task_id)
        if ti["start_date"] and ti["try_number"]:
            for line in client.log(dag_id, run_id, task_id, try_number=ti["try_number"], map_index=index):
                if MARK in line:
                    outputs.append(tuple(json.loads(line.partition(MARK)[2])))
    result = envelopes.get((plan.result, -1))
    errors = [envelope.error for envelope in envelopes.values() if envelope.error is not None]
    found = SimpleNamespace(
        state=state,
        output=None if result is None else result.last_output(plan.result_node)[1],
        outputs=testing._outputs(envelopes),
        session_state=testing._state(envelopes),
        error=errors[0] if errors else None,
        task_states=states,
    )
    return conformance.result_of(found, name, outputs)
