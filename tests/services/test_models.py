"""Agents get their models from Airflow connections, each its own, in its task only."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Connection
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.google_llm import Gemini
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.agent_tool import AgentTool
from google.adk.workflow import START, Workflow, node
from google.genai import types

from adk_airflow.errors import NodeOverrideError
from adk_airflow.testing import WorkflowRun, run_workflow
from adk_airflow.translator import plan_workflow

# An installed provider of the connection type `echo`, whose models say who they are.
_PROVIDER = """
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types

class Echo(BaseLlm):
    key: str

    async def generate_content_async(self, llm_request, stream=False):
        call = [part.function_response for part in llm_request.contents[-1].parts if part.function_response]
        tools = [name for name in llm_request.tools_dict if name != "transfer_to_agent"]
        if tools and not call:
            part = types.Part(function_call=types.FunctionCall(name=tools[0], args={"request": "go"}))
        else:
            heard = f" after {next(iter(call[0].response.values()))}" if call else ""
            part = types.Part(text=f"{self.model} of {self.key}{heard}")
        yield LlmResponse(content=types.Content(role="model", parts=[part]))

def make_llm(model, connection):
    name = model if isinstance(model, str) else model.model
    if name == "refused":
        raise ValueError(f"connection {connection.conn_id!r} has no model 'refused'")
    return Echo(model=name, key=connection.password)
"""


@pytest.fixture(autouse=True)
def provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed distribution, as far as Python can tell, and connections of its type."""
    (tmp_path / "echo_provider.py").write_text(_PROVIDER)
    info = tmp_path / "echo_provider-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: echo-provider\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[adk_airflow.llm]\necho = echo_provider:make_llm\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("one", "two", "three"):
        connection = {"conn_type": "echo", "password": f"key-{name}"}
        monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps(connection))
    monkeypatch.setenv("AIRFLOW_CONN_MAIL", json.dumps({"conn_type": "smtp"}))


def agent(name: str, **fields: Any) -> LlmAgent:
    return LlmAgent(name=name, **{"model": "gemini-x", **fields})


def pair() -> Workflow:
    a, b = agent("a"), agent("b", model="gemini-y")
    return Workflow(name="pair", edges=[(START, a), (a, b)])


def outputs(run: WorkflowRun) -> dict[str, Any]:
    assert run.error is None, run.error
    return {name: values[-1] for name, values in run.outputs.items()}


def test_agents_use_the_connection_and_have_their_own_model_again_afterwards() -> None:
    workflow = pair()

    run = run_workflow(workflow, input="hi", llm_conn_id="one", nodes={"b": {"llm_conn_id": "two"}})

    assert run.outputs == {"a": ["gemini-x of key-one"], "b": ["gemini-y of key-two"]}
    assert workflow.graph is not None
    assert [found.model for found in workflow.graph.nodes if isinstance(found, LlmAgent)] == ["gemini-x", "gemini-y"]


def test_agents_of_one_task_use_each_their_own_connection() -> None:
    """In a region, and in a whole workflow in one task."""
    a, b, c = agent("a"), agent("b"), agent("c")

    def three() -> Workflow:
        return Workflow(name="three", edges=[(START, a), (a, b), (b, c)])

    said: dict[str, str] = {}

    def heard(llm: str) -> Any:
        def keep(callback_context: Any, llm_response: LlmResponse) -> None:
            assert llm_response.content is not None
            said[llm] = str((llm_response.content.parts or [])[0].text)

        return keep

    for found in (a, b, c):
        found.after_model_callback = heard(found.name)
    conns = {"a": {"llm_conn_id": "one"}, "b": {"llm_conn_id": "two"}}
    expected = {"a": "gemini-x of key-one", "b": "gemini-x of key-two", "c": "gemini-x of key-three"}

    embedded = {name: {**conns.get(name, {}), "mode": "embedded"} for name in ("a", "b", "c")}
    run = run_workflow(three(), input="hi", llm_conn_id="three", nodes=embedded)
    assert (list(run.task_states), said) == (["a_region", "workflow_result"], expected)

    said.clear()
    run = run_workflow(three(), input="hi", llm_conn_id="three", nodes=conns, mode="embedded")
    assert (run.output, said) == ("gemini-x of key-three", expected)


def test_an_agent_in_a_tool_a_node_and_a_nested_workflow_uses_it_too() -> None:
    helper = agent("helper", model="gemini-h")
    boss = agent("boss", tools=[AgentTool(agent=helper)])
    deep = Workflow(name="deep", edges=[(START, agent("inner"))])

    @node(rerun_on_resume=True)
    async def dynamic(ctx: Any, node_input: Any) -> Any:
        return await ctx.run_node(agent("made"), node_input=node_input)

    workflow = Workflow(name="places", edges=[(START, boss), (boss, deep), (deep, dynamic)])

    run = run_workflow(workflow, input="hi", llm_conn_id="one", nodes={"deep/inner": {"llm_conn_id": "two"}})

    found = outputs(run)
    assert found["boss"] == "gemini-x of key-one after gemini-h of key-one"
    assert (found["deep.inner"], found["dynamic"]) == ("gemini-x of key-two", "gemini-x of key-one")
    assert helper.model == "gemini-h"


