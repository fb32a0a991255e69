"""Workflows whose agents and steps use a real MCP Toolbox server, each as a DAG run."""

from __future__ import annotations

import gc
import json
import socket
from collections.abc import Callable
from typing import Any

import aiohttp
import psutil
import pytest
from adk_airflow_toolbox import ConnectionToolboxToolset
from google.adk.agents import LlmAgent
from google.adk.workflow import JoinNode, RetryConfig, Workflow, node

from adk_airflow.testing import WorkflowRun, run_workflow
from tests.servers.gemini import GeminiRequest, GeminiServer, call, error, text
from tests.servers.toolbox import ToolboxServer

Connect = Callable[..., None]
Gemini = Callable[[Callable[[GeminiRequest], Any]], GeminiServer]
RunUntil = Callable[..., WorkflowRun]
ROWS = [{"id": 1, "total": 12.5}, {"id": 3, "total": 7}]


def clerk(toolset: ConnectionToolboxToolset, name: str = "clerk", **fields: Any) -> LlmAgent:
    return LlmAgent(name=name, model="gemini-2.5-flash", instruction="Answer from the shop.", tools=[toolset], **fields)


def alone(step: Any) -> Workflow:
    return Workflow(name="shop", edges=[("START", step)])


def asks(tool: str, **arguments: Any) -> Callable[[GeminiRequest], Any]:
    """A model that calls the tool, and then says what the tool gave."""

    def script(request: GeminiRequest) -> Any:
        if request.function_responses:
            return text(f"The shop says {request.function_responses[0]['response']['result']}")
        return call(tool, arguments)

    return script


def open_connections(toolbox: ToolboxServer) -> int:
    """Sessions and connections that this process, in which the tasks run, holds open; Gemini's are of another class."""
    sessions = [item for item in gc.get_objects() if type(item) is aiohttp.ClientSession and not item.closed]
    return len(sessions) + toolbox.connections_of(psutil.Process())


# -- as an agent's tools ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["tasks", "embedded"])
def test_an_agent_calls_the_tools_of_the_connection(
    toolbox: ToolboxServer, connect: Connect, gemini: Gemini, mode: str
) -> None:
    connect("shop", host=toolbox.url)
    model = gemini(asks("orders_of_customer", customer="Ada"))
    toolset = ConnectionToolboxToolset("shop", toolset_name="reading")

    for count in (1, 2):  # the same toolset object serves a second run in this process
        run = run_workflow(alone(clerk(toolset)), input="What did Ada order?", mode=mode)
        assert run.state == "success"
        assert run.output == f"The shop says {json.dumps(ROWS, separators=(',', ':'))}"
        assert toolbox.calls == ["orders_of_customer"] * count
        assert toolbox.lists == ["reading"] * count, "the tools are listed once for all turns of the model"
        assert open_connections(toolbox) == 0
    assert set(model.requests[0].tools) == {"count_orders", "orders_above", "orders_of_customer"}


def test_two_agents_with_two_connections_do_not_see_each_others(
    toolbox: ToolboxServer, connect: Connect, gemini: Gemini
) -> None:
    connect("north", host=toolbox.url, extra={"bound_params": {"customer": "Ada"}})
    connect("south", host=toolbox.url, extra={"bound_params": {"customer": "Grace"}})
    gemini(asks("orders_above", amount=0))
    agents = [clerk(ConnectionToolboxToolset(conn_id, tool_names=["orders_above"]), conn_id) for conn_id in ("north", "south")]
    both = JoinNode(name="both")
    run = run_workflow(Workflow(name="shop", edges=[("START", agents[0], both), ("START", agents[1], both)]), input="?")
    assert run.state == "success"
    assert run.output == {
        "north": 'The shop says [{"id":1,"total":12.5},{"id":3,"total":7}]',
        "south": 'The shop says {"id":2,"total":99}',
    }


def test_an_agent_whose_tools_cannot_be_had_fails_before_its_model_is_asked(connect: Connect, gemini: Gemini) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    connect("shop", host=url)
    model = gemini(asks("orders_of_customer"))
    run = run_workflow(alone(clerk(ConnectionToolboxToolset("shop"))), input="?")
    assert run.state == "failed"
    assert run.error is not None
    assert run.error[0] == "ToolboxUnavailableError"
    assert run.error[1].startswith(f"connection 'shop', MCP Toolbox server {url} cannot be reached: ")
    assert model.requests == []


def test_a_session_is_closed_when_the_agent_fails(toolbox: ToolboxServer, connect: Connect, gemini: Gemini) -> None:
    connect("shop", host=toolbox.url)

    def script(request: GeminiRequest) -> Any:
        return error(400, "INVALID_ARGUMENT", "no") if request.function_responses else call("count_orders", {})

    gemini(script)
    run = run_workflow(alone(clerk(ConnectionToolboxToolset("shop"))), input="?")
    assert (run.state, run.error and run.error[0]) == ("failed", "ClientError")
    assert (toolbox.calls, open_connections(toolbox)) == (["count_orders"], 0)


def test_a_session_is_closed_when_the_agent_is_cancelled(
    toolbox: ToolboxServer, connect: Connect, gemini: Gemini, run_until: RunUntil
) -> None:
    connect("shop", host=toolbox.url)
    gemini(asks("slow_query"))
    run_until(clerk(ConnectionToolboxToolset("shop")), lambda: toolbox.calls == ["slow_query"])
    assert open_connections(toolbox) == 0


