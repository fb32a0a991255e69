"""``@task.adk_agent`` and ``@task.adk_tool``, as Airflow finds them by the provider's entry point."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from airflow.sdk import DAG, task
from google.adk.agents import LlmAgent
from pydantic import BaseModel

from adk_airflow.testing import run_dag
from tests.operators import agents
from tests.servers.gemini import GeminiRequest, GeminiServer

Start = Callable[[Callable[[GeminiRequest], Any]], GeminiServer]


def echo(request: GeminiRequest) -> str:
    return f"you said: {request.last_text}"


class City(BaseModel):
    name: str


def test_the_function_says_what_the_agent_is_asked(gemini: Start) -> None:
    gemini(echo)
    seen = []

    @task
    def read(answer: str) -> None:
        seen.append(answer)

    with DAG("decorated", schedule=None, params={"who": "Ada"}) as dag:

        @task.adk_agent(agent="tests.operators.agents:greeter")
        def greet(word: str, params: Any = None, ti: Any = None) -> str:
            return f"{word} {params['who']} {ti.task_id} {{{{ run_id }}}}"

        read(greet("hello"))
    run = run_dag(dag)

    assert run.state == "success"
    assert seen == ["you said: hello Ada greet {{ run_id }}"]  # what it returns is no template


def test_the_function_gives_structured_input(gemini: Start) -> None:
    server = gemini(echo)
    geographer = LlmAgent(name="geographer", model=agents.MODEL, input_schema=City)

    with DAG("decorated", schedule=None) as dag:

        @task.adk_agent(agent=geographer)
        def as_dict() -> dict[str, str]:
            return {"name": "Rome"}

        @task.adk_agent(agent=geographer)
        def as_model() -> City:
            return City(name="Oslo")

        as_dict() >> as_model()
    run = run_dag(dag)

    assert run.state == "success"
    assert [json.loads(request.last_text) for request in server.requests] == [{"name": "Rome"}, {"name": "Oslo"}]


def test_the_function_is_mapped(gemini: Start) -> None:
    gemini(echo)
    with DAG("decorated", schedule=None) as dag:

        @task.adk_agent(agent=agents.greeter)
        def greet(name: str) -> str:
            return name

        @task.adk_tool(tool=agents.add)
        def plus(a: int, b: int) -> dict[str, int]:
            return {"a": a, "b": b}

        greet.expand(name=["Ada", "Alan"])
        plus.partial(b=1).expand(a=[1, 2])
    run = run_dag(dag)

    assert sorted(run.outputs["greeter"]) == ["you said: Ada", "you said: Alan"]
    assert sorted(given["sum"] for given in run.outputs["add"]) == [2, 3]


def test_a_function_that_gives_an_agent_nothing_fails() -> None:
    with DAG("decorated", schedule=None) as dag:

        @task.adk_agent(agent=agents.greeter)
        def greet() -> None: ...

        greet()

    assert run_dag(dag).task_states == {"greet": ["failed"]}


def text_of(number: int) -> str:
    return f"number {number}"


def test_the_function_gives_the_tools_arguments() -> None:
    seen = []

    @task
    def read(*results: Any) -> None:
        seen.extend(results)

    shop = agents.Shop()
    with DAG("decorated", schedule=None) as dag:

        @task.adk_tool(tool=text_of)
        def arguments(number: int) -> dict[str, int]:  # its annotation says nothing of what the tool returns
            return {"number": number}

        @task.adk_tool(toolset=shop, tool_name="price")
        def of_toolset() -> dict[str, str]:
            return {"item": "hive"}

        @task.adk_tool(tool=agents.nothing)
        def no_arguments() -> None: ...

        read(arguments(7), of_toolset(), no_arguments())
    run = run_dag(dag)

    assert run.state == "success"
    assert seen == ["number 7", {"item": "hive", "price": 4}, None]
    assert shop.log[-1] == "closed"


def test_both_are_registered_with_airflow() -> None:
    from airflow.sdk.providers_manager_runtime import ProvidersManagerTaskRuntime

    found = ProvidersManagerTaskRuntime().taskflow_decorators

    assert {"adk_agent", "adk_tool"} <= set(found)


def test_a_function_that_uses_neither_tool_nor_toolset_is_refused() -> None:
    with DAG("decorated", schedule=None):

        @task.adk_tool()
        def arguments() -> None: ...

        with pytest.raises(TypeError, match="'arguments' takes either a tool, or a toolset"):
            arguments()
