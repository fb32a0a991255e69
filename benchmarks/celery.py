"""An Airflow whose tasks run in a Celery worker, over a Redis of its own."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

import psutil

from adk_airflow.local import StandaloneAirflow
from adk_airflow.local.processes import end, start
from adk_airflow.local.settings import free_port

CONCURRENCY = 4


def missing() -> str:
    """What there must be beside this project and is not, in words; nothing where Celery can be measured."""
    if find_spec("airflow.providers.celery") is None:
        return "apache-airflow-providers-celery[redis] is not installed"
    return "" if shutil.which("redis-server") else "there is no redis-server"


@contextlib.contextmanager
def celery_worker(home: Path, dags: Path, settings: Mapping[str, str]) -> Iterator[tuple[StandaloneAirflow, psutil.Process]]:
    """The Airflow, and the worker's first process."""
    with contextlib.ExitStack() as stack:
        broker = f"redis://127.0.0.1:{stack.enter_context(_redis(home))}/0"
        celery = {
            "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
            "AIRFLOW__CELERY__BROKER_URL": broker,
            "AIRFLOW__CELERY__RESULT_BACKEND": broker,
            "AIRFLOW__CELERY__WORKER_CONCURRENCY": str(CONCURRENCY),
        }
        airflow = stack.enter_context(StandaloneAirflow(home, dags, settings={**celery, **settings}))
        scheduler = next(ref for ref in airflow.components if ref.name == "scheduler")
        worker = start(
            "worker",
            ["celery", "worker", "--skip-serve-logs", "--without-mingle", "--without-gossip"],
            env=psutil.Process(scheduler.pid).environ(),
            log=airflow.logs / "worker.log",
            cwd=airflow.home,
        )
        stack.callback(end, [worker], grace=15)
        parent = psutil.Process(worker.pid)
        while len(parent.children()) < CONCURRENCY:
            time.sleep(0.5)
        yield airflow, parent


@contextlib.contextmanager
def _redis(folder: Path) -> Iterator[int]:
    """The port of a Redis of its own that keeps nothing."""
    port = free_port()
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield port
    finally:
        server.terminate()
        server.wait()
