"""``StandaloneAirflow``: one real Airflow in a folder of its own, started, watched and ended."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import ClassVar

import psutil

from adk_airflow.local import processes
from adk_airflow.local.client import AirflowClient
from adk_airflow.local.errors import AirflowStartError
from adk_airflow.local.processes import ProcessRef
from adk_airflow.local.settings import HOST, airflow_environment, free_port
from adk_airflow.local.state import (
    StandaloneState,
    exclusive,
    forget_state,
    keep_port,
    kept_port,
    read_state,
    writable,
    write_state,
)
from adk_airflow.local.switched_on import switch_off

USERNAME = "admin"

_UNFINISHED = "unfinished"

Step = Callable[[str, float], None]

# One child per component rather than `airflow standalone`: measured on 2 cores it is healthy after 16 s, not
# 33 s, and a TERM ends it, where `airflow standalone` dies and leaves its components running.
_COMPONENTS: dict[str, list[str]] = {
    "api-server": ["api-server"],
    "dag-processor": ["dag-processor"],
}
# Started when the API answers: a task reports to it, and fails when it does not. Its log server, as the triggerer's, would
# listen on every network interface; here all logs are in one folder anyway.
_SCHEDULER: dict[str, list[str]] = {"scheduler": ["scheduler", "--skip-serve-logs"]}
# Started when the others are up: only deferred tasks need it, and it would slow their start down.
_LATE_COMPONENTS: dict[str, list[str]] = {"triggerer": ["triggerer", "--skip-serve-logs"]}


class StandaloneAirflow:
    """Airflow's scheduler, API server, DAG processor and triggerer on SQLite, in one folder, on free ports.

    Use it as a context manager, or call ``start`` and ``stop``. ``attach`` finds one that another process started.

    Args:
        home: Folder for everything Airflow writes; made when missing, readable by its owner only. It may be
            used again: runs, DAGs and the login are kept.
        dags: The folder with DAG files.
        settings: Further environment variables for Airflow, e.g. ``{"AIRFLOW__CORE__PARALLELISM": "2"}``.
    """

    COMPONENTS: ClassVar[tuple[str, ...]] = (*_COMPONENTS, *_SCHEDULER, *_LATE_COMPONENTS)
    """The Airflow commands that `start` runs, in this order."""

    def __init__(self, home: str | Path, dags: str | Path, *, settings: Mapping[str, str] | None = None) -> None:
        self.home = Path(os.path.expanduser(home)).resolve()
        self.dags = Path(os.path.expanduser(dags)).resolve()
        self._settings = dict(settings or {})
        self._state: StandaloneState | None = None
        self._client: AirflowClient | None = None

    # -- finding a running one ---------------------------------------------------------------------------

    @classmethod
    def attach(cls, home: str | Path) -> StandaloneAirflow | None:
        """The Airflow that runs in ``home`` with all its components, else None."""
        path = Path(os.path.expanduser(home)).resolve()
        state = read_state(path)
        if state is None or not state.components or not all(ref.find() for ref in state.components):
            return None
        airflow = cls(path, state.dags)
        airflow._state = state
        return airflow

    @property
    def owner(self) -> ProcessRef | None:
        """The living command that will end this Airflow when it ends itself; None after ``up``."""
        owner = self._state.owner if self._state else None
        return owner if owner and owner.find() else None

    @property
    def abandoned(self) -> bool:
        """Whether it was to be ended by a command that died without doing so."""
        return bool(self._state and self._state.owner and not self.owner)

    # -- the running one ---------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Address of the UI, ``http://127.0.0.1:PORT``."""
        if self._state is None:
            raise AirflowStartError(f"Airflow in {self.home} is not started.")
        return self._state.url

    @property
    def components(self) -> tuple[ProcessRef, ...]:
        """The processes that were started, first to last."""
        return self._state.components if self._state else ()

    @property
    def started_at(self) -> float:
        """When its components were started, in seconds since the epoch."""
        return self._state.started_at if self._state else 0.0

    @property
    def logs(self) -> Path:
        """The folder with one log file per component."""
        return self.home / "component-logs"

    def login(self) -> tuple[str, str]:
        """User name and password for the UI and the REST API (Airflow's SimpleAuthManager made the password).

        Raises:
            AirflowStartError: There is no password yet.
        """
        path = self.home / "simple_auth_manager_passwords.json.generated"
        try:
            return USERNAME, str(json.loads(path.read_text(encoding="utf-8"))[USERNAME])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise AirflowStartError(
                f"No password for the user {USERNAME!r} in {path} ({type(error).__name__}). Airflow writes "
                "it when its API server starts for the first time; remove that file to have a new one made."
            ) from error

    @property
    def client(self) -> AirflowClient:
        """A REST client that is logged in as the administrator."""
        if self._client is None:
            self._client = AirflowClient(self.url, login=self.login)
        return self._client

    def check(self) -> None:
        """Returns if every component is alive.

        Raises:
            AirflowStartError: One ended by itself; with the last lines of its log.
        """
        for ref in self.components:
            if ref.find() is None:
                raise AirflowStartError(
                    f"Airflow's {ref.name} ended by itself{_exit_code(ref)}. The end of its log, {ref.log}:\n"
                    f"{processes.tail(Path(ref.log))}"
                )

    # -- start and stop ----------------------------------------------------------------------------------

    def start(self, *, timeout: float = 180.0, detach: bool = False, on_step: Step | None = None) -> None:
        """Starts Airflow and returns when it is healthy.

        Args:
            timeout: Seconds that the components may take until they are healthy.
            detach: Leave it running when this process ends (``up``); otherwise a later command takes it for
                abandoned once this process is gone.
            on_step: Called with the name of each finished step and its seconds.

        Raises:
            AirflowStartError: The DAGs folder is missing, the home cannot be written, Airflow already runs in it, the database
                could not be prepared, a component crashed, or it was not healthy in time. Everything that
                was started is ended first.
        """
        step = on_step or (lambda name, seconds: None)
        self.make_home()
        with writable(self.home), exclusive(self.home):
            self._start(timeout, detach, step)

    def make_home(self) -> None:
        """Makes the home folder if it is missing.

        Raises:
            AirflowStartError: It cannot be used, or there is no DAGs folder.
        """
        if not os.path.isdir(self.dags):
            raise AirflowStartError(f"There is no DAGs folder {self.dags}. Name one with --dags.")
        with writable(self.home):
            self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.logs.mkdir(exist_ok=True)

    def _start(self, timeout: float, detach: bool, step: Step) -> None:
        began = time.monotonic()
        if self._clear_leftovers():
            step("ending what was left of an earlier one", time.monotonic() - began)
        port = free_port(first=kept_port(self.home))
        keep_port(self.home, port)
        env = airflow_environment(
            home=self.home,
            dags=self.dags,
            api_port=port,
            log_port=free_port(),
            parent=os.environ,
            overrides=self._settings,
        )
        began = time.monotonic()
        if self._prepare_database(env, timeout):
            step("database", time.monotonic() - began)
        began = time.monotonic()
        self._state = StandaloneState(
            url=f"http://{HOST}:{port}",
            dags=str(self.dags),
            started_at=time.time(),
            owner=None if detach else _this_process(),
        )
        self._client = None
        deadline = began + timeout
        try:
            self._launch(_COMPONENTS, env)
            with AirflowClient(self.url, login=self.login) as client:
                self._wait_for(lambda: client.unhealthy(only=("metadatabase",)), deadline, timeout)
                client.warm_up()
                switch_off(client, self.home)
                self._launch(_SCHEDULER, env)
                self._wait_for(lambda: client.unhealthy(since=self.started_at), deadline, timeout)
            self._launch(_LATE_COMPONENTS, env)
        except BaseException:
            self._stop(grace=5.0)
            raise
        step("components", time.monotonic() - began)

    def stop(self, *, grace: float = 15.0) -> list[str]:
        """Ends every process that ``start`` started and what those started; a second call does nothing.

        Args:
            grace: Seconds for the components to end by themselves before they are killed.

        Returns:
            The command lines of the processes that had to be killed, empty after a clean stop.
        """
        if self._state is None:
            return []
        with writable(self.home), exclusive(self.home):
            return self._stop(grace)

    def keep(self) -> None:
        """Leaves it running when this process ends, as if it had been started with ``detach``."""
        if self._state is not None:
            self._state = dataclasses.replace(self._state, owner=None)
            with writable(self.home):
                write_state(self.home, self._state)

    def __enter__(self) -> StandaloneAirflow:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.stop()

    # -- inside ------------------------------------------------------------------------------------------

    def _stop(self, grace: float) -> list[str]:
        if self._client is not None:
            self._client.close()
            self._client = None
        killed = end_components(self.components, grace=grace)
        if self._state is not None:
            forget_state(self.home)
            self._state = None
        return killed

    def _clear_leftovers(self) -> bool:
        """Ends what an earlier start left half-alive and says whether there was any.

        Raises:
            AirflowStartError: A whole Airflow runs here.
        """
        running = StandaloneAirflow.attach(self.home)
        if running is not None and not running.abandoned:
            by = f"by {running.owner.name} (process {running.owner.pid}) " if running.owner else ""
            raise AirflowStartError(
                f"Airflow already runs in {self.home}, started {by}at {running.url}. "
                "End it first (`adk-airflow down`), or use another folder with --home."
            )
        state = read_state(self.home)
        if state is None:
            return False
        end_components(state.components, grace=10.0)
        forget_state(self.home)
        return True

    def _prepare_database(self, env: Mapping[str, str], timeout: float) -> bool:
        """Makes or migrates the database unless this release of Airflow has done so; says whether it did."""
        database, stamp = self.home / "airflow.db", self.home / "database-version"
        release = version("apache-airflow")
        if database.exists() and _read(stamp) == release:
            return False
        if _read(stamp) == _UNFINISHED:
            database.unlink(missing_ok=True)  # an interrupted first start; Airflow cannot finish such a file
        if not database.exists():
            stamp.write_text(_UNFINISHED, encoding="utf-8")
        log = self.logs / "db-migrate.log"
        with log.open("wb") as output:
            try:
                code = subprocess.run(
                    [sys.executable, "-m", "airflow", "db", "migrate"],
                    env=dict(env),
                    cwd=self.home,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=timeout,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                code = None
        if code != 0:
            what = f"was not done after {timeout:.0f} s" if code is None else f"failed with exit code {code}"
            raise AirflowStartError(
                f"`airflow db migrate` in {self.home} {what}. The end of its log, {log}:\n{processes.tail(log)}"
            )
        stamp.write_text(release, encoding="utf-8")
        return True

    def _launch(self, components: Mapping[str, list[str]], env: Mapping[str, str]) -> None:
        assert self._state is not None
        for name, command in components.items():
            ref = processes.start(name, command, env=env, log=self.logs / f"{name}.log", cwd=self.home)
            self._state = dataclasses.replace(self._state, components=(*self._state.components, ref))
            write_state(self.home, self._state)

    def _wait_for(self, missing: Callable[[], list[str]], deadline: float, timeout: float) -> None:
        """Returns when nothing is missing.

        Raises:
            AirflowStartError: A component ended, or the deadline passed; with the ends of the logs.
        """
        while True:
            self.check()
            if not (waiting_for := missing()):
                return
            if time.monotonic() > deadline:
                tails = "\n".join(f"--- {ref.name}, {ref.log}:\n{processes.tail(Path(ref.log), 12)}" for ref in self.components)
                raise AirflowStartError(
                    f"Airflow in {self.home} was not healthy after {timeout:.0f} s: still waiting for "
                    f"{', '.join(waiting_for)}. The ends of the logs:\n{tails}"
                )
            time.sleep(0.25)


def end_components(components: Iterable[ProcessRef], *, grace: float) -> list[str]:
    """Ends Airflow's components, the API server last: a task that is ended still reports to it."""
    refs = list(components)
    api_server = [ref for ref in refs if ref.name == "api-server"]
    killed: list[str] = []
    try:
        killed += processes.end([ref for ref in refs if ref not in api_server], grace=grace)
    finally:
        killed += processes.end(api_server, grace=grace)
    return killed


def _this_process() -> ProcessRef:
    me = psutil.Process()
    return ProcessRef(name="another adk-airflow command", pid=me.pid, started=me.create_time(), command="")


def _exit_code(ref: ProcessRef) -> str:
    try:
        code = psutil.Process(ref.pid).wait(timeout=0)
    except (psutil.Error, ValueError):
        return ""
    return "" if code is None else f" (exit code {code})"


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return None
