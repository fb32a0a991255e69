"""Places that cannot be written: the disk under artifacts and records, an object store, the database."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.dags.fault_calls import folder_of
from tests.faults.kills import ALONE, found
from tests.faults.rows import Scenario, Table
from tests.faults.stand import STORE, Stand, until
from tests.faults.verdict import calls_of_agent, plan


def places(stand: Stand, table: Table) -> list[Scenario]:
    """One after the other: each breaks what the others use."""
    folder = stand.airflow.home / STORE

    def broken(name: str, dag_id: str, line: str, cause: str, place: Callable[[Path], object]) -> Scenario:
        case = "".join(letter if letter.isalnum() else "-" for letter in name)

        def scenario() -> None:
            with table.row(name) as row:
                if os.geteuid() != 0:
                    row.wrong.append("not run: needs root, to mount a small file system")
                    return
                with place(folder):  # type: ignore[attr-defined]
                    run = stand.start(dag_id, case)

                    def tried() -> bool:
                        [task] = stand.airflow.client.task_instances(run.dag_id, run.run_id)
                        return task["state"] in ("up_for_retry", "failed", "success")

                    until(tried, "the first try", check=stand.airflow.check)
                [task] = stand.airflow.client.task_instances(run.dag_id, run.run_id)
                first = task["state"]
                if first != "success":
                    row.check(cause in stand.logs(run), f"the log of the try does not name the cause, {cause!r}")
                view = stand.finish(run)
                if first == "up_for_retry":
                    row.check(view.state == "success", f"the run {view.state} although the place was there again")
                row.judge(case, calls_of_agent(line, 2))
                row.counted and row.check(row.counted <= 7, "calls were repeated")

        return scenario

    def unreachable() -> None:
        name = "object store that cannot be reached"
        with table.row(name) as row:
            store = "ftp://127.0.0.1:1/adk"
            keys = ("AIRFLOW__ADK_AIRFLOW__ARTIFACTS_URI", "AIRFLOW__ADK_AIRFLOW__TRANSCRIPTS_URI")
            stand.airflow.restart_scheduler(**dict.fromkeys(keys, store), PYTHONPATH=_with_ftp(stand.airflow.home / "ftp"))
            try:
                run, view = stand.run("fault_store", "unreachable")
                row.check(view.state == "failed", f"the run {view.state}")
                log = stand.logs(run)
                row.check("Connection refused" in log, "the log does not name the cause")
                row.check("artifacts_uri" in log or store in log, "the log does not name the place")
                row.judge("unreachable", [])  # it is noticed before the agent is asked
            finally:
                stand.airflow.restart_scheduler(
                    **{key: f"file://{folder}/{at}" for key, at in zip(keys, ("artifacts", "records"), strict=True)}
                )

    def locked() -> None:
        with table.row("database that is locked for 20 s") as row:
            plan("locked", ("alone", "T2"), what="hold")
            run = stand.start("fault_agent", "locked")
            stand.wait_for("locked", "begin", ("alone", "T2"))
            with stand.locked_database(20):
                (folder_of("locked") / "hold" / "alone.T2").unlink()
            view = stand.finish(run, check=stand.airflow.revive)
            row.check(view.state == "success", f"the run {view.state}")
            row.judge("locked", ALONE)
            row.check(row.counted == len(ALONE), "calls were repeated")
            answer = stand.output(run, "ask")
            row.check(answer == found("alone", 7, 14, 21, 28, 35), f"the answer is {answer!r}")

    full, only_read = "No space left on device", "Read-only file system"
    return [
        broken("full disk under artifacts and records, a tool saves an artifact", "fault_store", "saving", full, _full),
        broken("full disk under records, an agent saves nothing", "fault_no_store", "plain", full, _full),
        broken("read-only folder, a tool saves an artifact", "fault_store", "saving", only_read, _read_only),
        broken("read-only folder, an agent saves nothing", "fault_no_store", "plain", only_read, _read_only),
        unreachable,
        locked,
    ]


def _with_ftp(folder: Path) -> str:
    """A search path on which Airflow finds a provider that knows ``ftp://``, and asks no connection for it."""
    information = folder / "fault_ftp-1.0.dist-info"
    information.mkdir(parents=True, exist_ok=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: fault-ftp\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[apache_airflow_provider]\nprovider_info = fault_ftp.store:provider_info\n")
    (folder / "fault_ftp").mkdir(exist_ok=True)
    (folder / "fault_ftp" / "__init__.py").write_text("")
    (folder / "fault_ftp" / "store.py").write_text(_PROVIDER)
    return os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])


_PROVIDER = """
from fsspec.implementations.ftp import FTPFileSystem

schemes = ["ftp"]


def get_fs(conn_id, storage_options):
    return FTPFileSystem(host="127.0.0.1", port=1)


def provider_info():
    return {"package-name": "fault-ftp", "name": "FTP", "description": "FTP", "filesystems": ["fault_ftp.store"]}
"""


@contextmanager
def _full(folder: Path) -> Iterator[None]:
    """A file system of 64 kB, full."""
    with _mounted(folder, "size=64k"):
        with (folder / "filling").open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass
        yield


@contextmanager
def _read_only(folder: Path) -> Iterator[None]:
    with _mounted(folder, "size=1m,ro"):
        yield


@contextmanager
def _mounted(folder: Path, options: str) -> Iterator[None]:
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
