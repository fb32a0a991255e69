"""Nodes that can see what was said before are shown, as tasks, what ADK shows them in one process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from google.adk import Agent, Context, Event, Workflow
from google.adk.agents import SequentialAgent
from google.adk.agents.base_agent import BaseAgent
from google.adk.apps.app import App, EventsCompactionConfig
from google.adk.apps.llm_event_summarizer import LlmEventSummarizer
from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
from google.adk.runners import InMemoryRunner
from google.adk.workflow import JoinNode, node
from google.genai import types

from adk_airflow.runtime.adk.history import in_order, sees_history
from adk_airflow.testing import WorkflowRun, run_workflow
from tests.conformance.fake_llm import FakeLlm, Turn


def in_process(made: Workflow | App, text: str) -> tuple[Any, dict[str, Any]]:
    """The last output of the workflow, and the state, of one ADK process."""

    async def work() -> tuple[Any, dict[str, Any]]:
        app = made if isinstance(made, App) else App(name="alone", root_agent=made)
        runner = InMemoryRunner(app=app)
        session = await runner.session_service.create_session(app_name=app.name, user_id="u")
        message = types.Content(role="user", parts=[types.Part(text=text)])
        output = None
        async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message):
            if event.output is not None:
                output = event.output
        kept = await runner.session_service.get_session(app_name=app.name, user_id="u", session_id=session.id)
        assert kept is not None
        return output, dict(kept.state)

    return asyncio.run(work())


def same(make: Any, text: str = "hello") -> WorkflowRun:
    """Runs a workflow as tasks and in one process; what it put under ``seen`` is the same."""
    run = run_workflow(make(), input=text)
    _, state = in_process(make(), text)

    assert run.state == "success", run.error
    assert run.session_state["seen"] == state["seen"]
    return run


def shown(events: Any) -> list[Any]:
    """What of events is the same in each run."""
    return [
        [event.author, event.branch, event.node_info.path, event.output, dict(event.actions.state_delta),
         [part.text for part in (event.content.parts or [])] if event.content else None]
        for event in events
    ]  # fmt: skip


def look(ctx: Context, node_input: Any) -> Event:
    """Looks at all that was said."""
    return Event(output="looked", state={"seen": shown(ctx.session.events)})


def say(name: str) -> Any:
    def speak(ctx: Context, node_input: Any) -> Event:
        return Event(output=f"{name} did", message=f"{name} speaks", state={name: 1})

    return node(speak, name=name)


def repeat(turn: Turn) -> str:
    """Answers with all that the model was shown."""
    return " | ".join(part.text or "" for content in turn.request.contents for part in content.parts or [])


def agent(name: str, **more: Any) -> Agent:
    return Agent(name=name, model=FakeLlm(script=repeat), output_key="seen", **more)


class Historian(BaseAgent):
    """An agent of its own class that looks at the session."""

    async def _run_async_impl(self, ctx: Any) -> AsyncGenerator[Event, None]:
        event = Event(
            author=self.name, invocation_id=ctx.invocation_id, branch=ctx.branch, state={"seen": shown(ctx.session.events)}
        )
        yield event


def test_a_function_sees_the_events_of_the_tasks_before() -> None:
    run = same(lambda: Workflow(name="wf", edges=[("START", say("a"), say("b"), node(look))]))

    assert [event[5] for event in run.session_state["seen"]] == [["hello"], ["a speaks"], ["b speaks"]]


def test_an_agent_of_another_class_sees_them() -> None:
    same(lambda: Workflow(name="wf", edges=[("START", say("a"), Historian(name="historian"))]))


def test_a_sequential_agent_is_shown_what_was_said_before() -> None:
    def make() -> Workflow:
        steps = SequentialAgent(name="steps", sub_agents=[agent("first"), agent("second")])
        return Workflow(name="wf", edges=[("START", say("a"), steps)])

    run = same(make)
    assert "a speaks" in run.session_state["seen"]


def test_an_agent_in_chat_mode_in_a_nested_workflow_is_shown_what_was_said_before() -> None:
    def make() -> Workflow:
        inner = Workflow(name="inner", edges=[("START", agent("chats", mode="chat"))])
        return Workflow(name="wf", edges=[("START", say("a"), inner)])

    run = same(make)
    assert "a speaks" in run.session_state["seen"]


def test_the_events_of_branches_have_adks_branches() -> None:
    def make() -> Workflow:
        a, b, join = say("a"), say("b"), JoinNode(name="join")
        return Workflow(name="wf", edges=[("START", (a, b), join, node(look))])

    run = run_workflow(make(), input="hello")
    _, state = in_process(make(), "hello")

    def ordered(seen: list[Any]) -> list[str]:
        # Which of two branches speaks first is chance, and the order of what a join gives (docs/differences.md).
        return sorted(json.dumps(event, sort_keys=True, default=repr) for event in seen)

    assert ordered(run.session_state["seen"]) == ordered(state["seen"])


def test_a_task_of_a_loop_and_one_of_items_are_seen_too() -> None:
    def make() -> Workflow:
        def count(ctx: Context, n: int = 0) -> Event:
            return Event(output=n, route="again" if n < 2 else "done", state={"n": n + 1})

        loop = node(count)
        each = node(lambda node_input: node_input * 2, name="each", parallel_worker=True)
        items = node(lambda node_input: [1, 2], name="items")
        return Workflow(name="wf", edges=[("START", loop, {"again": loop, "done": items}), (items, each, node(look))])

    run = run_workflow(make(), input="hello")
    _, state = in_process(make(), "hello")

    def texts(seen: list[Any]) -> list[str]:
        return sorted(repr(event) for event in seen if "each" not in str(event[2]))

    assert run.state == "success", run.error
    assert texts(run.session_state["seen"]) == texts(state["seen"])
    assert sum("each@" in str(event[2]) for event in run.session_state["seen"]) >= 2


def test_add_session_to_memory_adds_what_was_said_before() -> None:
    async def remember(ctx: Context, node_input: Any) -> Event:
        memory = InMemoryMemoryService()  # type: ignore[no-untyped-call, unused-ignore]
        await memory.add_session_to_memory(ctx.session)
        found = await memory.search_memory(app_name=ctx.session.app_name, user_id=ctx.session.user_id, query="speaks hello")
        texts = sorted(part.text or "" for memory in found.memories for part in memory.content.parts or [])
        return Event(output="done", state={"seen": texts})

    run = same(lambda: Workflow(name="wf", edges=[("START", say("a"), say("b"), node(remember))]))
    assert run.session_state["seen"] == ["a speaks", "b speaks", "hello"]


def test_compaction_sees_one_invocation_as_in_one_process() -> None:
    asked: list[str] = []

    def summarise(turn: Turn) -> str:
        asked.append(turn.last)
        return "summary"

    def app() -> App:
        compaction = EventsCompactionConfig(
            summarizer=LlmEventSummarizer(llm=FakeLlm(script=summarise)), compaction_interval=2, overlap_size=0
        )
        workflow = Workflow(name="wf", edges=[("START", say("a"), say("b"), node(look))])
        return App(name="compacts", root_agent=workflow, events_compaction_config=compaction)

    run = run_workflow(app(), input="hello")
    _, state = in_process(app(), "hello")

    assert run.session_state["seen"] == state["seen"]
    assert asked == []


def test_what_cannot_be_read_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__TRANSCRIPTS_URI", f"file://{tmp_path}")

    def lose(node_input: Any) -> str:
        for file in tmp_path.rglob("session.json"):
            file.write_text("{}")
        return "lost"

    run = run_workflow(Workflow(name="wf", edges=[("START", say("a"), node(lose), node(look))]), input="hello")

    assert run.state == "success"
    assert not [event for event in run.session_state["seen"] if event[0] == "a"]


def test_events_are_sealed_and_only_kept_where_a_node_can_see_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__TRANSCRIPTS_URI", f"file://{tmp_path}")
    run_workflow(Workflow(name="wf", edges=[("START", say("a"), say("b"))]), input="hello")
    assert list(tmp_path.rglob("session.json")) == []

    run_workflow(Workflow(name="wf2", edges=[("START", say("a"), node(look))]), input="hello")
    assert sorted(path.parent.parent.name for path in tmp_path.rglob("session.json")) == ["a", "look"]


def plain(ctx: Context, node_input: Any) -> Any:
    return ctx.state.get("a")


def helper(ctx: Context) -> int:
    return len(ctx.session.events)


def helped(ctx: Context, node_input: Any) -> int:
    return helper(ctx)


def by_tool(tool_context: Context) -> int:
    """Looks."""
    return len(tool_context.session.events)


def after(callback_context: Any) -> None:
    callback_context.add_session_to_memory()


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda: node(plain), False),
        (lambda: node(look), True),
        (lambda: node(helped), True),
        (lambda: agent("a"), False),
        (lambda: agent("a", mode="chat"), True),
        (lambda: agent("a", tools=[by_tool]), True),
        (lambda: agent("a", tools=[say]), False),
        (lambda: agent("a", after_agent_callback=after), True),
        (lambda: agent("a", sub_agents=[agent("b")]), True),
        (lambda: Historian(name="h"), True),
        (lambda: Workflow(name="inner", edges=[("START", node(look))]), True),
        (lambda: Workflow(name="inner", edges=[("START", node(plain))]), False),
        (lambda: node(look, name="each", parallel_worker=True), True),
    ],
)  # fmt: skip
def test_which_nodes_can_see_what_was_said(made: Any, expected: bool) -> None:
    app = App(name="app", root_agent=Workflow(name="wf", edges=[("START", say("x"))]))

    assert sees_history([made()], app) is expected


def test_events_of_tasks_side_by_side_are_in_the_order_of_their_time() -> None:
    one = [{"id": "a", "timestamp": 1.0}, {"id": "b", "timestamp": 5.0}, {"id": "c", "timestamp": 4.0}]
    other = [{"id": "d", "timestamp": 2.0}, {"id": "e", "timestamp": 4.5}]

    assert [event["id"] for event in in_order([one, other, one])] == ["a", "d", "e", "b", "c"]
