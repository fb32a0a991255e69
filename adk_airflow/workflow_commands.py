"""The commands ``plan``, ``draw`` and ``run``: they show a workflow, and run it, without Airflow. Each returns an exit code."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from adk_airflow.errors import AdkAirflowError

if TYPE_CHECKING:
    from adk_airflow.runtime.adk.runner import RunResult
    from adk_airflow.runtime.record.entries import Entry
    from adk_airflow.runtime.services.models import ModelConnections
    from adk_airflow.runtime.source import Source
    from adk_airflow.translator.options import NodeOptions
    from adk_airflow.translator.plan import Mode, Plan

Nodes = Mapping[str, Mapping[str, Any]]

# Characters of a value, and of an error, in the line of a node run.
_SHOWN = 100
_SHOWN_OF_ERROR = 300


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


def run(workflow: str, *, input: str, state: Mapping[str, Any], as_json: bool, conn: str | None = None) -> int:
    """Runs a workflow in this process, in ADK's own Runner, and prints each node run as it ends, then the output.

    Args:
        workflow: As for ``plan``.
        input: The user message.
        state: The initial session state. As in a DAG run it also has the keys ``airflow:dag_id``, ``airflow:run_id`` and the
            run's dates: now.
        as_json: Print one JSON object at the end instead: ``workflow``, ``status`` (``ok``, ``failed`` or ``paused``),
            ``output``, ``error``, ``warnings``, ``state``, ``node_runs``. What the nodes print goes to standard error then.
        conn: The Airflow connection that the agents' models get their credentials from, as ``llm_conn_id`` of ``AdkDag``.

    Returns:
        0 when the workflow came to its end, 1 when a node failed or asks a person.
    """
    try:
        source = _load(workflow)
        models = _models(source, conn)
    except AdkAirflowError as error:
        return _fail(str(error))
    from adk_airflow.runtime.adk.cli import short_failures
    from adk_airflow.runtime.adk.runner import RunResult

    runs: list[Entry] = []

    def report(entry: Entry) -> None:
        if entry.kind != "node":
            return
        runs.append(entry)
        if not as_json:
            print(_run_line(entry), flush=True)

    started = time.monotonic()
    # A node's failures are reported as node runs, so google-adk need not log them.
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext(), short_failures():
        try:
            result = asyncio.run(_run(source, input, state, models, report))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # what ADK lets pass, such as a node that calls sys.exit()
            result = RunResult(error=error)
    seconds = time.monotonic() - started
    name = source.workflow.name
    if result.error is not None:
        status, problem = "failed", _failure(source, result)
    elif result.questions:
        status, problem = "paused", _pause(name, result)
    else:
        status, problem = "ok", ""
    output = result.firings[-1].output if result.firings and not problem else None
    warnings = _warnings(source, result, runs)
    if as_json:
        said = {"workflow": name, "status": status, "output": output, "error": problem, "warnings": warnings}
        print(_as_json({**said, **_rest(result, runs)}))
    else:
        if not problem:
            print(f"\n{name}: {_count(len(runs), 'node run')} in {seconds:.1f} s. Output:")
            print(output if isinstance(output, str) else _as_json(output))
        sys.stdout.flush()
        for warning in warnings:
            print(f"adk-airflow: warning: {warning}", file=sys.stderr)
    return _fail(problem) if problem else 0


# -- loading -------------------------------------------------------------------------------------------------


def _plan(workflow: str, mode: Mode, nodes: Nodes) -> Plan:
    from adk_airflow.translator import plan_workflow

    with _importable():
        return plan_workflow(workflow, mode=mode, nodes=cast("Mapping[str, NodeOptions]", nodes))


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


def _models(source: Source, conn: str | None) -> ModelConnections | None:
    """What gives the agents their models.

    Raises:
        ModelConnectionError: There is no such connection, or no installed provider knows its type.
    """
    if conn is None:
        return None
    from adk_airflow.runtime.services.models import read_connections

    return read_connections({"": conn}, where=f"workflow {source.workflow.name!r}")


async def _run(source: Source, input: str, state: Mapping[str, Any], models: ModelConnections | None, report: Any) -> RunResult:
    """Runs the workflow."""
    from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService

    from adk_airflow.runtime import airflow_state
    from adk_airflow.runtime.adk import engine
    from adk_airflow.runtime.adk.runner import Run
    from adk_airflow.runtime.start import message_of

    run_state = airflow_state.of_manual_run(source.workflow.name, datetime.now(UTC))
    run = Run(
        app=source.app,
        workflow=source.workflow,
        session_id=str(run_state["airflow:run_id"]),
        message=message_of(input),
        state={**run_state, **state},
        artifact_service=InMemoryArtifactService(),
        models=models,
    )
    run.record.readers.append(report)
    return await engine.run_workflow(run)


def _run_line(entry: Entry) -> str:
    from adk_airflow.translator.plan import shorten

    route, output = entry.content.get("route"), entry.content.get("output")
    details = [shorten(f"route {route!r}", _SHOWN)] if route is not None else []
    details += [shorten(entry.error, _SHOWN_OF_ERROR)] if entry.error else []
    details += [shorten(_as_json(output, indent=None), _SHOWN)] if output is not None else []
    return f"{entry.seconds or 0:8.2f} s  {entry.status:<9}  {entry.path}  {'  '.join(details)}".rstrip()


def _failure(source: Source, result: RunResult) -> str:
    from adk_airflow.runtime import failures
    from adk_airflow.runtime.adk.parameters import place_of_function

    error = result.error
    assert error is not None
    place = failures.place_of(error) or (place_of_function(source.workflow, result.error_path) if result.error_path else "")
    at = f"node {result.error_path}" if result.error_path else "the run"
    where = f" ({place})" if place and place not in str(getattr(error, "__notes__", "")) else ""
    return f"workflow {source.workflow.name!r}, {at} failed with {failures.words_of(error)}{where}"


def _warnings(source: Source, result: RunResult, runs: Sequence[Entry]) -> list[str]:
    """What went another way than one may think, or would as Airflow tasks."""
    from adk_airflow.runtime.adk.graph import unroutable_run
    from adk_airflow.runtime.wire import codec

    root, ended = source.workflow, [one for one in runs if one.status == "ok"]
    found = [text for one in ended if (text := unroutable_run(root, one.path, one.content.get("route")))]
    held = {f"the output of node {one.path}": output for one in ended if (output := one.content.get("output")) is not None}
    held |= {f"state key {key!r}": value for key, value in result.state.items()}
    found += [
        f"between Airflow tasks {what} could not travel: {why}" for what, value in held.items() if (why := codec.why_not(value))
    ]
    return found


def _pause(name: str, result: RunResult) -> str:
    """Who asks what."""
    questions = "; ".join(map(str, result.questions))
    return f"workflow {name!r} is paused: {questions}. Nobody can answer here, so the run ends."


def _rest(result: RunResult, runs: list[Entry]) -> dict[str, Any]:
    state = {key: value for key, value in result.state.items() if not key.startswith(("temp:", "airflow:"))}
    return {"state": state, "node_runs": list(map(_run_row, runs))}


def _run_row(entry: Entry) -> dict[str, Any]:
    content = {name: entry.content.get(name) for name in ("output", "route")}
    return {"path": entry.path, "status": entry.status, **content, "seconds": entry.seconds, "error": entry.error}


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _as_json(value: Any, indent: int | None = 2) -> str:
    """The value as JSON text, in the form in which another task reads it."""
    from adk_airflow.runtime.wire import json_form

    return json.dumps(json_form.as_read(value), indent=indent, ensure_ascii=False)
