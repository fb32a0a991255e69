"""Seed 000, section 6: ToolboxToolset against the real MCP Toolbox server, as DAG runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest
from google.adk.agents.llm_agent import LlmAgent

from tests.seeds import toolbox as seed
from tests.seeds.as_dag import Script, StartServer, parameters_of, run_agent, run_both
from tests.servers.gemini import GeminiRequest, call
from tests.servers.toolbox import CONFIG, ToolboxServer

PRIVATE = """
authServices:
  staff: {kind: google, clientId: the-client}
"""
PRIVATE_TOOL = """
  salaries:
    kind: sqlite-sql
    source: shop
    description: Lists what only the staff may see.
    authRequired: [staff]
    statement: SELECT count(*) AS salaries FROM orders
toolsets:
  private: [salaries]
"""


@pytest.fixture(scope="module")
def toolbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolboxServer]:
    """One server for all; the agents here only read, and each test counts from where it found the log."""
    config = PRIVATE + CONFIG.replace("toolsets:\n", PRIVATE_TOOL.lstrip("\n"))
    with ToolboxServer(tmp_path_factory.mktemp("toolbox"), config) as server:
        yield server


def asks(tool: str, **arguments: Any) -> Script:
    """A model that calls the tool and quotes what it gave."""

    def script(request: GeminiRequest) -> Any:
        if request.function_responses:
            return f"The shop says {request.function_responses[0]['response']}"
        return call(tool, arguments)

    return script


SELECTIONS = pytest.mark.parametrize(
    ("build", "tools"),
    [
        (
            seed.toolbox_agent,
            {
                "add_order",
                "broken_query",
                "count_orders",
                "orders_above",
                "orders_of_customer",
                "salaries",
                "slow_query",
            },
        ),
        (seed.reading_agent, {"count_orders", "orders_above", "orders_of_customer"}),
        (seed.scoped_agent, {"count_orders", "orders_of_customer"}),
        (seed.writing_agent, {"add_order", "count_orders"}),
    ],
    ids=["example_1_all", "example_2_a_toolset", "example_3_by_name", "both_selectors_together"],
)


@SELECTIONS
def test_the_agent_has_the_tools_that_were_selected_and_calls_them(
    gemini: StartServer, toolbox: ToolboxServer, build: Callable[[str], LlmAgent], tools: set[str]
) -> None:
    before = len(toolbox.calls)

    agent, again = build(toolbox.url), build(toolbox.url)
    both = run_both(gemini(asks("count_orders")), agent, "How many orders?", again=again)

    assert set(both.requests[0].tools) == tools
    assert "3" in both.run.output
    assert toolbox.calls[before:] == ["count_orders"] * 2
    both.assert_same()


def test_the_toolset_is_closed_when_its_task_ends(gemini: StartServer, toolbox: ToolboxServer) -> None:
    gemini(asks("count_orders"))

    run_agent(seed.reading_agent(toolbox.url), "How many orders?")

    assert toolbox.connections_of(psutil.Process()) == 0


def test_a_toolset_that_was_closed_does_not_open_again_as_in_adk(gemini: StartServer, toolbox: ToolboxServer) -> None:
    """A task of Airflow has a process of its own; ConnectionToolboxToolset serves any number of runs in one."""
    gemini(asks("count_orders"))
    agent = seed.scoped_agent(toolbox.url)

    run_agent(agent, "How many orders?")
    again = run_both(gemini(asks("count_orders")), agent, "How many orders?")

    assert again.requests[0].tools == {}
    again.assert_same()


def test_example_4_the_token_is_asked_for_in_the_task_and_the_server_checks_it(
    gemini: StartServer, toolbox: ToolboxServer
) -> None:
    asked: list[str] = []

    def get_api_token() -> str:
        asked.append("token")
        return "not-a-real-token"

    agent, again = (seed.authed_agent(toolbox.url, get_api_token) for _ in range(2))
    assert asked == []

    both = run_both(gemini(asks("salaries")), agent, "How many salaries?", again=again)

    assert asked == ["token", "token"]
    assert list(both.requests[0].tools) == ["salaries"]
    # The real server takes Google's own ID tokens only, so this one is refused.
    assert both.run.error is not None
    assert "unauthorized" in both.run.error[1]
    assert "not-a-real-token" not in f"{both.run}{toolbox.log}"
    both.assert_same()


def test_example_5_bound_parameters_are_not_the_models(gemini: StartServer, toolbox: ToolboxServer) -> None:
    asked: list[str] = []

    def get_customer() -> str:
        asked.append("customer")
        return "Ada"

    server = gemini(asks("orders_above"))
    agent = seed.tenanted_agent(toolbox.url, get_customer)
    assert asked == []
    run = run_agent(agent, "My large orders?")

    assert parameters_of(server.requests[0], "orders_above") == {}
    assert run.output == """The shop says {'result': '{"id":1,"total":12.5}'}"""
    assert asked == ["customer"]


def test_a_server_that_is_not_there_leaves_the_agent_without_tools_as_in_adk(gemini: StartServer) -> None:
    both = run_both(gemini(lambda request: "I have no tools."), seed.reading_agent("http://127.0.0.1:9"), "Hello")

    assert both.requests[0].tools == {}
    assert both.run.output == "I have no tools."
    both.assert_same()
