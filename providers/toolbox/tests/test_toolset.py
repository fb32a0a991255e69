"""The toolset against the real server, outside of a DAG: what it opens, offers and says when that fails."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from adk_airflow_toolbox import ConnectionToolboxToolset, ToolboxConfigError, ToolboxUnavailableError, ToolNotFoundError
from google.adk.agents import config_agent_utils

from tests.servers.toolbox import ToolboxServer

Connect = Callable[..., None]


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Connect:
    """Makes an Airflow connection, as a secrets backend would."""

    def make(conn_id: str, **fields: Any) -> None:
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps({"conn_type": "mcp_toolbox", **fields}))

    return make


def names(toolset: ConnectionToolboxToolset) -> list[str]:
    async def ask() -> list[str]:
        try:
            return [tool.name for tool in await toolset.get_tools_with_prefix()]
        finally:
            await toolset.close()

    return asyncio.run(ask())


def refusal(toolset: ConnectionToolboxToolset, kind: type[Exception]) -> str:
    with pytest.raises(kind) as refused:
        names(toolset)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__ or refused.value.__context__ is None
    return str(refused.value)


ALL = ["add_order", "broken_query", "count_orders", "orders_above", "orders_of_customer", "slow_query"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, ALL),
        ({"toolset_name": "writing"}, ["add_order"]),
        ({"tool_names": ["count_orders"]}, ["count_orders"]),
        ({"toolset_name": "writing", "tool_names": ["count_orders"]}, ["add_order", "count_orders"]),
        ({"tool_filter": ["add_order", "orders_above"]}, ["add_order", "orders_above"]),
        ({"toolset_name": "writing", "tool_name_prefix": "shop"}, ["shop_add_order"]),
    ],
)
def test_it_offers_the_tools_that_are_asked_for(
    toolbox: ToolboxServer, connect: Connect, arguments: dict[str, Any], expected: list[str]
) -> None:
    connect("shop", host=toolbox.url)
    assert sorted(names(ConnectionToolboxToolset("shop", **arguments))) == expected


def test_the_server_is_asked_once_until_the_toolset_is_closed_and_again_when_it_is_opened_again(
    toolbox: ToolboxServer, connect: Connect
) -> None:
    connect("shop", host=toolbox.url)
    toolset = ConnectionToolboxToolset("shop", toolset_name="writing")
    me = psutil.Process()

    async def use() -> None:
        first, second = await asyncio.gather(toolset.get_tools(), toolset.get_tools())
        assert first == second
        assert toolbox.connections_of(me) == 1
        await toolset.close()
        await toolset.close()

    assert toolbox.connections_of(me) == 0
    asyncio.run(use())
    assert (toolbox.lists, toolbox.connections_of(me)) == (["writing"], 0)
    asyncio.run(use())  # on another event loop
    assert (toolbox.lists, toolbox.connections_of(me)) == (["writing", "writing"], 0)


def test_parameters_of_the_connection_are_bound_where_a_tool_has_them(toolbox: ToolboxServer, connect: Connect) -> None:
    connect("shop", host=toolbox.url, extra={"bound_params": {"customer": "Ada", "warehouse": 7}})
    toolset = ConnectionToolboxToolset("shop", toolset_name="reading")

    async def use() -> tuple[dict[str, list[str]], Any]:
        try:
            tools = {tool.name: tool for tool in await toolset.get_tools()}
            left = {}
            for name, tool in tools.items():
                parameters = tool._get_declaration().parameters
                left[name] = sorted(parameters.properties) if parameters else []
            return left, await tools["orders_above"].run_async(args={"amount": 10.0}, tool_context=None)
        finally:
            await toolset.close()

    left, answer = asyncio.run(use())
    assert left == {"count_orders": [], "orders_above": ["amount"], "orders_of_customer": []}
    assert json.loads(answer) == {"id": 1, "total": 12.5}  # Toolbox gives one row as an object, several as a list


def test_an_agent_in_yaml_names_it_with_its_arguments(toolbox: ToolboxServer, connect: Connect, tmp_path: Path) -> None:
    connect("shop", host=toolbox.url)
    config = tmp_path / "root_agent.yaml"
    config.write_text("""
