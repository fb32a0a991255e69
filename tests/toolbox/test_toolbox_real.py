"""On a real scheduler with LocalExecutor, and a connection in Airflow's database: a task asks its supervisor for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from adk_airflow.local import StandaloneAirflow, watch_run
from tests.scheduler import unpaused
from tests.servers.toolbox import ToolboxServer
from tests.waiting import until

SECRET = "correct-horse-battery"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolboxServer]:
    with ToolboxServer(tmp_path_factory.mktemp("toolbox")) as server:
        yield server


@pytest.fixture(scope="module")
def airflow(shop: ToolboxServer, scheduler: StandaloneAirflow) -> StandaloneAirflow:
    scheduler.client.request("POST", "/connections", json=connection(shop.url))
    return unpaused(scheduler, "toolbox_query", "slow")


def connection(url: str) -> dict[str, Any]:
    return {
        "connection_id": "shop_toolbox",
        "conn_type": "mcp_toolbox",
        "host": url,
        "password": SECRET,
        "extra": '{"headers": {"Authorization": "Bearer {password}"}}',
    }


def open_connections(shop: ToolboxServer) -> int:
    """Those of any process of this machine."""
    found = psutil.net_connections(kind="tcp")
    return sum(bool(item.raddr) and item.raddr.port == shop.port and item.status == psutil.CONN_ESTABLISHED for item in found)


def test_tasks_read_the_connection_where_they_need_it(airflow: StandaloneAirflow, shop: ToolboxServer) -> None:
    run_id = airflow.client.trigger("toolbox_query", conf={"limit": 0})["dag_run_id"]
    view = watch_run(airflow.client, "toolbox_query", run_id, timeout=240, check=airflow.check)
    ran = [task.task_id for task in view.tasks if task.text in ("success", "failed")]
    logs = {task_id: "\n".join(airflow.client.log("toolbox_query", run_id, task_id)) for task_id in ran}
    assert view.state == "success", logs
    assert airflow.client.xcom("toolbox_query", run_id, "find_orders") == '[{"id":1,"total":12.5},{"id":3,"total":7}]'
    assert airflow.client.xcom("toolbox_query", run_id, "reviewer") == 'The shop says {"id":1,"total":12.5}'
    assert shop.calls == ["orders_of_customer", "orders_above"]
    assert open_connections(shop) == 0
    assert SECRET not in "".join(logs.values())


def test_a_step_that_a_person_stops_ends_its_session(airflow: StandaloneAirflow, shop: ToolboxServer) -> None:
    run_id = airflow.client.trigger("slow")["dag_run_id"]
    until(lambda: "slow_query" in shop.calls)
    assert open_connections(shop) == 1
    path = f"/dags/slow/dagRuns/{run_id}/taskInstances/slow_query"
    airflow.client.request("PATCH", path, json={"new_state": "failed"})
    until(lambda: open_connections(shop) == 0)
    view = watch_run(airflow.client, "slow", run_id, timeout=120, check=airflow.check)
    assert view.state == "failed"
    # Airflow ends a task that does not end by itself; this one did.
    until(lambda: "was cancelled while it ran" in "\n".join(airflow.client.log("slow", run_id, "slow_query")))


def test_the_button_test_connection_answers(airflow: StandaloneAirflow, shop: ToolboxServer) -> None:
    answer = airflow.client.request("POST", "/connections/test", json=connection(shop.url))
    assert answer["status"] is True
    assert answer["message"].startswith("The server answers. It has 6 tools: ")
    answer = airflow.client.request("POST", "/connections/test", json=connection("http://127.0.0.1:9"))
    assert answer["status"] is False
    assert "MCP Toolbox server http://127.0.0.1:9 cannot be reached" in answer["message"]
    assert SECRET not in answer["message"]
