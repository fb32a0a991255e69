"""What the tasks of the DAG ``imports`` import of libraries, on a real scheduler with LocalExecutor."""

from __future__ import annotations

import json
import sysconfig
from pathlib import Path

from adk_airflow.local import StandaloneAirflow, watch_run
from tests.scheduler import start, unpaused

_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib", "platstdlib"))
_OURS = ("adk_airflow", "adk_airflow_")


def run_imports(airflow: StandaloneAirflow) -> dict[str, list[str]]:
    """Runs the DAG; gives for each task the libraries that its process imported after it began to parse the DAG file."""
    client = unpaused(airflow, "imports").client
    run_id = client.trigger("imports")["dag_run_id"]
    view = watch_run(client, "imports", run_id, timeout=300, check=airflow.check)
    assert view.state == "success", view.failed_instances
    written = sorted((airflow.home / "imports").glob("*.json"))
    return {
        path.stem: [name for name, origin in json.loads(path.read_text()).items() if is_library(name, origin)]
        for path in written
    }


def imports_of_real_tasks(folder: Path, *, preload: bool) -> dict[str, list[str]]:
    """``run_imports`` on an Airflow of its own in ``folder``."""
    with start(folder, {"AIRFLOW__ADK_AIRFLOW__PRELOAD": str(preload)}) as airflow:
        return run_imports(airflow)


def is_library(name: str, origin: str | None) -> bool:
    """Whether a module is of an installed package, of Python or of this project: nothing that a user edits beside a DAG."""
    if name.partition(".")[0].startswith(_OURS):
        return True
    return origin is None or origin in ("built-in", "frozen") or origin.startswith(_LIBRARIES)
