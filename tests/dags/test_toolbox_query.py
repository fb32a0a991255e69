"""The example of an MCP Toolbox server: parsed for free, and run against the real server that its file configures."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from airflow.sdk import DAG

from adk_airflow.testing import run_dag
from tests.servers.fixtures import gemini  # noqa: F401
from tests.servers.gemini import GeminiRequest, GeminiServer, call, text
from tests.servers.toolbox import ToolboxServer

DAGS = Path(__file__).parents[2] / "dags"
Gemini = Callable[[Callable[[GeminiRequest], Any]], GeminiServer]


@pytest.fixture(scope="module")
def dag() -> DAG:
    """The DAG as Airflow finds it: with the DAGs folder at the end of the path."""
    sys.path.append(str(DAGS))
    try:
        import toolbox_query

        found: DAG = toolbox_query.dag
        return found
    finally:
        sys.path.remove(str(DAGS))


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ToolboxServer]:
    config = (DAGS / "adk_workflows" / "toolbox_query.yaml").read_text()
    with ToolboxServer(tmp_path, config) as server:
        monkeypatch.setenv("AIRFLOW_CONN_SHOP_TOOLBOX", json.dumps({"conn_type": "mcp_toolbox", "host": server.url}))
        yield server


def test_a_small_total_needs_no_model(dag: DAG, shop: ToolboxServer) -> None:
    run = run_dag(dag)
    assert run.state == "success"
    assert run.output == "Ada: 2 orders of 19.50 in all, accepted."
    assert run.outputs["summarize"] == [{"customer": "Ada", "orders": 2, "total": 19.5}]
    assert run.task_states["reviewer"] == ["skipped"]
    assert shop.calls == ["orders_of_customer"]
    assert shop.connections_of(psutil.Process()) == 0


def test_a_large_total_is_looked_at_by_an_agent_with_the_same_server(dag: DAG, shop: ToolboxServer, gemini: Gemini) -> None:  # noqa: F811
    def script(request: GeminiRequest) -> Any:
        if request.function_responses:
            return text(f"One order stands out: {request.function_responses[0]['response']['result']}")
        return call("orders_above", {"customer": json.loads(request.last_text)["customer"], "amount": 49.5})

    model = gemini(script)
    run = run_dag(dag, conf={"customer": "Grace", "limit": 50})
    assert run.state == "success"
    assert run.output == 'One order stands out: {"id":2,"total":99}'
    assert run.task_states["accept"] == ["skipped"]
    assert set(model.requests[0].tools) == {"orders_above", "orders_of_customer"}
    assert shop.calls == ["orders_of_customer", "orders_above"]
    assert shop.connections_of(psutil.Process()) == 0


def test_a_customer_without_orders(dag: DAG, shop: ToolboxServer) -> None:
    run = run_dag(dag, conf={"customer": "Nobody"})
    assert run.output == "Nobody: 0 orders of 0.00 in all, accepted."


def test_parsing_the_file_opens_no_socket_and_reads_no_connection() -> None:
    program = """
import sys
sockets = []
sys.addaudithook(lambda event, args: sockets.append(event) if event == "socket.connect" else None)
import toolbox_query
print(sockets, [name for name in ("google.adk.tools.toolbox_toolset", "toolbox_adk", "toolbox_core") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=DAGS, capture_output=True, text=True, check=True, timeout=240)
    assert done.stdout.strip().splitlines()[-1] == "[] []"