# -- as a fixed step ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [{"customer": "Ada"}, '{"customer": "Ada"}'])
def test_a_tool_is_a_step_whose_input_is_its_arguments(toolbox: ToolboxServer, connect: Connect, given: Any) -> None:
    connect("shop", host=toolbox.url)
    run = run_workflow(alone(node(ConnectionToolboxToolset("shop").tool("orders_of_customer"))), input=given)
    assert run.state == "success"
    assert json.loads(run.output) == ROWS
    assert (toolbox.calls, open_connections(toolbox)) == (["orders_of_customer"], 0)


def test_a_required_parameter_that_the_input_lacks_comes_from_the_state(toolbox: ToolboxServer, connect: Connect) -> None:
    connect("shop", host=toolbox.url)
    step = node(ConnectionToolboxToolset("shop").tool("orders_above", name="large_orders"))
    run = run_workflow(alone(step), input={"amount": 10}, state={"customer": "Ada", "amount": 1000})
    assert (run.state, run.task_states) == ("success", {"large_orders": ["success"]})
    assert json.loads(run.output) == ROWS[0]


def test_a_step_works_on_each_item_of_a_list(toolbox: ToolboxServer, connect: Connect) -> None:
    connect("shop", host=toolbox.url)

    def customers() -> list[dict[str, str]]:
        return [{"customer": "Ada"}, {"customer": "Grace"}, {"customer": "Nobody"}]

    each = node(ConnectionToolboxToolset("shop").tool("orders_of_customer"), name="each", parallel_worker=True)
    run = run_workflow(Workflow(name="shop", edges=[("START", customers, each)]))
    assert run.state == "success"
    assert [json.loads(rows) for rows in run.output] == [ROWS, {"id": 2, "total": 99}, None]
    assert (sorted(toolbox.calls), open_connections(toolbox)) == (["orders_of_customer"] * 3, 0)


def fails(step: Any, given: Any) -> WorkflowRun:
    run = run_workflow(alone(step), input=given)
    assert run.state == "failed"
    return run


def test_a_tool_that_the_server_does_not_have_fails_the_step(toolbox: ToolboxServer, connect: Connect) -> None:
    connect("shop", host=toolbox.url)
    run = fails(node(ConnectionToolboxToolset("shop", toolset_name="reading").tool("drop_tables")), {})
    assert run.error is not None
    assert run.error[0] == "ToolNotFoundError"
    assert "there is no tool 'drop_tables'. It has the tools add_order," in run.error[1]
    assert open_connections(toolbox) == 0


def test_arguments_that_the_tool_refuses_fail_the_step(toolbox: ToolboxServer, connect: Connect) -> None:
    connect("shop", host=toolbox.url)
    run = fails(node(ConnectionToolboxToolset("shop").tool("orders_above")), {"customer": "Ada", "amount": "many"})
    assert run.error is not None
    assert run.error[0] == "ValidationError"
    assert (toolbox.calls, open_connections(toolbox)) == ([], 0)


def test_what_the_database_refuses_is_the_tools_answer(toolbox: ToolboxServer, connect: Connect) -> None:
    connect("shop", host=toolbox.url)
    run = run_workflow(alone(node(ConnectionToolboxToolset("shop").tool("broken_query"))), input={})
    assert run.state == "success"
    assert "no such table: nowhere" in run.output


def test_a_step_that_is_cancelled_closes_its_session(toolbox: ToolboxServer, connect: Connect, run_until: RunUntil) -> None:
    connect("shop", host=toolbox.url)
    run_until(node(ConnectionToolboxToolset("shop").tool("slow_query")), lambda: toolbox.calls == ["slow_query"], {})
    assert open_connections(toolbox) == 0


def test_a_retry_of_the_step_opens_the_server_anew(toolbox: ToolboxServer, connect: Connect) -> None:
    connect("shop", host=toolbox.url)
    retry = RetryConfig(max_attempts=3, initial_delay=0.01, jitter=0)
    fails(node(ConnectionToolboxToolset("shop").tool("drop_tables"), retry_config=retry), {})
    assert len(toolbox.lists) == 6, "each attempt lists once to open and once to say what there is"
    assert open_connections(toolbox) == 0


def test_a_step_as_an_agents_tool_is_refused(toolbox: ToolboxServer, connect: Connect, gemini: Gemini) -> None:
    connect("shop", host=toolbox.url)
    gemini(asks("count_orders"))
    agent = LlmAgent(name="clerk", model="gemini-2.5-flash", tools=[ConnectionToolboxToolset("shop").tool("count_orders")])
    run = fails(agent, "?")
    assert run.error is not None
    assert run.error[0] == "TypeError"
    assert "Give an agent the toolset" in run.error[1]


# -- secrets ------------------------------------------------------------------------------------------------


def test_no_secret_of_the_connection_leaves_the_task(
    toolbox: ToolboxServer, connect: Connect, gemini: Gemini, caplog: pytest.LogCaptureFixture, capfd: Any
) -> None:
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session

    secret = "hunter2-and-then-some"
    connect("shop", host=toolbox.url, password=secret, extra={"headers": {"Authorization": "Bearer {password}"}})
    gemini(asks("count_orders"))
    run = run_workflow(alone(clerk(ConnectionToolboxToolset("shop", tool_names=["count_orders"]))), input="How many?")
    assert run.output == 'The shop says {"orders":3}'
    with create_session() as session:
        values = [str(row.value) for row in session.query(XComModel).filter_by(run_id=run.run_id)]
    output = capfd.readouterr()
    assert values
    for place in (*values, caplog.text, output.out, output.err):
        assert secret not in place
