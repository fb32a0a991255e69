"""A PostgreSQL of one's own for the length of a `with` block, in a temporary folder, on a free port."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from adk_airflow.local.settings import HOST, free_port

_USER = "nobody"  # PostgreSQL does not run as root


class Postgres:
    """A running one, with a database ``airflow``."""

    def __init__(self, programs: Path, port: int) -> None:
        self._programs, self._port = programs, port

    @property
    def url(self) -> str:
        return f"postgresql+psycopg2://airflow@{HOST}:{self._port}/airflow"

    def sql(self, statement: str, *, database: str = "airflow") -> subprocess.Popen[bytes]:
        """Begins the statement; wait for the process to know that it is done."""
        psql = shutil.which("psql", path=os.pathsep.join([str(self._programs), os.environ["PATH"]]))
        assert psql, "psql is not installed"
        command = [psql, "-h", HOST, "-p", str(self._port), "-U", "airflow", "-d", database]
        return subprocess.Popen([*command, "-qc", statement], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def postgres() -> Iterator[Postgres]:
    """Starts one.

    Raises:
        RuntimeError: PostgreSQL is not installed.
    """
    programs = _programs()
    user: dict[str, str] = {"user": _USER} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory(prefix="adk-airflow-postgres-") as name:
        folder = Path(name)
        if user:
            shutil.chown(folder, _USER)
        data = folder / "data"
        made = [programs / "initdb", "-D", data, "-U", "airflow", "-A", "trust", "-E", "UTF8"]
        subprocess.run(made, check=True, stdout=subprocess.DEVNULL, cwd=folder, **user)
        port = free_port()
        # The timeout: a killed scheduler's children hold its connections open, and with them the locks on its rows.
        options = [
            f"listen_addresses={HOST}",
            f"unix_socket_directories={folder}",
            "idle_in_transaction_session_timeout=10s",
            "fsync=off",
            "max_connections=200",
        ]
        command = [programs / "postgres", "-D", data, "-p", str(port), *(part for option in options for part in ("-c", option))]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder, **user)
            try:
                server = Postgres(programs, port)
                deadline = time.monotonic() + 60
                while server.sql("select 1", database="postgres").wait():
                    assert process.poll() is None, (folder / "log").read_text()
                    assert time.monotonic() < deadline, "PostgreSQL did not start"
                    time.sleep(0.2)
                assert server.sql("create database airflow", database="postgres").wait() == 0
                yield server
            finally:
                process.send_signal(signal.SIGQUIT)
                process.wait()


def _programs() -> Path:
    """The folder of PostgreSQL's programs, which Debian does not put on the path."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = next((path for path in folders if (path / "initdb").exists()), None) or shutil.which("initdb")
    if not found:
        raise RuntimeError("PostgreSQL is not installed (Debian: apt-get install postgresql), or use --database sqlite")
    return Path(found) if isinstance(found, Path) else Path(found).parent
