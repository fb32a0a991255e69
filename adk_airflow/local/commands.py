"""The commands ``demo``, ``up`` and ``down``: what they do and say; each returns an exit code."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn
from urllib.parse import unquote

from rich.console import Console

from adk_airflow.local.client import AirflowClient, Json
from adk_airflow.local.errors import AirflowApiError, StandaloneError
from adk_airflow.local.run import RunView, watch_run
from adk_airflow.local.server import StandaloneAirflow, end_components
from adk_airflow.local.show import make_console, run_progress, show_report, task_line
from adk_airflow.local.state import exclusive, forget_state, read_state

_LOG_LINES = 30
_LOGS_SHOWN = 3
_NO_SCHEDULE = {"AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "False"}


def demo(
    *,
    home: Path,
    dags: Path,
    dag_id: str,
    conf: Mapping[str, Any],
    timeout: float,
    keep: bool = False,
) -> int:
    """Starts Airflow (or uses the one that ``up`` left), runs one DAG, shows its report, ends what it started.

    Args:
        timeout: Seconds for the DAG run.
        keep: Leave Airflow running.

    Returns:
        0 when the run succeeded, otherwise 1.
    """
    console = make_console()
    with _termination_as_interrupt():
        airflow: StandaloneAirflow | None = None
        reused = False
        try:
            airflow = _attach(home, dags)
            reused = airflow is not None
            if airflow is None:
                # Unpausing starts the run that is due by the schedule too; here it would only slow down the other.
                airflow = StandaloneAirflow(home, dags, settings={} if keep else _NO_SCHEDULE)
                _start(console, airflow, detach=False)
            else:
                console.print(f"Using the Airflow that runs in {airflow.home}.", markup=False)
            with AirflowClient(airflow.url, login=airflow.login) as client:
                succeeded = _run_dag(console, airflow, client, dag_id, conf, timeout, stays=keep or reused)
            if keep and not reused:
                airflow.keep()
            if keep or reused:
                _say_where(console, airflow)
            return 0 if succeeded else 1
        except StandaloneError as error:
            console.print(f"\n{error}", style="red", markup=False)
            return 1
        finally:
            if airflow is not None and not reused and not (keep and airflow.owner is None):
                _end(console, airflow)


def up(*, home: Path, dags: Path) -> int:
    """Leaves Airflow running and says where; does nothing more when it already runs."""
    console = make_console()
    with _termination_as_interrupt():
        try:
            running = _attach(home, dags)
            if running is None:
                running = StandaloneAirflow(home, dags)
                _start(console, running, detach=True)
            else:
                console.print(f"Airflow already runs in {running.home}.", markup=False)
            _say_where(console, running)
        except StandaloneError as error:
            console.print(f"\n{error}", style="red", markup=False)
            return 1
    return 0


def down(*, home: Path) -> int:
    """Ends the Airflow that runs in ``home``, also one that is half dead; harmless when there is none."""
    console = make_console()
    home = home.expanduser().resolve()
    state = read_state(home)
    if state is None:
        console.print(f"No Airflow runs in {home}.", markup=False)
        return 0
    try:
        with exclusive(home):
            killed = end_components(state.components, grace=15.0)
            forget_state(home)
    except StandaloneError as error:
        console.print(str(error), style="red", markup=False)
        return 1
    console.print(f"Airflow in {home} is ended{_killed(killed)}.", markup=False)
    return 0


# -- starting and ending -------------------------------------------------------------------------------------


def _attach(home: Path, dags: Path) -> StandaloneAirflow | None:
    running = StandaloneAirflow.attach(home)
    if running is None or running.abandoned:
        return None
    if running.owner:
        raise StandaloneError(
            f"Another adk-airflow command (process {running.owner.pid}) is using {running.home}. "
            "Wait for it to end, or use another folder with --home."
        )
    if running.dags != dags.expanduser().resolve():
        raise StandaloneError(
            f"The Airflow that runs in {running.home} uses the DAGs folder {running.dags}, "
            f"not {dags.resolve()}. End it first (`{_down_command(running.home)}`), or use another folder with --home."
        )
    return running


def _start(console: Console, airflow: StandaloneAirflow, *, detach: bool) -> None:
    console.print(f"Starting Airflow in {airflow.home} (about half a minute) ...", markup=False)
    began = time.monotonic()
    steps: list[str] = []
    with console.status("database, API server, scheduler, DAG processor"):
        airflow.start(detach=detach, on_step=lambda name, seconds: steps.append(f"{name} {seconds:.1f} s"))
    console.print(f"Airflow is healthy: {time.monotonic() - began:.1f} s ({', '.join(steps)})", markup=False)
    console.print(f"  UI {airflow.url}", markup=False)


def _end(console: Console, airflow: StandaloneAirflow) -> None:
    began = time.monotonic()
    with console.status("Ending Airflow"):
        killed = airflow.stop()
    console.print(f"Airflow is ended: {time.monotonic() - began:.1f} s{_killed(killed)}", markup=False)


def _killed(killed: list[str]) -> str:
    return f" (had to be killed: {'; '.join(command[:60] for command in killed)})" if killed else ""


def _down_command(home: Path) -> str:
    """What to type to end the Airflow that runs in ``home``."""
    here = home == Path(".demo").resolve()
    return "make down" if here and Path("Makefile").exists() else f"adk-airflow down --home {home}"


def _say_where(console: Console, airflow: StandaloneAirflow) -> None:
    username, password = airflow.login()
    console.print(
        f"\nAirflow UI   {airflow.url}\nlogin        {username} / {password}\nlogs         {airflow.logs}\n"
        f"end it with  {_down_command(airflow.home)}",
        markup=False,
    )


# -- the run -------------------------------------------------------------------------------------------------


def _run_dag(
    console: Console,
    airflow: StandaloneAirflow,
    client: AirflowClient,
    dag_id: str,
    conf: Mapping[str, Any],
    timeout: float,
    *,
    stays: bool,
) -> bool:
    began = time.monotonic()
    with console.status(f"waiting for the DAG {dag_id}"):
        client.wait_for_dag(dag_id, since=airflow.started_at, check=airflow.check)
    console.print(f"DAG {dag_id} is parsed: {time.monotonic() - began:.1f} s", markup=False)
    was_paused = (client.dag(dag_id) or {}).get("is_paused", False)
    client.unpause(dag_id)
    run_id = str(client.trigger(dag_id, conf=conf)["dag_run_id"])
    console.print(f"Run {run_id}", markup=False)
    with run_progress(console) as progress:
        view = watch_run(client, dag_id, run_id, timeout=timeout, on_look=progress.update, check=airflow.check)
    if was_paused:  # or the next start of this Airflow would begin with a scheduled run that nobody asked for
        client.pause(dag_id)
    page = f"{airflow.url}/dags/{dag_id}/runs/{run_id}" if stays else "`adk-airflow up` in the same home shows it"
    if view.state != "success":
        _show_failure(console, client, dag_id, view)
        console.print(f"\nThe run failed after {view.seconds or 0:.1f} s. In the UI: {page}", style="red", markup=False)
        return False
    console.print()
    show_report(console, _result(client, dag_id, view))
    for folder in _artifact_folders(airflow.home, run_id):
        console.print(f"  in {folder}", markup=False, soft_wrap=True)
    console.print("\nTasks", style="bold")
    for task in view.tasks:
        console.print(task_line(task))
    console.print(f"\nThe run succeeded: {view.seconds or 0:.1f} s. In the UI: {page}", markup=False, soft_wrap=True)
    return True


def _artifact_folders(home: Path, run_id: str) -> list[Path]:
    """Where the run's ADK artifacts lie, when they are in ``home``."""
    return [path for path in (home / "adk_artifacts").glob("*/*/session-*") if unquote(path.name) == f"session-{run_id}"]


