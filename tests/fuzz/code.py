"""A random workflow as Python that a person can paste; workflows are built from that very text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from tests.fuzz.graphs import DEFAULT, Edge, Flow, Loop, Node, Write

Pause = Callable[..., Awaitable[None]]

_PRELUDE = '''\
import zlib
from typing import Any

from google.adk import Context, Event, Workflow
from google.adk.workflow import DEFAULT_ROUTE, START, BaseNode, Edge, JoinNode, RetryConfig, node
from google.genai import types


def shown(value: Any) -> str:
    """The value as text that is the same in every process; a long one ends in a checksum."""
    if isinstance(value, dict):
        text = "{" + ", ".join(f"{key!r}: {shown(value[key])}" for key in sorted(value)) + "}"
    elif isinstance(value, (list, tuple)):
        text = type(value).__name__ + "(" + ", ".join(map(shown, value)) + ")"
    elif isinstance(value, types.Content):
        text = f"<{value.parts[0].text}>"
    else:
        text = f"'{value}'" if isinstance(value, str) else str(value)
    return text if len(text) < 60 else f"{text[:40]}~{zlib.crc32(text.encode()):08x}"


def pick(routes: list, node_input: Any) -> Any:
    return routes[zlib.crc32(shown(node_input).encode()) % len(routes)]


class Collect(BaseNode):
    """Outputs once it was triggered ``want`` times."""

    wait_for_output: bool = True
    want: int

    async def _run_impl(self, *, ctx: Context, node_input: Any):
        PAUSE
        got = [*ctx.state.get("got_" + self.name, []), shown(node_input)]
        ctx.state["got_" + self.name] = got
        if len(got) >= self.want:
            yield got
'''
_PAUSED = """

class JoinNode(JoinNode):
    async def _run_impl(self, *, ctx: Context, node_input: Any):
        await pause(self.name)
        async for item in super()._run_impl(ctx=ctx, node_input=node_input):
            yield item


def paused_without_items(worker: Any) -> BaseNode:
    class Worker(type(worker)):
        async def _run_impl(self, *, ctx: Context, node_input: Any):
            if node_input == []:  # no item will pause
                await pause(self.name)
            async for item in super()._run_impl(ctx=ctx, node_input=node_input):
                yield item

    object.__setattr__(worker, "__class__", Worker)
    return worker
"""


def build(flow: Flow, pause: Pause | None = None) -> Any:
    """Builds the google-adk Workflow.

    Args:
        pause: Awaited with the node's name at the start of each run, to give nodes other times. With it, all functions are
            async; it gets ``late=True`` for an item that a parallel worker fails on.
    """
    names: dict[str, Any] = {"pause": pause, "__name__": "random_workflow"}
    exec(compile(source(flow, paused=pause is not None), "<random workflow>", "exec"), names)
    return names[flow.name]


def source(flow: Flow, *, paused: bool = False) -> str:
    """The workflow as the text of a module; the workflow is its attribute ``flow.name``."""
    prelude = _PRELUDE.replace("        PAUSE\n", "        await pause(self.name)\n" if paused else "")
    return prelude + (_PAUSED if paused else "") + "\n\n" + "\n".join(_flow(flow, paused, assign=True)) + "\n"


def script(flow: Flow) -> str:
    """The workflow as a program that runs it in ADK, embedded and as tasks."""
    return f"""{source(flow)}

if __name__ == "__main__":
    import asyncio
    import logging
    import tempfile

    from adk_airflow.testing import run_workflow, use_airflow_home

    use_airflow_home(tempfile.mkdtemp())
    logging.disable(logging.CRITICAL)
    from google.adk.runners import InMemoryRunner

    async def in_process():
        runner = InMemoryRunner(node={flow.name}, app_name="adk")
        session = await runner.session_service.create_session(app_name="adk", user_id="u", state={dict(flow.state)!r})
        message = types.Content(role="user", parts=[types.Part(text={flow.text!r})])
        try:
            async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message):
                print("adk", event.node_info.path, repr(event.output), event.actions.state_delta)
        except Exception as error:
            print("adk", repr(error))

    asyncio.run(in_process())
    given = dict(input={flow.text!r}, state={dict(flow.state)!r})
    print("embedded", run_workflow({flow.name}, mode="embedded", **given))
    print("tasks", run_workflow({flow.name}, nodes={_plain(flow.overrides)!r}, **given))
