"""More cases in the form of ``cases.py``: agents with callbacks and tools, dynamic nodes, values, nesting and loops.

``more_expected.json`` is what ADK gives for them in-process, recorded as ``expected.json`` is, less what is not compared.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import enum
import functools
import uuid
from collections.abc import Callable
from typing import Any

from cases import FAST, STEP, Case, Order, Shelf, Total, Turn, agent, canonical, const, echo, router, show, wf
from fake_llm import call
from google.adk import Context, Event, Workflow
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import DEFAULT_ROUTE, BaseNode, Edge, JoinNode, RetryConfig, node
from google.genai import types

CASES: list[Case] = []
RETRY = RetryConfig(max_attempts=4, **FAST)


def case(id: str, graph: str, *, input: Any = "go", state: dict[str, Any] | None = None) -> Callable[[Any], Any]:
    def add(build: Any) -> Any:
        CASES.append(Case(id=id, graph=graph, build=build, input=input, state=dict(state or {})))
        return build

    return add


def driver(body: Any) -> Any:
    return node(body, name="driver", rerun_on_resume=True)


def square(node_input: int) -> int:
    return node_input * node_input


def typed(value: Any) -> str:
    """The repr of a value with the types of all its parts, in an order that does not depend on hashes."""
    if isinstance(value, dict):
        return "{" + ", ".join(sorted(f"{typed(key)}: {typed(item)}" for key, item in value.items())) + "}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({', '.join(map(typed, value))})"
    if isinstance(value, (set, frozenset)):
        return f"{type(value).__name__}({', '.join(sorted(map(typed, value)))})"
    return f"{type(value).__name__} {value!r}"


# --- agents ---------------------------------------------------------------------------------------------------------


def stock(sku: str, tool_context: ToolContext) -> dict[str, int]:
    """How many are left."""
    tool_context.state["asked"] = sku
    tool_context.state["temp:asked"] = sku
    return {"left": len(sku)}


def asks_stock(turn: Turn) -> Any:
    answer = turn.answered("stock")
    return call("stock", "c1", sku=turn.first) if answer is None else canonical(answer)


@case("agent_tool_callbacks", "START>bot(before_tool changes arguments, after_tool the result)>tail", input="abcd")
def _() -> Workflow:
    def before(tool: Any, args: dict[str, Any], tool_context: ToolContext) -> None:
        tool_context.state["before"] = dict(args)
        args["sku"] += "xx"

    def after(tool: Any, args: Any, tool_context: ToolContext, tool_response: dict[str, int]) -> dict[str, int]:
        tool_context.state["after"] = tool_response
        return {"left": tool_response["left"] * 10}

    def tail(ctx: Context, node_input: str) -> list[Any]:
        return [node_input, ctx.state["asked"], ctx.state["temp:asked"]]

    callbacks: dict[str, Any] = {"before_tool_callback": before, "after_tool_callback": after}
    return wf(("START", agent("bot", asks_stock, tools=[stock], **callbacks), tail))


@case("agent_before_agent_answers", "START>bot(before_agent answers, output_key)>tail")
def _() -> Workflow:
    def answer(callback_context: Context) -> types.Content:
        callback_context.state["called"] = 1
        return types.Content(role="model", parts=[types.Part(text="short cut")])

    return wf(("START", agent("bot", echo, before_agent_callback=answer, output_key="said"), show("tail")))


@case("agent_two_answers", "START>bot(after_agent answers once more)>tail: a node has one output")
def _() -> Workflow:
    def answer(callback_context: Context) -> types.Content:
        return types.Content(role="model", parts=[types.Part(text="again")])

    return wf(("START", agent("bot", echo, after_agent_callback=answer, output_key="said"), show("tail")))


@case("agent_retry", "START>bot(retry_config; the model fails twice)>tail")
def _() -> Workflow:
    def fail_twice(callback_context: Context, llm_request: Any) -> None:
        callback_context.state["tries"] = tries = callback_context.state.get("tries", 0) + 1
        if tries < 3:
            raise ConnectionError("no model")

    return wf(("START", agent("bot", echo, before_model_callback=fail_twice, retry_config=RETRY), show("tail")))


@case("agent_worker", "START>items>bot(parallel_worker, output_schema, output_key)>tail")
def _() -> Workflow:
    def script(turn: Turn) -> dict[str, int]:
        return {"total": len(turn.first)}

    return wf(
        ("START", const("items", ["a", "bb"]), agent("bot", script, output_schema=Total, parallel_worker=True), show("tail"))
    )


@case("agent_artifact", "START>bot(tool saves an artifact)>reader(instruction with it)>tail(loads it)", input="abcd")
def _() -> Workflow:
    async def stock(sku: str, tool_context: ToolContext) -> dict[str, int]:
        return {"version": await tool_context.save_artifact("note.txt", types.Part(text=f"noted {sku}"))}

    async def tail(ctx: Context, node_input: str) -> list[Any]:
        part = await ctx.load_artifact("note.txt")
        return [node_input, part and part.text, await ctx.list_artifacts()]

    reader = agent("reader", lambda turn: turn.system, instruction="{artifact.note.txt}")
    return wf(("START", agent("bot", asks_stock, tools=[stock]), reader, tail))


@case("agent_thoughts", "START>bot(thinks, answers in two parts)>tail: thoughts are not output")
def _() -> Workflow:
    parts = [types.Part(text="hm", thought=True), types.Part(text="an"), types.Part(text="swer")]
    return wf(("START", agent("bot", lambda turn: parts), show("tail")))


# --- dynamic nodes ----------------------------------------------------------------------------------------------------


@case("dyn_workflow", "START>driver: run_node(inner) twice, inner has a loop>tail")
def _() -> Workflow:
    def inc(node_input: int) -> Event:
        return Event(output=node_input + 1, route="more" if node_input % 3 else "end")

    step = node(inc)
    inner = wf(("START", step), (step, {"more": step, "end": show("last")}), name="inner")

    async def body(ctx: Context) -> list[Any]:
        return [await ctx.run_node(inner, node_input=number) for number in (1, 5)]

    return wf(("START", driver(body), show("tail")))


@case("dyn_retry_replays", "START>driver(retry): run_node(once), run_node(flaky): what completed is replayed>tail")
def _() -> Workflow:
    def once(ctx: Context) -> int:
        ctx.state["once"] = ctx.state.get("once", 0) + 1
        return ctx.state["once"]

    def flaky(ctx: Context) -> str:
        ctx.state["tries"] = tries = ctx.state.get("tries", 0) + 1
        if tries < 3:
            raise OSError("not yet")
        return "good"

    once_node, flaky_node = node(once), node(flaky)

    @node(rerun_on_resume=True, retry_config=RETRY)
    async def drive(ctx: Context) -> list[Any]:
        return [await ctx.run_node(once_node), await ctx.run_node(flaky_node), ctx.attempt_count]

    return wf(("START", drive, show("tail")))


@case("dyn_use_as_output", "START>items>driver(parallel_worker): run_node(square, use_as_output)>tail")
def _() -> Workflow:
    squared = node(square)

    async def body(ctx: Context, node_input: int) -> None:
        await ctx.run_node(squared, node_input=node_input, use_as_output=True)

    return wf(("START", const("items", [2, 3]), node(driver(body), parallel_worker=True), show("tail")))


@case("dyn_branches", "START>items>driver(parallel_worker): use_sub_branch, override_branch: branches and paths")
def _() -> Workflow:
    def place(ctx: Context) -> list[Any]:
        return [ctx.branch, ctx.node_path]

    where = node(place)

    async def body(ctx: Context) -> list[Any]:
        sub = await ctx.run_node(where, use_sub_branch=True)
        return [sub, await ctx.run_node(where), await ctx.run_node(where, override_branch="other")]

    return wf(("START", const("items", [1, 2]), node(driver(body), parallel_worker=True)))


@case("dyn_in_loop", "START>driver: run_node(square); driver-again>driver, done>tail")
def _() -> Workflow:
    squared = node(square)

    async def body(ctx: Context) -> Event:
        ctx.state["n"] = ctx.state.get("n", 1) + 1
        value = await ctx.run_node(squared, node_input=ctx.state["n"])
        return Event(output=value, route="again" if ctx.state["n"] < 4 else "done")

    drive = driver(body)
    return wf(("START", drive), (drive, {"again": drive, "done": show("tail")}))


@case("dyn_tool", "START>driver: run_node(FunctionTool) and state that it wrote>tail")
def _() -> Workflow:
    tool = FunctionTool(stock)

    async def body(ctx: Context) -> list[Any]:
        return [await ctx.run_node(tool, node_input={"sku": "abc"}), ctx.state["asked"]]

    return wf(("START", driver(body), show("tail")))


# --- nodes and values ---------------------------------------------------------------------------------------------------


@case("node_event_mix", "START>r(output, route, message, state, metadata in one event); r-x>a, r-y>b")
def _() -> Workflow:
    def r() -> Event:
        return Event(output=1, route="x", message="m", state={"s": 1}, custom_metadata={"c": 1})

    return wf(("START", r, {"x": show("a"), "y": show("b")}))


@case("node_last_route_wins", "START>r(two events with a route); r-x>a, r-y>b")
def _() -> Workflow:
    def r() -> Any:
        yield Event(route="x")
        yield Event(route="y", output=5)

    return wf(("START", r, {"x": show("a"), "y": show("b")}))


@case("node_event_branch", "START>(a sets its event's branch to '', b)>join>where")
def _() -> Workflow:
    def a() -> Event:
        return Event(output=1, branch="")

    def where(ctx: Context) -> list[Any]:
        return [ctx.branch]

    return wf(("START", (a, const("b", 1)), JoinNode(name="join"), where))


class _Both(BaseNode):
    """Waits for two inputs."""

    wait_for_output: bool = True

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> Any:
        ctx.state["got"] = got = [*ctx.state.get("got", []), node_input]
        if len(got) == 2:
            yield Event(output=got, route="full")


@case("wait_then_join", "START>(a,b)>both(wait_for_output)-full>join, START>c>join>tail")
def _() -> Workflow:
    both, join = _Both(name="both"), JoinNode(name="join")
    return wf(
        ("START", (const("a", 1), const("b", 2, delay=STEP)), both, {"full": join, "none": show("never")}),
        ("START", const("c", 3), join, show("tail")),
    )


class _Join(JoinNode):
    async def _run_impl(self, *, ctx: Context, node_input: Any) -> Any:
        yield Event(output=sorted(node_input.items()), route="joined")


@case("join_subclass_routes", "START>(a,b)>a JoinNode that gives a route; joined>tail, other>b")
def _() -> Workflow:
    return wf(("START", (const("a", 1), const("b", 2)), _Join(name="join"), {"joined": show("tail"), "other": show("never")}))


class _Color(enum.Enum):
    RED = (1, 2)


VALUES = [
    (1, (2, [3]), {4, "five"}, frozenset({(6, 7)})), bytearray(b"z"), dt.time(1, 2, 3), dt.timedelta(days=-1, microseconds=3),
    dt.datetime(2026, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=30))), decimal.Decimal("1.10"), uuid.UUID(int=5),
    _Color.RED, 10**400, float("inf"), -0.0, {1: "a", (1, 2): "b", None: "c", "$": 1, "1": "d"}, Order(sku="s", note="n"),
    functools.reduce(lambda inner, _: [inner], range(100), 1), {"__classname__": "x", "__data__": 1}, "\u2028\U0001f600\x00",
    True, 1,
]  # fmt: skip


@case("values_keep_their_types", "START>give(a list, and in state)>(one,two)>join>tail: what arrives, with its types")
def _() -> Workflow:
    def give(ctx: Context) -> list[Any]:
        ctx.state["values"] = VALUES
        return VALUES

    def look(ctx: Context, node_input: Any) -> list[Any]:
        return [typed(node_input), typed(ctx.state["values"]), node_input == VALUES]

    return wf(("START", give, (node(look, name="one"), node(look, name="two")), JoinNode(name="join")))


@case("state_int_key", "START>put(a key that is no text): ADK fails when it stores the event")
def _() -> Workflow:
    def put(ctx: Context) -> int:
        ctx.state[1] = 1  # type: ignore[index]
        return 1

    return wf(("START", put, show("tail")))


@case("route_list_mixed", "r-True>a, 'x'>(b,c), 0>d, default>e; route [False, 'x']")
def _() -> Workflow:
    ways = {
        True: show("a"),
        "x": (node(lambda: None, name="b"), show("c")),
        0: node(lambda: None, name="d"),
        DEFAULT_ROUTE: show("e"),
    }
    return wf(("START", router("r", [False, "x"], 1), ways))


# --- nesting and loops --------------------------------------------------------------------------------------------------


@case("state_schema_inherited", "outer(state_schema): START>items>inner>deeper(parallel worker writes an undeclared key)")
def _() -> Workflow:
    def put(ctx: Context, node_input: int) -> None:
        ctx.state["colour"] = node_input

    deeper = wf(("START", node(put, parallel_worker=True)), name="deeper")
    return wf(("START", const("items", [1]), wf(("START", deeper), name="inner")), name="outer", state_schema=Shelf)


@case("nested_schemas_twice", "outer: START>give>inner(schemas)>deeper(schemas)>tail")
def _() -> Workflow:
    def more(node_input: dict[str, Any]) -> dict[str, str]:
        return {"total": str(node_input["qty"] + 1)}

    deeper = wf(("START", more), name="deeper", input_schema=Order, output_schema=Total)
    inner = wf(("START", deeper, show("shown"), node(lambda node_input: {"total": len(node_input)}, name="count")),
               name="inner", input_schema=Order, output_schema=Total)  # fmt: skip
    return wf(("START", const("give", {"sku": "q", "qty": "4"}), inner, show("tail")), name="outer")


@case("nested_by_two_names", "outer: START>(one,two), both the same workflow>join>tail; branches and paths")
def _() -> Workflow:
    def place(ctx: Context) -> list[Any]:
        return [ctx.branch, ctx.node_path]

    inner = wf(("START", (node(place, name="a"), node(place, name="b")), JoinNode(name="join")), name="inner")
    return wf(("START", (node(inner, name="one"), node(inner, name="two")), JoinNode(name="all"), show("tail")), name="outer")


@case("nested_worker_with_loop", "outer: START>items>inner(parallel_worker): START>step; step-more>step, end>last")
def _() -> Workflow:
    def inc(node_input: int) -> Event:
        return Event(output=node_input + 1, route="more" if node_input < 5 else "end")

    step = node(inc)
    inner = wf(("START", step), (step, {"more": step, "end": show("last")}), name="inner")
    return wf(("START", const("items", [1, 4, 9]), node(inner, parallel_worker=True), show("tail")), name="outer")


@case("nested_join_from_start", "outer: START>a>inner: START>join, START>p>join>q; >tail")
def _() -> Workflow:
    join = JoinNode(name="join")
    inner = wf(("START", join), ("START", show("p"), join, show("q")), name="inner")
    return wf(("START", const("a", 5), inner, show("tail")), name="outer")


@case("input_schema_bad", "Workflow(input_schema=Order): the input does not fit", input='{"qty": 1}')
def _() -> Workflow:
    return wf(("START", show("a")), input_schema=Order)


@case("loop_two_entries", "START>r1-in>p, START>r2-mid>q; p>q; q-again>p, q-done>tail")
def _() -> Workflow:
    def check(ctx: Context, node_input: Any) -> Event:
        ctx.state["n"] = ctx.state.get("n", 0) + 1
        return Event(output=[node_input, ctx.state["n"]], route="again" if ctx.state["n"] < 4 else "done")

    p, q = show("p"), node(check, name="q")
    return wf(
        ("START", router("r1", "in", 1), {"in": p, "out": show("out1")}),
        ("START", router("r2", "mid", 2), {"mid": q, "out": show("out2")}),
        (p, q, {"again": p, "done": show("tail")}),
    )


@case("loop_several_exits", "START>p; p-go>q, p-exit>tail; q-again>p, q-log>log (in each turn)")
def _() -> Workflow:
    def p(ctx: Context) -> Event:
        ctx.state["n"] = ctx.state.get("n", 0) + 1
        return Event(output=ctx.state["n"], route="go" if ctx.state["n"] < 3 else "exit")

    def log(ctx: Context, node_input: int) -> None:
        ctx.state[f"log{node_input}"] = True

    first, second = node(p), router("q", ["again", "log"], 7)
    return wf(("START", first), (first, {"go": second, "exit": show("tail")}), (second, {"again": first, "log": log}))


@case("loop_with_worker_and_join", "START>items>(worker,w2)>join>check; check-again>(worker,w2), done>tail")
def _() -> Workflow:
    def count(ctx: Context) -> Event:
        ctx.state["n"] = ctx.state.get("n", 0) + 1
        return Event(output=[1, ctx.state["n"]], route="again" if ctx.state["n"] < 3 else "done")

    async def slow(node_input: Any) -> str:
        await asyncio.sleep(STEP)
        return canonical(node_input)

    worker, other, check = node(lambda node_input: node_input, name="worker", parallel_worker=True), node(slow), node(count)
    return wf(
        ("START", const("items", [1, 2]), (worker, other), JoinNode(name="join"), check),
        (check, {"again": (worker, other), "done": show("tail")}),
    )


@case("two_edges_one_target", "Edge(x) and Edge(y) from r to a; route [x, y]: a runs twice")
def _() -> Workflow:
    r, a = router("r", ["x", "y"], 5), show("a")
    return wf(("START", r), Edge(from_node=r, to_node=a, route="x"), Edge(from_node=r, to_node=a, route="y"))
