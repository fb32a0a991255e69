"""Runs the conformance cases through real DAG runs and compares them with what ADK gave in-process.

    python tests/conformance/run.py CASES.py EXPECTED.json [--mode tasks|embedded] [--only ID,ID] [--json FILE]
        [--airflow URL --dags DIR --user NAME:PASSWORD]

Compared exactly: status, output, final state, error type; and as a multiset the outputs per node path. Prints a line per
disagreement and ``N of M agree`` last. Exit 0 only when every disagreement is documented in ``documented.json`` beside
this file. Cases tagged ``hitl`` wait for human input in Airflow and are counted as left out.

With ``--airflow`` the DAG runs are those of a running Airflow, whatever its executor, where each task is a process: DIR is its
DAGs folder as this machine sees it, in which a folder ``adk_conformance`` is made, and removed at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import importlib.util
import json
import logging
import os
import re
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def recorded(value: Any) -> Any:
    """A value in the form of EXPECTED.json."""
    from google.genai import types
    from pydantic import BaseModel

    if isinstance(value, types.Content):
        return {"$content": texts_of(value), "role": value.role}
    if isinstance(value, BaseModel):
        return {"$model": type(value).__name__, **recorded(value.model_dump(exclude_none=True))}
    if isinstance(value, (bytes, bytearray)):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {str(key): recorded(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return {"$tuple": [recorded(item) for item in value]}
    if isinstance(value, list):
        return [recorded(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return {"$set": sorted(map(repr, value))}
    if value is None or isinstance(value, (str, int, float)):
        return value
    return {"$repr": type(value).__name__}


def texts_of(content: Any) -> list[str]:
    """What each part of a Content is, in the form of EXPECTED.json."""
    found = []
    for part in content.parts or []:
        if part.text is not None:
            found.append(part.text)
        elif part.inline_data:
            found.append(f"<{part.inline_data.mime_type}>")
        elif part.function_call:
            found.append(f"<call {part.function_call.name}>")
        elif part.function_response:
            found.append(f"<response {part.function_response.name}>")
    return found


def make_recorder(note: Callable[[str, Any], None]) -> Any:
    """An ADK plugin that notes path and output of every event: what ADK's own record of a case was made from."""
    from google.adk.plugins.base_plugin import BasePlugin

    class Recorder(BasePlugin):
        def __init__(self) -> None:
            super().__init__(name="recorder")

        async def on_event_callback(self, *, invocation_context: Any, event: Any) -> None:
            # Of a message that is the output EXPECTED.json has all parts, thoughts too.
            if event.node_info.message_as_output:
                note(event.node_info.path or "", "".join(texts_of(event.content)) if event.content else "")
            elif event.output is not None:
                note(event.node_info.path or "", recorded(event.output))

    return Recorder()


def per_node(outputs: list[Any]) -> list[str]:
    """Outputs per node path without run numbers, as a multiset."""
    return sorted(json.dumps([re.sub(r"@[^/]*", "", path), value], sort_keys=True) for path, value in outputs)


def remember(texts: Sequence[str]) -> None:
    """Gives the tasks ADK's in-memory memory service, holding a session per text, under a URI scheme of its own."""
    from google.adk import Event
    from google.adk.cli.service_registry import get_service_registry
    from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
    from google.adk.sessions.session import Session

    service = InMemoryMemoryService()
    for number, text in enumerate(texts):
        session = Session(app_name="corpus", user_id="airflow", id=f"old{number}")
        session.events.append(Event(author="user", message=text))
        asyncio.run(service.add_session_to_memory(session))
    get_service_registry().register_memory_service("conformance", lambda uri, **_: service)
    os.environ["AIRFLOW__ADK_AIRFLOW__MEMORY_SERVICE_URI"] = "conformance://memory"


def build(case: Any, note: Callable[[str, Any], None]) -> tuple[Any, dict[str, Any]]:
    """The case as an App, or None and what it is in the form of EXPECTED.json where it cannot be built."""
    from google.adk.apps.app import App

    try:
        root = case.build()
    except Exception as error:
        return None, {"status": "build_error", "error": type(error).__name__}
    return App(name="corpus", root_agent=root, plugins=[make_recorder(note)]), {}


def run_case(case: Any, mode: str) -> dict[str, Any]:
    """One case as a DAG run, in the form of EXPECTED.json (status, output, state, error, outputs)."""
    from adk_airflow.errors import AdkAirflowError
    from adk_airflow.testing import run_workflow

    outputs: list[tuple[str, Any]] = []
    app, failed = build(case, lambda path, value: outputs.append((path, value)))
    if app is None:
        return failed
    remember(case.memory)
    try:
        run = run_workflow(app, input=case.input, state=case.state, mode=mode)
    except AdkAirflowError as error:
        return {"status": "refused", "error": f"{type(error).__name__}: {error}"}
    return result_of(run, app.root_agent.name, outputs)


