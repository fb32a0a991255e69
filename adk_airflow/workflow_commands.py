"""The commands ``plan``, ``draw`` and ``run``: they show a workflow, and run it, without Airflow. Each returns an exit code."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
import traceback
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adk_airflow.errors import AdkAirflowError

if TYPE_CHECKING:
    from adk_airflow.runtime.adk.runner import RunResult
    from adk_airflow.runtime.record.entries import Entry
    from adk_airflow.runtime.source import Source
    from adk_airflow.translator.plan import Mode, Plan

Nodes = Mapping[str, Mapping[str, Any]]

_SHOWN = 100


def plan(workflow: str, *, mode: Mode, nodes: Nodes, as_json: bool) -> int:
    """Prints what a workflow becomes in Airflow.

    Args:
        workflow: ``package.module:attribute``; the current directory and ``./dags`` can be imported from.
        mode: As for ``AdkDag``.
        nodes: Per-node arguments, as for ``AdkDag``.
        as_json: Print the whole plan as JSON.
    """
    from adk_airflow.translator.show import as_text

    try:
        made = _plan(workflow, mode, nodes)
    except AdkAirflowError as error:
        return _fail(str(error))
    print(made.to_json() if as_json else as_text(made))
    return 0


def write_plan(workflow: str) -> int:
    """Writes what a DAG file needs of a workflow, beside its module, for deployments whose folders are read-only.

    Args:
        workflow: As for ``plan``.
    """
    from adk_airflow.translator.saved import save

    try:
        with _importable():
            path = save(workflow)
    except (AdkAirflowError, ValueError, OSError) as error:
        return _fail(str(error))
    print(f"Written: {path}")
    return 0


def draw(workflow: str, *, mode: Mode, nodes: Nodes, output: Path | None) -> int:
    """Draws what a workflow becomes in Airflow.

    Args:
        workflow: As for ``plan``.
        mode: As for ``AdkDag``.
        nodes: As for ``AdkDag``.
        output: A file whose name ends in ``.mmd``; None prints the drawing.
    """
    from adk_airflow.translator.show import as_mermaid

    if output is not None and output.suffix.lower() != ".mmd":
        return _fail(f"cannot draw {str(output)!r}: give a name that ends in .mmd (Mermaid)")
    try:
        made = _plan(workflow, mode, nodes)
    except AdkAirflowError as error:
        return _fail(str(error))
    text = as_mermaid(made)
    if output is None:
        print(text)
        return 0
    try:
        output.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        return _fail(f"cannot write {str(output)!r}: {error.strerror or error}")
    print(f"{output}: {len(made.tasks)} tasks of {made.workflow}")
    return 0


def run(workflow: str, *, input: str, state: Mapping[str, Any], as_json: bool) -> int:
    """Runs a workflow in this process, in ADK's own Runner, and prints each node run as it ends, then the output.

    Args:
        workflow: As for ``plan``.
        input: The user message.
        state: The initial session state.
        as_json: Print one JSON object at the end instead: ``workflow``, ``status`` (``ok``, ``failed`` or ``paused``),
            ``output``, ``error``, ``state``, ``node_runs``. What the nodes print goes to standard error then.

    Returns:
        0 when the workflow came to its end, 1 when a node failed or asks a person.
    """
    try:
        source = _load(workflow)
    except AdkAirflowError as error:
        return _fail(str(error))
    from adk_airflow.runtime.adk.cli import log_no_tracebacks
    from adk_airflow.runtime.adk.runner import RunResult

    # A node's failures are reported as node runs, so a log needs no traceback of them.
    log_no_tracebacks()
    runs: list[Entry] = []

    def report(entry: Entry) -> None:
        if entry.kind != "node":
            return
        runs.append(entry)
        if not as_json:
            print(_run_line(entry), flush=True)

    started = time.monotonic()
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        try:
            result = asyncio.run(_run(source, input, state, report))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # what ADK lets pass, such as a node that calls sys.exit()
            result = RunResult(error=error)
    seconds = time.monotonic() - started
    name = source.workflow.name
    if result.error is not None:
        status, problem = "failed", _failure(name, result)
    elif result.questions:
        status, problem = "paused", _pause(name, result)
    else:
        status, problem = "ok", ""
    output = result.firings[-1].output if result.firings and not problem else None
    if as_json:
        print(_as_json({"workflow": name, "status": status, "output": output, "error": problem, **_rest(result, runs)}))
    elif not problem:
        print(f"\n{name}: {len(runs)} node runs in {seconds:.1f} s. Output:")
        print(output if isinstance(output, str) else _as_json(output))
    return _fail(problem) if problem else 0


# -- loading -------------------------------------------------------------------------------------------------


def _plan(workflow: str, mode: Mode, nodes: Nodes) -> Plan:
    from adk_airflow.translator import plan_source

    with _importable():
        return plan_source(workflow, mode=mode, nodes=nodes)[1]


def _load(workflow: str) -> Source:
    from adk_airflow.runtime.source import load

    with _importable():
        return load(workflow)


@contextlib.contextmanager
def _importable() -> Iterator[None]:
    """The current directory and ``./dags`` can be imported from, and what a user's module prints goes to standard error.

    It must not get between a plan, a drawing or JSON and the program that reads it.
    """
    # Where Airflow puts its DAGs folder, too: behind everything that is installed.
    for folder in (Path("dags").absolute(), Path.cwd()):
        if folder.is_dir() and str(folder) not in sys.path:
            sys.path.append(str(folder))
    with contextlib.redirect_stdout(sys.stderr):
        yield


def _fail(message: str) -> int:
    print(f"adk-airflow: {' '.join(message.split())}", file=sys.stderr)
    return 1


# -- running -------------------------------------------------------------------------------------------------


async def _run(source: Source, input: str, state: Mapping[str, Any], report: Any) -> RunResult:
    """Runs the workflow."""
    from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService

    from adk_airflow.runtime.adk import engine
    from adk_airflow.runtime.adk.runner import Run
    from adk_airflow.runtime.start import message_of

    run = Run(
        app=source.app,
        workflow=source.workflow,
        session_id=uuid.uuid4().hex,
        message=message_of(input),
        state=dict(state),
        artifact_service=InMemoryArtifactService(),
    )
    run.record.readers.append(report)
    return await engine.run_workflow(run)


def _run_line(entry: Entry) -> str:
    from adk_airflow.translator.plan import shorten

    route, output = entry.content.get("route"), entry.content.get("output")
    details = [f"route {route!r}"] if route is not None else []
    details += [entry.error] if entry.error else []
    details += [_as_json(output, indent=None)] if output is not None else []
    text = "  ".join(shorten(detail, _SHOWN) for detail in details)
    return f"{entry.seconds or 0:8.2f} s  {entry.status:<9}  {entry.path}  {text}".rstrip()


def _failure(name: str, result: RunResult) -> str:
    error = result.error
    assert error is not None
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    at = f"node {result.error_path}" if result.error_path else "the run"
    return f"workflow {name!r}, {at} failed with {type(error).__name__}: {error}{where}"


def _pause(name: str, result: RunResult) -> str:
    """Who asks what."""
    questions = "; ".join(map(str, result.questions))
    return f"workflow {name!r} is paused: {questions}. Nobody can answer here, so the run ends."


def _rest(result: RunResult, runs: list[Entry]) -> dict[str, Any]:
    state = {key: value for key, value in result.state.items() if not key.startswith("temp:")}
    return {"state": state, "node_runs": list(map(_run_row, runs))}


def _run_row(entry: Entry) -> dict[str, Any]:
    content = {name: entry.content.get(name) for name in ("output", "route")}
    return {"path": entry.path, "status": entry.status, **content, "seconds": entry.seconds, "error": entry.error}


def _as_json(value: Any, indent: int | None = 2) -> str:
    """The value as JSON text, in the form in which another task reads it."""
    from adk_airflow.runtime.wire import json_form

    return json.dumps(json_form.as_read(value), indent=indent, ensure_ascii=False)
