"""An App's plugins do in a DAG run what they do in ADK's own runner."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from google.adk import Context, Workflow
from google.adk.apps.app import App
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner
from google.adk.workflow import JoinNode, node
from google.genai import types

from adk_airflow.testing import run_workflow


class Greeter(BasePlugin):
    """Changes what the user said."""

    async def on_user_message_callback(self, *, invocation_context: Any, user_message: types.Content) -> types.Content:
        return types.Content(role="user", parts=[types.Part(text=f"{(user_message.parts or [])[0].text}, please")])


class Strict(BasePlugin):
    """Refuses what the user said."""

    async def on_user_message_callback(self, *, invocation_context: Any, user_message: types.Content) -> types.Content:
        raise ValueError("not allowed")


def upper(node_input: str) -> str:
    return node_input.upper()


def heard(ctx: Context, node_input: Any) -> list[Any]:
    said = (ctx.user_content.parts or [])[0].text if ctx.user_content else None
    return [node_input, said]


def plain() -> Workflow:
    return Workflow(name="wf", edges=[("START", upper, heard)])


def nested() -> Workflow:
    return Workflow(name="wf", edges=[("START", Workflow(name="inner", edges=[("START", upper, heard)]))])


def worker() -> Workflow:
    return Workflow(name="wf", edges=[("START", node(upper, parallel_worker=True), heard)])


def join() -> Workflow:
    def texts(node_input: dict[str, Any]) -> list[Any]:
        return [node_input["__START__"].parts[0].text, node_input["one"]]

    meet = JoinNode(name="meet")
    return Workflow(name="wf", edges=[("START", meet), ("START", node(lambda: 1, name="one"), meet, texts)])


def adk_output(app: App) -> Any:
    """What the workflow gives in ADK's own runner."""

    async def run() -> Any:
        runner = InMemoryRunner(app=app)
        await runner.session_service.create_session(app_name=app.name, user_id="u", session_id="s")
        message = types.Content(role="user", parts=[types.Part(text="tea")])
        events = [event async for event in runner.run_async(user_id="u", session_id="s", new_message=message)]
        return [event.output for event in events if "wf@1" in (event.node_info.output_for or [])][-1]

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("build", "output"),
    [
        (plain, ["TEA, PLEASE", "tea, please"]),
        (nested, ["TEA, PLEASE", "tea, please"]),
        (worker, [["TEA, PLEASE"], "tea, please"]),
        (join, ["tea, please", 1]),
    ],
)
def test_a_plugin_that_changes_the_users_message_changes_what_start_hands_on(
    build: Callable[[], Workflow], output: Any
) -> None:
    def app() -> App:
        return App(name="app", root_agent=build(), plugins=[Greeter(name="greeter")])

    assert adk_output(app()) == output
    assert run_workflow(app(), input="tea").output == output


def test_a_plugin_that_refuses_the_users_message_fails_the_run() -> None:
    run = run_workflow(App(name="app", root_agent=plain(), plugins=[Strict(name="strict")]), input="tea")

    assert run.state == "failed"
    assert run.error is not None
    assert "not allowed" in run.error[1]


def test_input_that_does_not_fit_the_workflows_schema_is_the_runs_error() -> None:
    run = run_workflow(Workflow(name="wf", edges=[("START", upper)], input_schema=int), input="tea")

    assert run.state == "failed"
    assert run.error is not None
    assert run.error[0] == "ValidationError"