def _result(client: AirflowClient, dag_id: str, view: RunView) -> Any:
    """What the run gave: the return value of the last task that has one."""
    for task in reversed(view.tasks):
        if "success" in task.states and not task.is_mapped:
            value = client.xcom(dag_id, view.run["dag_run_id"], task.task_id)
            if value is not None:
                return value
    return None


def _show_failure(console: Console, client: AirflowClient, dag_id: str, view: RunView) -> None:
    console.print("\nTasks", style="bold")
    for task in view.tasks:
        console.print(task_line(task))
    failed = view.failed_instances
    for instance in failed[:_LOGS_SHOWN]:
        console.print(f"\n--- {_name(instance)} failed; the end of its log:", style="red", markup=False)
        console.print("\n".join(_log(client, dag_id, view, instance)), markup=False, soft_wrap=True)
    if len(failed) > _LOGS_SHOWN:
        console.print(f"... and {len(failed) - _LOGS_SHOWN} more failed task instances.", markup=False)


def _log(client: AirflowClient, dag_id: str, view: RunView, instance: Json) -> list[str]:
    try:
        lines = client.log(
            dag_id,
            view.run["dag_run_id"],
            instance["task_id"],
            try_number=max(1, int(instance["try_number"])),
            map_index=instance["map_index"],
        )
    except AirflowApiError as error:
        return [f"(its log could not be read: {error})"]
    return lines[-_LOG_LINES:] or ["(it logged nothing)"]


def _name(instance: Json) -> str:
    item = f"[{instance['map_index']}]" if instance["map_index"] >= 0 else ""
    return f"{instance['task_id']}{item} (try {instance['try_number']})"


@contextlib.contextmanager
def _termination_as_interrupt() -> Iterator[None]:
    """A TERM, or the terminal being closed, ends the command as Ctrl-C does: with everything it started."""

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
