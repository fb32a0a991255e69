"""How long a DAG file takes to parse, in a process that is forked for it as the DAG processor does."""

from __future__ import annotations

import json
import os
import runpy
import sys
import time
from pathlib import Path

from benchmarks.measure import Row, alternate

DAGS = Path(__file__).parent / "parsed"


def rows(rounds: int) -> list[Row]:
    """A workflow of 100 nodes, given by name, against 100 plain tasks."""
    import airflow.sdk.execution_time.task_runner  # noqa: F401  # what every process that parses DAG files has

    from adk_airflow.preload import preload

    preload()
    found = alternate({name: lambda name=name: _parse(name) for name in ("adk_100", "plain_100")}, rounds)  # type: ignore[misc]
    name, against = "parse of a DAG file with a 100-node workflow", "a plain DAG with 100 tasks"
    return [Row(name, against, "s of CPU", found["adk_100"], found["plain_100"], 1.1)]


def _parse(name: str) -> float:
    """Seconds of processor time, from before the file is read to after its DAG is made."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        sys.path.insert(0, str(DAGS))
        began = time.process_time()
        runpy.run_path(str(DAGS / f"{name}.py"))
        os.write(writing, json.dumps(time.process_time() - began).encode())
        os._exit(0)
    os.close(writing)
    os.wait()
    with os.fdopen(reading) as pipe:
        return float(pipe.read())