"""


def _plain(overrides: Any) -> dict[str, Any]:
    return {name: dict(given) for name, given in overrides.items()}


def _flow(flow: Flow, paused: bool, *, assign: bool) -> Iterator[str]:
    for node in flow.nodes:
        yield from _node(node, paused)
    yield f"{flow.name} = Workflow(" if assign else "Workflow("
    yield f"    name={flow.name!r},"
    if flow.at_once is not None:
        yield f"    max_concurrency={flow.at_once},"
    yield "    edges=["
    yield from (f"        {_edge(edge)}," for edge in flow.edges)
    yield "    ],"
    yield ")"


def _edge(edge: Edge) -> str:
    if edge.route is None:
        return f"({edge.source}, {edge.target})"
    if edge.route == DEFAULT:
        return f"({edge.source}, {{DEFAULT_ROUTE: {edge.target}}})"
    if isinstance(edge.route, tuple):
        return f"Edge(from_node={edge.source}, to_node={edge.target}, route={list(edge.route)!r})"
    return f"({edge.source}, {{{edge.route!r}: {edge.target}}})"


def _node(node: Node, paused: bool) -> Iterator[str]:
    if node.kind == "join":
        yield f"{node.name} = JoinNode(name={node.name!r})\n"
        return
    if node.kind == "wait":
        yield f"{node.name} = Collect(name={node.name!r}, want={node.want})\n"
        return
    if node.inner is not None:
        yield from _flow(node.inner, paused, assign=True)
    else:
        yield from _function(node, paused)
    options = [f"name={node.name!r}"]
    if node.attempts > 1:
        options.append(f"retry_config=RetryConfig(max_attempts={node.attempts}, initial_delay=0, jitter=0)")
    if node.kind == "worker":
        options.append("parallel_worker=True")
        options += [f"max_parallel_workers={node.limit}"] if node.limit else []
    if node.kind != "workflow":
        made = f"node({node.name}, {', '.join(options)})"
        yield f"{node.name} = {f'paused_without_items({made})' if paused and node.kind == 'worker' else made}"
    yield ""


def _function(node: Node, paused: bool) -> Iterator[str]:
    generator = node.style == "generator" and node.kind == "function"
    # ADK fills parameters before the body runs, so a node that pauses first reads the key itself.
    params = [] if paused else [f"{key}: Any = None" for key in node.reads[:1] if key.isidentifier()]
    keyword = "async def" if paused or node.style == "async" else "def"
    yield f"{keyword} {node.name}({', '.join(['ctx: Context', 'node_input: Any', *params])}):"
    if paused:
        late = f", late=shown(node_input) == {_shown(node.bad)!r}" if node.kind == "worker" and node.fails else ""
        yield f"    await pause({node.name!r}{late})"
    if node.kind == "worker" and node.fails:
        yield f"    if shown(node_input) == {_shown(node.bad)!r}:"
        yield f"        raise {node.fails}({node.name!r})"
    if node.reads:
        seen = [key if key in [p.split(":")[0] for p in params] else f"ctx.state.get({key!r})" for key in node.reads]
        yield f"    seen = [{', '.join(seen)}]"
    if generator:
        yield f"    yield Event(message={node.name + ' works'!r})"
    for write in node.writes:
        value = _written(node, write)
        yield f"    yield Event(state={{{write.key!r}: {value}}})" if generator else f"    ctx.state[{write.key!r}] = {value}"
    if node.attempts > 1:
        yield f"    if ctx.attempt_count < {node.attempts}:"
        yield "        raise ConnectionError('again')"
    if node.fails and node.kind != "worker":
        yield f"    raise {node.fails}({node.name!r})"
        return
    yield from _route(node)
    route = "route=route, " if node.route is not None else ""
    result = f"Event({route}output={_output(node)})" if route else _output(node)
    yield f"    {'yield' if generator else 'return'} {result}"


def _shown(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)  # as ``shown`` does it for the scalars that items are


def _written(node: Node, write: Write) -> str:
    return {
        "name": repr(node.name),
        "input": "shown(node_input)",
        "append": f"[*ctx.state.get({write.key!r}, []), {node.name!r}]",
        "count": f"ctx.state.get({write.key!r}, 0) + 1",
    }[write.how]


def _route(node: Node) -> Iterator[str]:
    if isinstance(node.route, Loop):
        key = f"round_{node.name}"
        yield f"    ctx.state[{key!r}] = ctx.state.get({key!r}, 0) + 1"
        yield f"    route = {node.route.again!r} if ctx.state[{key!r}] < {node.route.limit} else {node.route.done!r}"
    elif node.route is not None:
        how, given = node.route
        value = list(given) if isinstance(given, tuple) else given
        yield f"    route = pick({value!r}, node_input)" if how == "input" else f"    route = {value!r}"


def _output(node: Node) -> str:
    if node.output == "trace":
        seen = " + shown(seen)" if node.reads else ""
        return f"{node.name + ' '!r} + shown(node_input){seen}"
    if node.output == "same":
        return "node_input"
    return repr(node.output[1])
