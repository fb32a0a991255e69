"""A workflow of a user's own class runs as that class says, with its fields; and limits hold in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Literal

import pytest
from google.adk.agents.context import Context
from google.adk.apps.app import App
from google.adk.events.event import Event
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.workflow import START, BaseNode, Workflow, node
from google.genai import types
from pydantic import PrivateAttr

from adk_airflow.runtime.adk.hosted import HostedWorkflow, hosted
from adk_airflow.testing import run_workflow


class Noted(Workflow):
    """Writes down that it ran, and lets the nodes of its graph run as ever."""

    tone: str = "plain"
    _part: str = PrivateAttr(default="own")
    _result: str = PrivateAttr(default="own")
    _times: list[str] = PrivateAttr(default_factory=list)

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        self._times.append(f"{self.tone} {self._part} {self._result}")
        ctx.state["noted"] = [type(self).__name__, type(self).__doc__, *self._times]
        async for item in super()._run_impl(ctx=ctx, node_input=node_input):
            yield item
        ctx.state["after"] = ctx.output


class OwnGraph(Noted):
    """Runs the last of its nodes alone."""

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        assert self.graph is not None
        last: BaseNode = self.graph.nodes[-1]
        yield Event(output=await ctx.run_node(last, node_input=f"{self.tone}!"))


def first() -> str:
    return "one"


def last(node_input: str) -> str:
    return f"last of {node_input}"


def made(cls: type[Noted]) -> Noted:
    return cls(name="wf", tone="warm", edges=[(START, node(first), node(last))])


def in_adk(workflow: Workflow) -> tuple[Any, dict[str, Any]]:
    """The output and the state that ADK gives without us."""

    async def run() -> tuple[Any, dict[str, Any]]:
        sessions = InMemorySessionService()  # type: ignore[no-untyped-call]
        await sessions.create_session(app_name="app", user_id="u", session_id="s")
        runner = Runner(app=App(name="app", root_agent=workflow), session_service=sessions)
        message = types.Content(role="user", parts=[types.Part(text="go")])
        outputs = [
            event.output
            async for event in runner.run_async(user_id="u", session_id="s", new_message=message)
            if event.output is not None
        ]
        session = await sessions.get_session(app_name="app", user_id="u", session_id="s")
        assert session is not None
        return outputs[-1], dict(session.state)

    return asyncio.run(run())


@pytest.mark.parametrize("cls", [Noted, OwnGraph])
@pytest.mark.parametrize("place", ["root", "nested"])
def test_a_users_class_runs_as_in_adk(cls: type[Noted], place: Literal["root", "nested"]) -> None:
    def workflow() -> Workflow:
        return made(cls) if place == "root" else Workflow(name="outer", edges=[(START, made(cls))])

    output, state = in_adk(workflow())
    run = run_workflow(workflow(), input="go", mode="embedded")

    assert run.output == output
    if cls is Noted:
        assert state["noted"] == ["Noted", Noted.__doc__, "warm own own"]
        assert {key: run.session_state[key] for key in ("noted", "after")} == {key: state[key] for key in ("noted", "after")}


def test_a_users_class_runs_as_in_adk_inside_tasks() -> None:
    output, _ = in_adk(Workflow(name="outer", edges=[(START, made(OwnGraph), node(last, name="end"))]))
    run = run_workflow(Workflow(name="outer", edges=[(START, made(OwnGraph), node(last, name="end"))]), input="go")

    assert run.output == output == "last of last of warm!"


def test_a_limit_holds_in_a_users_class() -> None:
    spin = node(lambda: Event(route="again"), name="spin")
    workflow = Noted(name="wf", tone="warm", edges=[(START, spin), (spin, {"again": spin})])
    run = run_workflow(workflow, mode="embedded", nodes={"spin": {"max_iterations": 3}})

    assert run.error is not None
    assert run.error[0] == "LoopLimitError"
    assert "workflow 'wf', node 'spin' has run 3 times" in run.error[1]


def test_the_users_object_stays_as_it_was() -> None:
    workflow = made(Noted)
    before = (type(workflow), dict(vars(workflow)), workflow._times)
    copy = hosted(workflow)

    assert isinstance(copy, Noted)
    assert isinstance(copy, HostedWorkflow)
    assert (copy.tone, copy.graph) == (workflow.tone, workflow.graph)
    assert (type(workflow), dict(vars(workflow)), workflow._times) == before
    assert type(hosted(workflow)) is type(copy)