name: clerk
model: gemini-2.5-flash
instruction: Answer from the shop.
tools:
  - name: adk_airflow_toolbox.ConnectionToolboxToolset
    args: {conn_id: shop, toolset_name: writing}
""")
    (toolset,) = config_agent_utils.from_config(str(config)).tools
    assert type(toolset) is ConnectionToolboxToolset
    assert names(toolset) == ["add_order"]


# -- what goes wrong ----------------------------------------------------------------------------------------


def test_a_tool_that_is_not_there_is_named_with_those_that_are(toolbox: ToolboxServer, connect: Connect) -> None:
    connect("shop", host=toolbox.url)
    text = refusal(ConnectionToolboxToolset("shop", tool_names=["count_orders", "drop_tables"]), ToolNotFoundError)
    assert text == (
        f"connection 'shop', MCP Toolbox server {toolbox.url}: there is no tool 'drop_tables'. It has the tools"
        " add_order, broken_query, count_orders, orders_above, orders_of_customer, slow_query."
    )
    assert toolbox.connections_of(psutil.Process()) == 0


def test_a_toolset_that_is_not_there_is_named_with_the_tools_that_are(toolbox: ToolboxServer, connect: Connect) -> None:
    connect("shop", host=toolbox.url)
    text = refusal(ConnectionToolboxToolset("shop", toolset_name="selling"), ToolNotFoundError)
    assert (
        f"connection 'shop', MCP Toolbox server {toolbox.url}: there is no toolset 'selling'. It has the tools add_order,"
        in text
    )


def test_a_bound_parameter_that_no_tool_has_is_refused(toolbox: ToolboxServer, connect: Connect) -> None:
    connect("shop", host=toolbox.url)
    text = refusal(ConnectionToolboxToolset("shop", toolset_name="writing", bound_params={"tenant": 1}), ToolboxConfigError)
    assert "connection 'shop'" in text
    assert "tenant" in text


def test_a_server_that_does_not_run_is_named(connect: Connect) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    connect("shop", host=url)
    with pytest.raises(ToolboxUnavailableError) as refused:
        names(ConnectionToolboxToolset("shop"))
    assert refused.value.permanent is False  # it may come back
    text = refusal(ConnectionToolboxToolset("shop"), ToolboxUnavailableError)
    assert text.startswith(f"connection 'shop', MCP Toolbox server {url} cannot be reached: ")
    assert text.endswith("Does it run, and is the connection's URL right?")


def test_a_server_that_does_not_answer_in_time_is_named(connect: Connect) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        connect("shop", host=url)
        text = refusal(ConnectionToolboxToolset("shop", open_timeout=0.3), ToolboxUnavailableError)
    assert (
        text == f"connection 'shop', MCP Toolbox server {url}: no answer within 0.3 s. Is the server well, and its URL right?"
    )


def test_another_path_of_the_server_is_no_toolbox(toolbox: ToolboxServer, connect: Connect) -> None:
    connect("shop", host=f"{toolbox.url}/elsewhere")
    text = refusal(ConnectionToolboxToolset("shop"), ToolboxUnavailableError)
    assert text.startswith(f"connection 'shop', MCP Toolbox server {toolbox.url}/elsewhere does not answer as one: ")
    assert "404" in text


def test_a_missing_connection_is_named() -> None:
    text = refusal(ConnectionToolboxToolset("nowhere"), ToolboxConfigError)
    assert ToolboxConfigError.permanent is ToolNotFoundError.permanent is True
    assert text == "Airflow has no connection 'nowhere': add one of the type MCP Toolbox, with the server's URL."


def test_a_server_that_comes_back_is_asked_again(toolbox: ToolboxServer, connect: Connect) -> None:
    toolset = ConnectionToolboxToolset("shop", toolset_name="writing")

    async def use() -> list[str]:
        with pytest.raises(ToolboxConfigError):
            await toolset.get_tools()
        with pytest.raises(ToolboxConfigError):
            await toolset.process_llm_request(tool_context=None, llm_request=None)
        connect("shop", host=toolbox.url)
        try:
            tools = await toolset.get_tools()
            await toolset.process_llm_request(tool_context=None, llm_request=None)
            return [tool.name for tool in tools]
        finally:
            await toolset.close()

    assert asyncio.run(use()) == ["add_order"]
