"""The commands ``demo``, ``up`` and ``down``: what they do and say; each returns an exit code.

Errors, and the logs of failed tasks, go to standard error, as they are: a terminal wraps long lines, a file keeps them.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
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
from adk_airflow.local.state import exclusive, forget_state, read_state, writable
from adk_airflow.local.switched_on import switched_on

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
                console.print(f"Using the Airflow that runs in {airflow.home}.", markup=False, soft_wrap=True)
            with AirflowClient(airflow.url, login=airflow.login) as client:
                succeeded = _run_dag(console, airflow, client, dag_id, conf, timeout, stays=keep or reused)
            if keep and not reused:
                airflow.keep()
            if keep or reused:
                _say_where(console, airflow)
            return 0 if succeeded else 1
        except StandaloneError as error:
            return _fail(error)
        finally:
            if airflow is not None and airflow.components and not reused and not (keep and airflow.owner is None):
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
                console.print(f"Airflow already runs in {running.home}.", markup=False, soft_wrap=True)
            _say_where(console, running)
        except StandaloneError as error:
            return _fail(error)
    return 0


def down(*, home: Path) -> int:
    """Ends the Airflow that runs in ``home``, also one that is half dead; harmless when there is none."""
    console = make_console()
    home = Path(os.path.expanduser(home)).resolve()
    state = read_state(home)
    if state is None:
        console.print(f"No Airflow runs in {home}.", markup=False, soft_wrap=True)
        return 0
    try:
        with writable(home), exclusive(home):
            killed = end_components(state.components, grace=15.0)
            forget_state(home)
    except StandaloneError as error:
        return _fail(error)
    console.print(f"Airflow in {home} is ended{_killed(killed)}.", markup=False, soft_wrap=True)
    return 0


def _fail(error: object) -> int:
    """Says what went wrong, and gives the exit code for it."""
    sys.stdout.flush()  # what was said before comes before it also where both go into one file
    print(f"adk-airflow: {error}", file=sys.stderr)
    return 1


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
    if running.dags != Path(os.path.expanduser(dags)).resolve():
        raise StandaloneError(
            f"The Airflow that runs in {running.home} uses the DAGs folder {running.dags}, "
            f"not {dags.resolve()}. End it first (`{_down_command(running.home)}`), or use another folder with --home."
        )
    return running


def _start(console: Console, airflow: StandaloneAirflow, *, detach: bool) -> None:
    airflow.make_home()
    console.print(f"Starting Airflow in {airflow.home} (about half a minute) ...", markup=False, soft_wrap=True)
    began = time.monotonic()
    steps: list[str] = []
    with console.status("database, API server, scheduler, DAG processor"):
        airflow.start(detach=detach, on_step=lambda name, seconds: steps.append(f"{name} {seconds:.1f} s"))
    console.print(f"Airflow is healthy: {time.monotonic() - began:.1f} s ({', '.join(steps)})", markup=False, soft_wrap=True)
    console.print(f"  UI {airflow.url}", markup=False, soft_wrap=True)


def _end(console: Console, airflow: StandaloneAirflow) -> None:
    began = time.monotonic()
    with console.status("Ending Airflow"):
        killed = airflow.stop()
    console.print(f"Airflow is ended: {time.monotonic() - began:.1f} s{_killed(killed)}", markup=False, soft_wrap=True)


def _killed(killed: list[str]) -> str:
    return f" (had to be killed: {'; '.join(command[:60] for command in killed)})" if killed else ""


def _down_command(home: Path) -> str:
    """What to type to end the Airflow that runs in ``home``."""
    return "make down" if _is_of_make(home) else f"adk-airflow down --home {shlex.quote(str(home))}"


def _up_command(home: Path, dags: Path) -> str:
    """What to type to start Airflow in ``home`` again."""
    if _is_of_make(home):
        return "make up"
    return f"adk-airflow up --home {shlex.quote(str(home))} --dags {shlex.quote(str(dags))}"


def _is_of_make(home: Path) -> bool:
    """Whether it is the folder that this project's Makefile names."""
    return home == Path(".demo").resolve() and Path("Makefile").exists()


def _say_where(console: Console, airflow: StandaloneAirflow) -> None:
    username, password = airflow.login()
    console.print(
        f"\nAirflow UI   {airflow.url}\nlogin        {username} / {password}\nlogs         {airflow.logs}\n"
        f"end it with  {_down_command(airflow.home)}",
        markup=False,
        soft_wrap=True,
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
        client.wait_for_dag(dag_id, dags=airflow.dags, since=airflow.started_at, check=airflow.check)
    console.print(f"DAG {dag_id} is parsed: {time.monotonic() - began:.1f} s", markup=False, soft_wrap=True)
    _check_pools(airflow, client, dag_id)
    # A date, as Airflow's form for a run gives it: templates such as {{ ds }} have one.
    run = {"conf": conf, "logical_date": datetime.now(UTC)}
    with switched_on(client, airflow.home, dag_id, run) as run_id:
        console.print(f"Run {run_id}", markup=False, soft_wrap=True)
        with run_progress(console) as progress:
            view = watch_run(client, dag_id, run_id, timeout=timeout, on_look=progress.update, check=airflow.check)
    page = f"{airflow.url}/dags/{dag_id}/runs/{run_id}"
    page = page if stays else f"`{_up_command(airflow.home, airflow.dags)}`, then {page}"
    if view.state != "success":
        _show_failure(console, client, dag_id, view)
        _fail(f"The run failed after {view.seconds or 0:.1f} s. In the UI: {page}")
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


def _check_pools(airflow: StandaloneAirflow, client: AirflowClient, dag_id: str) -> None:
    """Refuses a run that would never end.

    Raises:
        StandaloneError: A task uses a pool that is not there, in which Airflow leaves it `scheduled` without a word.
    """
    for pool, tasks in client.missing_pools(dag_id).items():
        raise StandaloneError(
            f"There is no pool {pool!r}, which {', '.join(tasks)} of the DAG {dag_id!r} uses: it would never start. Make it:"
            f" `{_up_command(airflow.home, airflow.dags)}`, then Admin, Pools in the UI, or"
            f" AIRFLOW_HOME={shlex.quote(str(airflow.home))} airflow pools set {shlex.quote(pool)} SLOTS DESCRIPTION."
        )


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
    sys.stdout.flush()
    for instance in failed[:_LOGS_SHOWN]:
        print(f"\n--- {_name(instance)} failed; the end of its log:", file=sys.stderr)
        print("\n".join(_log(client, dag_id, view, instance)), file=sys.stderr)
    if len(failed) > _LOGS_SHOWN:
        print(f"... and {len(failed) - _LOGS_SHOWN} more failed task instances.", file=sys.stderr)


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
