"""AdkToolOperator: a tool's call as a task, with the contract of as_node, and the life of a toolset."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from airflow.sdk import DAG, task
from google.adk.tools import FunctionTool, LongRunningFunctionTool, google_search
from google.genai import types

from adk_airflow import AdkToolOperator
from adk_airflow.errors import ToolLoadError, UnsupportedToolError
from adk_airflow.testing import WorkflowRun, run_dag
from tests.operators import agents

Use = Callable[..., WorkflowRun]


@pytest.mark.parametrize(
    "tool",
    ["tests.operators.agents:add", agents.add, FunctionTool(agents.add)],
    ids=["reference", "function", "tool"],
)
def test_a_tool_is_called_with_its_arguments(use: Use, tool: Any) -> None:
    run = use(tool=tool, arguments={"a": 1, "b": 2})

    assert run.outputs == {"add": [{"sum": 3}]}
    assert run.task_states == {"use": ["success"]}


def shout(text: str, times: int = 1) -> str:
    return (text.upper() + "!") * times


def test_the_arguments_are_a_template(use: Use) -> None:
    run = use(tool=shout, arguments={"text": "{{ params.word }}"}, params={"word": "hi"})

    assert run.outputs == {"shout": ["HI!"]}


def test_what_upstream_tasks_give_keeps_its_type_and_ordinary_tasks_read_the_result() -> None:
    seen = []

    @task
    def number() -> int:
        return 2

    @task
    def read(result: Any) -> None:
        seen.append(result)

    with DAG("using", schedule=None) as dag:
        read(AdkToolOperator(task_id="use", tool=shout, arguments={"text": "hi", "times": number()}).output)

    assert run_dag(dag).state == "success"
    assert seen == ["HI!HI!"]


def half(number: int) -> int | None:
    return None if number % 2 else number // 2


def test_a_result_of_none_keeps_its_place_in_the_list_of_a_mapped_task() -> None:
    seen = []

    @task
    def after(halves: list[int | None]) -> None:
        seen.extend(halves)

    with DAG("mapped_none", schedule=None) as dag:
        mapped = AdkToolOperator.partial(task_id="use", tool=half).expand(
            arguments=[{"number": 2}, {"number": 3}, {"number": 4}]
        )
        after(mapped.output)

    assert run_dag(dag).state == "success"
    assert seen == [1, None, 2]


def test_it_is_mapped() -> None:
    with DAG("using", schedule=None) as dag:
        AdkToolOperator.partial(task_id="use", tool=agents.add).expand(arguments=[{"a": 1, "b": 2}, {"a": 3, "b": 4}])

    assert run_dag(dag).outputs == {"add": [{"sum": 3}, {"sum": 7}]}


def test_a_required_parameter_is_read_from_the_state_which_is_that_given_or_the_params(use: Use) -> None:
    assert use(tool=agents.add, arguments={"a": 1}, params={"b": 4}).outputs == {"add": [{"sum": 5}]}
    assert use(tool=agents.add, arguments='{"a": 1}', state={"b": 9}).outputs == {"add": [{"sum": 10}]}


async def keep(text: str, tool_context: Any) -> str:
    tool_context.state["kept"] = text
    version = await tool_context.save_artifact("kept.txt", types.Part(text=text))
    return f"version {version}"


async def fetch(tool_context: Any) -> str:
    return str((await tool_context.load_artifact("kept.txt")).text)


def test_its_state_and_artifacts_are_kept_and_the_dags_other_tasks_find_the_artifacts() -> None:
    with DAG("keeping", schedule=None) as dag:
        first = AdkToolOperator(task_id="first", tool=keep, arguments={"text": "bees"})
        first >> AdkToolOperator(task_id="second", tool=fetch)
    run = run_dag(dag)

    assert run.outputs == {"keep": ["version 0"], "fetch": ["bees"]}
    assert run.session_state == {"kept": "bees"}


def test_no_result_is_no_output(use: Use) -> None:
    for tool in (agents.nothing, LongRunningFunctionTool(agents.nothing)):
        run = use(tool=tool)

        assert (run.state, run.outputs) == ("success", {})


def test_an_error_map_and_the_placeholder_of_a_confirmation_are_results(use: Use) -> None:
    assert "mandatory" in use(tool=agents.add, arguments={"a": 1}).outputs["add"][0]["error"]
    confirmed = FunctionTool(agents.add, require_confirmation=True)
    assert "requires confirmation" in use(tool=confirmed, arguments={"a": 1, "b": 2}).outputs["add"][0]["error"]


def test_an_exception_is_the_tasks_error(use: Use) -> None:
    def broken(tool_context: Any) -> None:
        tool_context.state["tried"] = True
        raise ConnectionError("nobody answers")

    run = use(tool=broken)

    assert run.error == ("ConnectionError", "nobody answers")
    assert run.session_state == {"tried": True}


def test_arguments_that_are_no_map_fail(use: Use) -> None:
    run = use(tool=shout, arguments="just text")

    assert run.error is not None
    assert run.error[0] == "ToolInputError"
    assert "cannot become arguments of tool 'shout'" in run.error[1]


# A toolset's tool


def test_a_toolset_is_opened_in_the_task_and_closed_after_it(use: Use) -> None:
    shop = agents.Shop()
    run = use(
        toolset=shop, tool_name="price", arguments={"item": "{{ params.item }}"}, params={"item": "hive", "customer": "Ada"}
    )

    assert run.outputs == {"price": [{"item": "hive", "price": 4}]}
    assert run.session_state["last_item"] == "hive"
    assert shop.log == ["opened for Ada", "price of hive", "closed"]


def test_a_toolset_is_closed_when_its_tool_fails(use: Use) -> None:
    shop = agents.Shop()
    run = use(toolset=shop, tool_name="broken")

    assert run.error == ("ConnectionError", "the shop is closed")
    assert shop.log == ["opened for nobody", "closed"]


def test_a_toolset_is_closed_when_the_task_is_cancelled(use: Use) -> None:
    class Cancelled(agents.Shop):
        async def slow(self) -> None:
            # What the supervisor sends when the task is marked in the UI:
            asyncio.get_running_loop().call_later(0.1, os.kill, os.getpid(), signal.SIGTERM)
            await super().slow()

    shop = Cancelled()
    run = use(toolset=shop, tool_name="slow")

    assert run.task_states == {"use": ["failed"]}
    assert shop.log == ["opened for nobody", "slow started", "closed"]


def test_a_function_makes_the_toolset_in_the_task(use: Use) -> None:
    before = len(agents.shops)
    run = use(toolset="tests.operators.agents:open_shop", tool_name="price", arguments={"item": "hive"})

    assert run.outputs == {"price": [{"item": "hive", "price": 4}]}
    assert [shop.log[-1] for shop in agents.shops[before:]] == ["closed"]


def test_a_tool_is_named_with_its_toolsets_prefix(use: Use) -> None:
    shop = agents.Shop(tool_name_prefix="shop")

    assert use(toolset=shop, tool_name="shop_price", arguments={"item": "hive"}).outputs["shop_price"][0]["price"] == 4


def test_a_tool_that_the_toolset_does_not_have_is_an_error_that_lists_those_it_has(use: Use) -> None:
    shop = agents.Shop()
    run = use(toolset=shop, tool_name="weight")

    assert run.error == ("ToolLoadError", "Shop has no tool 'weight'. Its tools are: broken, price, slow.")
    assert shop.log == ["opened for nobody", "closed"]


# What is refused


def test_a_tool_that_works_only_inside_a_model_call_is_refused() -> None:
    with pytest.raises(UnsupportedToolError, match="Give it to an LlmAgent"):
        AdkToolOperator(task_id="use", tool=google_search).load()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"tool": "tests.operators.agents:MODEL"}, "a str is no tool"),
        ({"tool": "tests.operators.agents:nowhere"}, "has no attribute 'nowhere'"),
        ({"tool": agents.Shop()}, "a Shop is a toolset: give it as toolset="),
        ({"toolset": "tests.operators.agents:MODEL", "tool_name": "price"}, "is no toolset but a str"),
    ],
    ids=["no tool", "nothing", "a toolset", "no toolset"],
)
def test_what_is_no_tool_is_named_with_the_reason(arguments: Any, why: str) -> None:
    with pytest.raises(ToolLoadError, match=why):
        AdkToolOperator(task_id="use", **arguments).load()


def test_a_tool_or_a_toolset_with_a_name_must_be_given() -> None:
    for arguments in ({}, {"tool": shout, "toolset": agents.Shop()}):
        with pytest.raises(TypeError, match="'use' takes either a tool, or a toolset"):
            AdkToolOperator(task_id="use", **arguments)
    with pytest.raises(TypeError, match="'use': toolset and tool_name belong together"):
        AdkToolOperator(task_id="use", toolset=agents.Shop())


# What it costs to parse


def test_a_dag_file_with_references_is_parsed_without_adk() -> None:
    code = """
import sys
from airflow.sdk import DAG, task
from adk_airflow import AdkAgentOperator, AdkToolOperator
from adk_airflow.decorators import adk_agent, adk_tool
with DAG("parsed", schedule=None):
    AdkAgentOperator(task_id="a", agent="my_agents.writer:root_agent", prompt="x")
    AdkToolOperator(task_id="b", tool="my_agents.tools:add", arguments={})
    adk_agent(lambda: "x", agent="my_agents.writer:root_agent", task_id="c")()
    adk_tool(lambda: {}, toolset="my_agents.tools:shop", tool_name="price", task_id="d")()
heavy = [name for name in sys.modules if name.startswith(("google.adk", "google.genai", "llama_index", "my_agents"))]
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
