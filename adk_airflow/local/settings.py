"""The environment that makes the ``airflow`` command use one folder, free ports and quick settings."""

from __future__ import annotations

import os
import random
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from adk_airflow.local.errors import AirflowStartError

# Below the ranges from which Linux (32768+) and macOS (49152+) hand out ports by themselves, so that a port
# that was free when it was chosen is still free some seconds later, when the API server binds it.
_PORTS = range(20000, 32000)

HOST = "127.0.0.1"


def free_port(host: str = HOST, *, first: int | None = None) -> int:
    """A TCP port on ``host`` that nobody listens on.

    Args:
        host: The address.
        first: The port to take if it is free.

    Raises:
        AirflowStartError: No free port was found in 200 tries.
    """
    for port in filter(_PORTS.__contains__, [first or 0, *random.sample(_PORTS, 200)]):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            # As the API server binds it: a port of which connections linger since the last end is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return port
    raise AirflowStartError(f"There is no free port between {_PORTS.start} and {_PORTS.stop - 1} on {host}.")


def default_parallelism() -> int:
    """How many tasks run at once: two a core, at least 4, at most 8 (Airflow's own 32 forks 32 workers)."""
    return min(8, max(4, 2 * (os.cpu_count() or 1)))


def airflow_environment(
    *,
    home: Path,
    dags: Path,
    api_port: int,
    log_port: int,
    parent: Mapping[str, str],
    overrides: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Environment variables for every Airflow process that works in ``home``.

    Args:
        home: Becomes ``AIRFLOW_HOME``: configuration, database, logs, passwords.
        dags: The folder with DAG files.
        api_port: Where the API server listens (UI, REST API, and the API that tasks report to).
        log_port: A port nobody listens on. Tasks log into ``home``, where the API server finds the files; the
            port only keeps it from asking the log server of another Airflow on this machine.
        parent: The environment to start from. Its ``AIRFLOW_CONN_*`` and ``AIRFLOW_VAR_*`` are kept; everything
            else of Airflow is dropped, so that a database set in the shell is never touched.
        overrides: Further variables, e.g. ``{"AIRFLOW__CORE__PARALLELISM": "2"}``; they win.
    """
    kept = {
        name: value
        for name, value in parent.items()
        if not name.startswith(("AIRFLOW__", "_AIRFLOW"))
        # PYTHONDONTWRITEBYTECODE: without compiled byte code each process imports Airflow for seconds longer.
        and name not in {"AIRFLOW_HOME", "AIRFLOW_CONFIG", "PYTHONDONTWRITEBYTECODE"}
    }
    url = f"http://{HOST}:{api_port}"
    settings = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": str(default_parallelism()),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
        "AIRFLOW__API__HOST": HOST,
        "AIRFLOW__API__PORT": str(api_port),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(log_port),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(log_port),
        # Measured: with Airflow's defaults a chain of ten small tasks takes three times as long.
        "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.1",
        "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "3",
        "AIRFLOW__DAG_PROCESSOR__BUNDLE_REFRESH_CHECK_INTERVAL": "1",
        # A task's supervisor often misses the very end of its task and looks again after this many seconds,
        # keeping its place from the next task: half of all tasks took 5 s longer with the default of 5.
        "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
        "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
        # Tasks reach the API server on this machine: never through a proxy.
        "NO_PROXY": _with_local(parent.get("NO_PROXY") or parent.get("no_proxy")),
        "no_proxy": _with_local(parent.get("no_proxy") or parent.get("NO_PROXY")),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), parent.get("PATH", os.defpath)]),
        "PYTHONUNBUFFERED": "1",
    }
    if sys.platform == "darwin":
        settings["OBJC_DISABLE_INITIALIZE_FORK_SAFETY"] = "YES"  # LocalExecutor forks
    return {**kept, **settings, **(overrides or {})}


def _with_local(no_proxy: str | None) -> str:
    return ",".join(filter(None, [no_proxy, HOST, "localhost"]))
