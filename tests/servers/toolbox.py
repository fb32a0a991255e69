"""The real MCP Toolbox server, on a loopback port, with a small SQLite shop.

It comes from npm (`scripts/install-toolbox-server`). A test that needs it fails without it, and says how to get it.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import psutil
import pytest

INSTALLED = Path(__file__).parents[2] / ".tools" / "toolbox-server" / "node_modules" / "@toolbox-sdk"

ORDERS = [(1, "Ada", 12.5), (2, "Grace", 99.0), (3, "Ada", 7.0)]

CONFIG = """
sources:
  shop:
    kind: sqlite
    database: shop.db
tools:
  orders_of_customer:
    kind: sqlite-sql
    source: shop
    description: Lists a customer's orders.
    parameters:
      - {name: customer, type: string, description: Name of the customer.}
    statement: SELECT id, total FROM orders WHERE customer = ? ORDER BY id
  orders_above:
    kind: sqlite-sql
    source: shop
    description: Lists a customer's orders above an amount.
    parameters:
      - {name: customer, type: string, description: Name of the customer.}
      - {name: amount, type: float, description: Smallest total.}
    statement: SELECT id, total FROM orders WHERE customer = ? AND total >= ? ORDER BY id
  add_order:
    kind: sqlite-sql
    source: shop
    description: Adds an order.
    parameters:
      - {name: customer, type: string, description: Name of the customer.}
      - {name: total, type: float, description: What it costs.}
    statement: INSERT INTO orders (customer, total) VALUES (?, ?)
  count_orders:
    kind: sqlite-sql
    source: shop
    description: Counts all orders.
    statement: SELECT count(*) AS orders FROM orders
  broken_query:
    kind: sqlite-sql
    source: shop
    description: Reads a table that is not there.
    statement: SELECT * FROM nowhere
  slow_query:
    kind: sqlite-sql
    source: shop
    description: Counts for a long time.
    statement: >-
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000000) SELECT count(*) AS n FROM n
toolsets:
  reading: [orders_of_customer, orders_above, count_orders]
  writing: [add_order]
"""


def toolbox_binary() -> Path:
    """The server's program: what TOOLBOX_SERVER names, or what the script installed.

    Raises:
        FileNotFoundError: It is not there; says how to get it.
    """
    given = os.environ.get("TOOLBOX_SERVER")
    found = [Path(given)] if given else sorted(INSTALLED.glob("server-*/bin/toolbox*"))
    if not found or not found[0].is_file():
        raise FileNotFoundError(
            f"This test needs the MCP Toolbox server, which is not at {found[0] if found else INSTALLED}."
            " Run scripts/install-toolbox-server (needs npm), or put the path of its program into TOOLBOX_SERVER."
        )
    return found[0]


class ToolboxServer:
    """A running server with a folder of its own; a context manager.

    Args:
        folder: An empty folder.
        config: Its YAML; paths in it are relative to the folder.
        options: Further command-line options.
    """

    def __init__(self, folder: Path, config: str = CONFIG, options: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.database = folder / "shop.db"
        self._log = folder / "server.log"
        self._options = options
        self.port = 0
        (folder / "tools.yaml").write_text(config)
        with contextlib.closing(sqlite3.connect(self.database)) as connection:
            connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, total REAL)")
            connection.executemany("INSERT INTO orders VALUES (?, ?, ?)", ORDERS)
            connection.commit()

    @property
    def url(self) -> str:
        """``http://127.0.0.1:PORT``."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """What the server logged so far."""
        return self._log.read_text()

    @property
    def calls(self) -> list[str]:
        """The tools that were called, in order."""
        return re.findall(r'"tool name: (\w+)"', self.log)

    @property
    def lists(self) -> list[str]:
        """The toolsets that were listed, in order; the default one is the empty text."""
        return re.findall(r'"toolset name: (\w*)"\s*\n[^\n]*"method is: tools/list"', self.log)

    def connections_of(self, process: psutil.Process) -> int:
        """How many connections to this server a process has open."""
        return sum(
            connection.raddr.port == self.port
            for connection in process.net_connections(kind="tcp")
            if connection.raddr and connection.status == psutil.CONN_ESTABLISHED
        )

    def __enter__(self) -> ToolboxServer:
        arguments = ["--config", "tools.yaml", "--port", "0", "--log-level", "DEBUG", "--disable-reload"]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [toolbox_binary(), *arguments, "--disable-version-check", *self._options],
                cwd=self.folder,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + 60
        while "Server ready to serve!" not in self.log or not (ports := self._ports()):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"The MCP Toolbox server did not start:\n{self.log}")
            time.sleep(0.05)
        (self.port,) = ports
        return self

    def _ports(self) -> set[int]:
        with contextlib.suppress(psutil.NoSuchProcess):
            listening = psutil.Process(self._process.pid).net_connections(kind="tcp")
            return {connection.laddr.port for connection in listening if connection.status == psutil.CONN_LISTEN}
        return set()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends the server; nothing happens when it has ended."""
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@pytest.fixture
def toolbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolboxServer]:
    """A running server of this test alone."""
    with ToolboxServer(tmp_path_factory.mktemp("toolbox")) as server:
        yield server
