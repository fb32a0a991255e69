"""Each documented difference, shown: what ADK gives, what the tasks give, and that ``embedded`` gives what ADK gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.adk import Context, Event, Workflow
from google.adk.apps.app import App, ResumabilityConfig
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner
from google.adk.workflow import JoinNode, node
from google.genai import types

from adk_airflow import plan_workflow
from adk_airflow.errors import WorkflowLoadError
from adk_airflow.testing import run_workflow
from tests.conformance import run as conformance

HERE = Path(__file__).parent
EXPECTED = json.loads((HERE / "expected.json").read_text())["cases"]


def warned(workflow: Any) -> set[str]:
    return {text.split(":")[0] for text in plan_workflow(workflow).warnings}


@pytest.mark.parametrize(
    ("case_id", "what", "adk", "tasks", "warning"),
    [
        ("sibling_state_visible", "output", {"a": "a", "b": "from a"}, {"a": "a", "b": None}, "state-between-branches"),
        ("sibling_state_append", "state", {"seen": ["a", "b", "c"]}, {"seen": ["c"]}, "state-between-branches"),
        (
            "fail_cancels_sibling",
            "outputs",
            [],
            ['["wf/after", "after:\'never\'"]', '["wf/slow", "never"]'],
            "no-cancel-on-failure",
        ),
        (
            "pw_fail",
            "outputs",
            ['["wf/items", [1, 0, 2]]'],
            ['["wf/inv/inv", 0.5]', '["wf/inv/inv", 1.0]', '["wf/items", [1, 0, 2]]'],
            "no-cancel-on-failure",
        ),
        ("pw_limit", "output", [2, [1, 2, 3, 4, 5]], [1, [1, 2, 3, 4, 5]], "state-between-branches"),
    ],
)
def test_a_documented_case(case_id: str, what: str, adk: Any, tasks: Any, warning: str) -> None:
    case = next(case for case in conformance.load_module(HERE / "cases.py").CASES if case.id == case_id)

    assert conformance.expected_of(EXPECTED[case_id])[what] == adk
    assert conformance.run_case(case, "tasks")[what] == tasks
    assert conformance.run_case(case, "embedded")[what] == adk
    assert warning in warned(case.build())


async def in_process(root: Any) -> tuple[Any, dict[str, Any]]:
    """The workflow's output and the session state in ADK's own runner."""
    runner = InMemoryRunner(app=root) if isinstance(root, App) else InMemoryRunner(node=root)
    session = await runner.session_service.create_session(app_name=runner.app_name, user_id="u")
    message = types.Content(role="user", parts=[types.Part(text="go")])
    output = None
    async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message):
        if "wf@1" in (event.node_info.output_for or []):
            output = event.output if event.output is not None else output
    kept = await runner.session_service.get_session(app_name=runner.app_name, user_id="u", session_id=session.id)
    assert kept is not None
    return output, kept.state


def adk_output(root: Any) -> Any:
    import asyncio

    return asyncio.run(in_process(root))[0]


def adk_state(root: Any) -> dict[str, Any]:
    import asyncio

    return asyncio.run(in_process(root))[1]


def test_a_join_behind_a_node_that_runs_twice_pairs_in_order_whatever_the_time() -> None:
    import asyncio as aio

    def build() -> Workflow:
        async def slow() -> str:
            await aio.sleep(0.3)
            return "slow"

        twice = node(lambda node_input: f"twice {node_input}", name="twice")
        one, two = node(lambda: 1, name="one"), node(slow, name="two")
        quick, join = node(lambda: "quick", name="quick"), JoinNode(name="join")
        return Workflow(name="wf", edges=[("START", (one, two), twice, join), ("START", quick, join)])

    first_run, last_run = {"twice": "twice 1", "quick": "quick"}, {"twice": "twice slow", "quick": "quick"}

    assert adk_output(build()) == first_run  # quick has arrived, so the first run of twice fires the join
    assert run_workflow(build()).output == last_run
    assert run_workflow(build(), mode="embedded").output == first_run
    assert "join-pairing" in warned(build())


def test_a_node_with_several_triggers_runs_in_the_order_of_the_edges() -> None:
    def build() -> Workflow:
        async def slow() -> str:
            import asyncio as aio

            await aio.sleep(0.3)
            return "slow"

        ways = (node(slow), node(lambda: "quick", name="quick"))
        return Workflow(name="wf", edges=[("START", ways, node(lambda node_input: node_input, name="last"))])

    assert adk_output(build()) == "slow"
    assert run_workflow(build()).output == "quick"
    assert run_workflow(build(), mode="embedded").output == "slow"
    assert "run-order" in warned(build())


def test_a_loop_that_goes_on_beside_what_it_triggers_says_so_in_its_log(capsys: pytest.CaptureFixture[str]) -> None:
    def build(routes: Any) -> Workflow:
        def count(ctx: Context) -> Event:
            ctx.state["n"] = n = ctx.state.get("n", 0) + 1
            ctx.state["heard"] = ctx.state.get("note")
            return Event(route=routes if n < 2 else "end")

        def work(ctx: Context) -> None:
            ctx.state["note"] = f"note {ctx.state['n']}"

        async def wait() -> None:
            import asyncio as aio

            await aio.sleep(0.2)

        counter, waiting = node(count, name="count"), node(wait, name="wait")
        return Workflow(
            name="wf",
            edges=[
                ("START", counter, {"again": waiting, "done": node(work), "end": node(lambda: None, name="end")}),
                (waiting, counter),
            ],
        )

    in_adk, as_tasks = adk_state(build(["again", "done"])), run_workflow(build(["again", "done"])).session_state
    assert in_adk == {"n": 2, "note": "note 1", "heard": "note 1"}
    assert as_tasks == {"n": 2, "note": "note 2", "heard": None}
    assert "workflow 'wf', node 'count' triggered work and ran on." in capsys.readouterr().out
    assert run_workflow(build(["again", "done"]), mode="embedded").session_state == in_adk

    assert run_workflow(build("again")).session_state == adk_state(build("again")) == {"n": 2, "heard": None}
    assert "ran on" not in capsys.readouterr().out


def test_a_node_sees_the_events_of_the_tasks_before_it() -> None:
    def build() -> Workflow:
        def events(ctx: Context) -> list[str]:
            return [event.author for event in ctx.session.events if event.author != "user"]

        return Workflow(name="wf", edges=[("START", node(lambda: Event(message="hello", output=1), name="first"), events)])

    assert adk_output(build()) == ["wf"]
    assert run_workflow(build()).output == ["wf"]
    assert run_workflow(build(), mode="embedded").output == ["wf"]


def test_a_node_that_changes_its_input_changes_nothing_in_other_tasks() -> None:
    def build() -> Workflow:
        def first(ctx: Context) -> list[int]:
            ctx.state["kept"] = found = [1]
            return found

        def second(ctx: Context, node_input: Any) -> list[Any]:
            node_input.append(2)
            return [node_input, ctx.state["kept"]]

        return Workflow(name="wf", edges=[("START", first, second)])

    assert adk_output(build()) == [[1, 2], [1, 2]]
    assert run_workflow(build()).output == [[1, 2], [1]]
    assert run_workflow(build(), mode="embedded").output == [[1, 2], [1, 2]]


def test_what_a_node_writes_to_the_sessions_state_itself_is_kept() -> None:
    def build() -> Workflow:
        def first(ctx: Context) -> None:
            ctx.session.state["direct"] = 1

        def second(ctx: Context) -> Any:
            return ctx.state["direct"]

        return Workflow(name="wf", edges=[("START", first, second)])

    runs = {mode: run_workflow(build(), mode=mode) for mode in ("tasks", "embedded")}

    assert adk_state(build()) == {}
    assert runs["tasks"].session_state == {"direct": 1}
    assert runs["embedded"].session_state == {}
    assert (runs["tasks"].output, runs["embedded"].output) == (1, 1)


def test_a_plugin_that_replaces_the_last_event_does_not_replace_the_output() -> None:
    class Censor(BasePlugin):
        async def on_event_callback(self, *, invocation_context: Any, event: Event) -> Event | None:
            return event.model_copy(update={"output": "..."}) if event.output == "secret" else None

    def build() -> App:
        edges = [("START", node(lambda: "secret", name="a"))]
        return App(name="app", root_agent=Workflow(name="wf", edges=edges), plugins=[Censor(name="censor")])

    assert adk_output(build()) == "..."  # what a reader of ADK's events sees; the engine goes on with what the node gave
    assert run_workflow(build()).output == "secret"
    assert run_workflow(build(), mode="embedded").output == "secret"


def test_run_callbacks_of_plugins_are_called_once_per_task() -> None:
    class Counter(BasePlugin):
        calls = 0

        async def before_run_callback(self, *, invocation_context: Any) -> None:
            Counter.calls += 1

    def build() -> App:
        edges = [("START", node(lambda: 1, name="a"), node(lambda: 2, name="b"))]
        return App(name="app", root_agent=Workflow(name="wf", edges=edges), plugins=[Counter(name="counter")])

    def calls(run: Any) -> int:
        Counter.calls = 0
        run()
        return Counter.calls

    assert calls(lambda: adk_output(build())) == 1
    assert calls(lambda: run_workflow(build())) == 2
    assert calls(lambda: run_workflow(build(), mode="embedded")) == 1
    assert "plugins-per-task" in warned(build())


def test_branches_that_a_list_of_routes_fires_are_side_by_side_unannounced() -> None:
    def build() -> Workflow:
        def first(ctx: Context) -> str:
            ctx.state["from_a"] = True
            return "a"

        async def second(ctx: Context) -> Any:
            import asyncio as aio

            await aio.sleep(0.2)
            return ctx.state.get("from_a")

        router = node(lambda: Event(route=["a", "b"]), name="router")
        a, b, join = node(first, name="a"), node(second, name="b"), JoinNode(name="join")
        return Workflow(name="wf", edges=[("START", router, {"a": a, "b": b}), ((a, b), join)])

    assert adk_output(build()) == {"a": "a", "b": True}
    assert run_workflow(build()).output == {"a": "a", "b": None}
    assert run_workflow(build(), mode="embedded").output == {"a": "a", "b": True}
    assert warned(build()) == set()


@pytest.mark.parametrize("mode", ["tasks", "embedded"])
def test_a_node_that_lists_the_state_sees_which_run_it_is_in(mode: Any) -> None:
    def build() -> Workflow:
        return Workflow(name="wf", edges=[("START", node(lambda ctx: sorted(ctx.state.to_dict()), name="a"))])

    run = run_workflow(build(), mode=mode, state={"k": 1})

    assert adk_output(build()) == []
    assert run.output == [
        *("airflow:" + name for name in ("dag_id", "data_interval_end", "data_interval_start", "logical_date", "run_id")),
        "k",
    ]
    assert run.session_state == {"k": 1}


def test_a_workflow_without_edges_is_refused() -> None:
    assert adk_output(Workflow(name="wf", edges=[])) is None
    with pytest.raises(WorkflowLoadError, match="workflow 'wf' has no edges"):
        plan_workflow(Workflow(name="wf", edges=[]))


def test_an_app_that_is_resumable_runs_as_any_other() -> None:
    root = Workflow(name="wf", edges=[("START", node(lambda: 1, name="a"))])
    app = App(name="app", root_agent=root, resumability_config=ResumabilityConfig(is_resumable=True))

    assert adk_output(app) == 1
    assert [run_workflow(app, mode=mode).output for mode in ("tasks", "embedded")] == [1, 1]
