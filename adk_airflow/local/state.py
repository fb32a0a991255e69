"""``standalone.json`` in the home folder: what runs there, so that another command finds or ends it."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from adk_airflow.local.errors import AirflowStartError
from adk_airflow.local.processes import ProcessRef

_STATE_FILE = "standalone.json"
_LOCK_FILE = "standalone.lock"
_PORT_FILE = "port"


@dataclass(frozen=True)
class StandaloneState:
    """What one start left to know.

    Attributes:
        url: Address of the UI and the API, without a path.
        dags: The DAGs folder.
        started_at: When, in seconds since the epoch.
        components: The processes, in the order of their start.
        owner: The command that ends them when it ends; None after ``up``.
    """

    url: str
    dags: str
    started_at: float
    components: tuple[ProcessRef, ...] = ()
    owner: ProcessRef | None = None


def read_state(home: Path) -> StandaloneState | None:
    """What was written last, None when there is nothing or nothing readable."""
    try:
        raw = json.loads((home / _STATE_FILE).read_text(encoding="utf-8"))
        return StandaloneState(
            url=str(raw["url"]),
            dags=str(raw["dags"]),
            started_at=float(raw["started_at"]),
            components=tuple(ProcessRef(**ref) for ref in raw["components"]),
            owner=ProcessRef(**raw["owner"]) if raw["owner"] else None,
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_state(home: Path, state: StandaloneState) -> None:
    """Replaces the file in one step: a reader sees the old state or the new one."""
    path = home / _STATE_FILE
    draft = path.with_suffix(".tmp")
    draft.write_text(json.dumps(dataclasses.asdict(state), indent=1), encoding="utf-8")
    os.replace(draft, path)


def kept_port(home: Path) -> int | None:
    """The port of the API server at the last start, so that its address stays the same; None: there was none."""
    try:
        return int((home / _PORT_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def keep_port(home: Path, port: int) -> None:
    """Remembers the port for the next start."""
    (home / _PORT_FILE).write_text(f"{port}\n", encoding="utf-8")


def forget_state(home: Path) -> None:
    """Removes the file; harmless when there is none."""
    (home / _STATE_FILE).unlink(missing_ok=True)


@contextlib.contextmanager
def writable(home: Path) -> Iterator[None]:
    """Tells of what the operating system refuses meanwhile as of a folder that cannot be used.

    Raises:
        AirflowStartError: ``home`` is no folder, or nothing can be written in it.
    """
    try:
        yield
    except OSError as error:
        if os.path.exists(home) and not os.path.isdir(home):
            why = "it is a file"
        else:
            why = error.strerror or str(error)
            why += f" ({error.filename})" if error.filename and str(error.filename) != str(home) else ""
        raise AirflowStartError(f"The folder {home} cannot be used: {why}. Name another folder with --home.") from error


@contextlib.contextmanager
def exclusive(home: Path) -> Iterator[None]:
    """Keeps two commands from starting or ending Airflow in one home at the same time.

    The operating system lets go of the lock when the holder dies, however it dies.

    Raises:
        AirflowStartError: Another command holds it.
        OSError: Nothing can be written in the folder.
    """
    with (home / _LOCK_FILE).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AirflowStartError(
                f"Another adk-airflow command is starting or ending Airflow in {home} right now. "
                "Wait for it, or use another folder with --home."
            ) from None
        yield