def test_items_of_a_parallel_worker_use_it_in_every_mapped_task() -> None:
    worker = node(agent("each"), parallel_worker=True)

    def three(node_input: str) -> list[str]:
        return ["x", "y", "z"]

    run = run_workflow(Workflow(name="many", edges=[(START, three), (three, worker)]), input="", llm_conn_id="two")

    assert run.output == ["gemini-x of key-two"] * 3


def test_a_sub_agent_without_a_model_of_its_own_uses_the_inherited_one_with_the_connection() -> None:
    child = agent("child", model="", mode="single_turn", description="helps")
    parent = agent("parent", sub_agents=[child])
    workflow = Workflow(name="family", edges=[(START, parent)])

    run = run_workflow(workflow, input="hi", llm_conn_id="one", mode="embedded")
    assert run.error is None
    assert run.output == "gemini-x of key-one after gemini-x of key-one"


def test_a_model_object_of_another_vendor_is_left_alone() -> None:
    class Other(BaseLlm):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="other")]))

    a, b = agent("a", model=Other(model="other-1")), agent("b", model=Gemini(model="gemini-object"))

    run = run_workflow(Workflow(name="vendors", edges=[(START, a), (a, b)]), input="", llm_conn_id="one")

    assert run.outputs == {"a": ["other"], "b": ["gemini-object of key-one"]}


def test_without_a_connection_the_default_of_the_configuration_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__LLM_CONN_ID", "three")

    assert outputs(run_workflow(pair(), input="hi", nodes={"a": {"llm_conn_id": "one"}})) == {
        "a": "gemini-x of key-one",
        "b": "gemini-y of key-three",
    }


@pytest.mark.parametrize(
    ("conn_id", "expected"),
    [
        ("absent", "workflow 'pair', node 'a': there is no Airflow connection 'absent'"),
        (
            "mail",
            "no installed provider makes models of connection 'mail', whose type is 'smtp'. Types that are known here: ",
        ),
    ],
)
def test_a_connection_that_cannot_be_used_is_named_with_the_node(
    conn_id: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_workflow(Workflow(name="pair", edges=[(START, agent("a"))]), llm_conn_id=conn_id)

    assert run.state == "failed"
    assert run.task_states == {"a": ["failed"]}
    assert expected in capsys.readouterr().out


def test_the_package_for_a_type_is_named_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    from adk_airflow.errors import ModelConnectionError
    from adk_airflow.runtime.services import connections

    def advice(connection: Connection, group: str) -> str:
        with pytest.raises(ModelConnectionError) as refused:
            connections.maker(connection, group, "makes models of", "node 'a'", ModelConnectionError)
        return str(refused.value).partition(f"whose type is {connection.conn_type!r}. ")[2]

    package = "adk-airflow-google-genai (providers/google_genai of adk-airflow's repository)"
    gemini, mail = Connection(conn_id="g", conn_type="google_genai_vertex"), Connection(conn_id="m", conn_type="smtp")
    # As without the provider: a Python that finds only what is in this folder.
    monkeypatch.setattr(sys, "path", [])
    assert advice(gemini, "adk_airflow.llm") == f"Install {package} where the tasks run."
    assert advice(mail, "adk_airflow.llm") == (
        f"No package that does is installed here; {package} is for google_genai, google_genai_vertex."
    )
    assert advice(mail, "adk_airflow.sessions") == "No package that does is installed here."


def test_what_the_provider_refuses_is_the_error_of_the_run() -> None:
    run = run_workflow(Workflow(name="w", edges=[(START, agent("a", model="refused"))]), llm_conn_id="one")

    assert run.error == ("ValueError", "connection 'one' has no model 'refused'")


def test_the_plan_shows_which_connection_a_task_uses() -> None:
    plan = plan_workflow(pair(), nodes={"b": {"llm_conn_id": "two"}}, llm_conn_id="one")

    assert {task.task_id: task.arguments.get("llm_conn_id") for task in plan.tasks} == {
        "a": "one",
        "b": "two",
    }


def test_a_connection_of_one_agent_inside_a_nested_workflow_is_not_for_the_others_in_its_task() -> None:
    first = agent("a")
    nested = Workflow(name="inner", edges=[(START, first), (first, agent("b"))], max_concurrency=1)
    outer = Workflow(name="outer", edges=[(START, nested)])

    def planned(nodes: dict[str, Any], **options: Any) -> Any:
        return plan_workflow(outer, nodes=nodes, **options).tasks[0].arguments["llm_conn_id"]

    assert planned({"inner/a": {"llm_conn_id": "one"}}) == {"inner/a": "one"}
    assert planned({"inner/a": {"llm_conn_id": "one"}}, llm_conn_id="two") == {"": "two", "inner/a": "one"}
    assert planned({"inner": {"llm_conn_id": "one"}}) == "one"
    assert planned({}, llm_conn_id="two") == "two"
    assert planned({"inner/a": {"llm_conn_id": "one"}}, mode="embedded") == {"inner/a": "one"}


def test_a_connection_that_is_no_id_is_refused() -> None:
    with pytest.raises(NodeOverrideError, match="node 'a': llm_conn_id 7 is not the id of a connection"):
        plan_workflow(pair(), nodes={"a": {"llm_conn_id": 7}})