def result_of(run: Any, name: str, outputs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """A DAG run of the workflow ``name`` in the form of EXPECTED.json."""
    # Of a parallel worker's tasks only the items run in ADK; the list that `collect` makes of them is no event.
    lists = [
        (f"{name}/{task_id.removesuffix('.collect').replace('.', '/')}", recorded(value))
        for task_id in run.task_states
        if task_id.endswith(".collect")
        for value in run.outputs.get(task_id.removesuffix(".collect"), [])
    ]
    return {
        "status": "ok" if run.state == "success" else "error",
        "output": recorded(run.output) if run.state == "success" else None,
        "state": recorded(dict(run.session_state)),
        "error": run.error[0] if run.error else None,
        "outputs": per_node([*outputs, *lists]),
    }


def expected_of(record: dict[str, Any]) -> dict[str, Any]:
    """What EXPECTED.json says, reduced to what is compared."""
    status = record["status"]
    found: dict[str, Any] = {"status": status, "error": record.get("error", {}).get("type")}
    if status != "build_error":
        found |= {"output": record["output"], "state": record["state"], "outputs": per_node(record["outputs"])}
    return found


def differences(want: dict[str, Any], got: dict[str, Any]) -> list[str]:
    keys = [key for key in want if key in got or want[key] is not None]
    return [f"{key}: ADK {want[key]!r}, here {got.get(key)!r}" for key in keys if not same(want[key], got.get(key))]


def same(want: Any, got: Any) -> bool:
    """Whether two recorded values are the same, type included: ``True`` is not ``1``, and a NaN is a NaN."""
    return json.dumps(want, sort_keys=True) == json.dumps(got, sort_keys=True)


def load_module(path: Path) -> Any:
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def compare(
    cases: list[Any], expected: dict[str, Any], mode: str, run: Callable[[Any, str], dict[str, Any]] = run_case
) -> dict[str, list[str]]:
    """Runs the cases; gives for each disagreeing one what differs."""
    found: dict[str, list[str]] = {}
    for case in cases:
        try:
            got = run(case, mode)
        except Exception:
            got = {"status": "crash", "error": traceback.format_exc(limit=-3)}
        wrong = differences(expected_of(expected[case.id]), got)
        if wrong:
            found[case.id] = wrong
            print(f"{case.id}: {'; '.join(wrong)}", flush=True)
    return found


def deployed(args: argparse.Namespace, cases: list[Any]) -> Any:
    """The cases on a running Airflow, see ``on_airflow.py``."""
    sys.path.insert(0, str(HERE))
    from on_airflow import deployed

    module = args.cases.resolve()
    return deployed(args.airflow, args.dags, cases, module, args.mode, user=args.user, timeout=args.timeout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("cases", type=Path, help="Python file with CASES; its folder is importable")
    parser.add_argument("expected", type=Path, help="JSON file with what ADK gives for each")
    parser.add_argument("--mode", choices=("tasks", "embedded"), default="tasks", help="a task per node, or one for all")
    parser.add_argument("--only", default="", metavar="ID,ID", help="run these cases only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the disagreements here")
    parser.add_argument("--airflow", metavar="URL", help="run them on this Airflow instead of in this process")
    parser.add_argument("--dags", type=Path, metavar="DIR", help="with --airflow: its DAGs folder, to be written here")
    parser.add_argument("--user", metavar="NAME:PASSWORD", help="with --airflow: who logs in; else $AIRFLOW_TOKEN is the token")
    parser.add_argument(
        "--timeout", type=float, default=1800.0, metavar="SECONDS", help="with --airflow: for all runs (%(default).0f)"
    )
    args = parser.parse_args()
    if args.airflow and not (args.dags and args.dags.is_dir()):
        parser.error("--airflow needs --dags, the folder in which that Airflow looks for DAG files")
    if args.airflow and not (args.user or os.environ.get("AIRFLOW_TOKEN")):
        parser.error("--airflow needs --user NAME:PASSWORD, or a token in the environment variable AIRFLOW_TOKEN")

    os.environ["AIRFLOW__LOGGING__LOGGING_LEVEL"] = "CRITICAL"
    warnings.simplefilter("ignore")
    from adk_airflow.testing import use_airflow_home

    with tempfile.TemporaryDirectory() as home:
        use_airflow_home(home)
        logging.disable(logging.CRITICAL)
        only = set(filter(None, args.only.split(",")))
        everything = [case for case in load_module(args.cases).CASES if not only or case.id in only]
        expected = json.loads(args.expected.read_text())["cases"]
        cases = [case for case in everything if "hitl" not in case.tags and expected[case.id]["status"] != "paused"]
        if args.airflow:
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # else the DAG files would stay
            with deployed(args, cases) as run:
                found = compare(cases, expected, args.mode, run)
        else:
            found = compare(cases, expected, args.mode)
    lists = json.loads((HERE / "documented.json").read_text())
    documented = {*lists[args.mode], *(lists["tasks in processes"] if args.airflow and args.mode == "tasks" else [])}
    if args.json:
        args.json.write_text(json.dumps({"mode": args.mode, "cases": len(cases), "differences": found}, indent=1))
    if left_out := len(everything) - len(cases):
        print(f"{left_out} cases that need a person's answer were left out")
    unknown = sorted(found.keys() - documented)
    if known := sorted(found.keys() & documented):
        print(f"documented in docs/differences.md: {', '.join(known)}")
    if unknown:
        print(f"not documented: {', '.join(unknown)}")
    print(f"{len(cases) - len(found)} of {len(cases)} agree")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
