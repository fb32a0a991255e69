"""Runs one node (or some items of a parallel worker) in ADK's own engine, as the whole workflow would run it there.

The host is a ``Workflow`` in name, schema and type, so that node paths (``ticket_router@1/classify@1``), branches, output
claims and state rules come out as in a whole run; it schedules just the calls it was given. Everything that a node does
(schemas, retries, timeouts, plugins, callbacks, dynamic nodes) is done by ADK.

This is the only module that touches private names of google-adk; they are checked against its version by the tests.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from google.adk.agents.context import Context
from google.adk.apps.app import App
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.workflow import START, BaseNode, Workflow
from google.adk.workflow._dynamic_node_scheduler import DynamicNodeScheduler
from google.adk.workflow._workflow import _LoopState, get_common_branch_prefix
from pydantic import PrivateAttr

from adk_airflow.errors import ValueNotTransferableError
from adk_airflow.runtime import codec
from adk_airflow.runtime.envelope import Firing

if TYPE_CHECKING:
    from google.adk.artifacts.base_artifact_service import BaseArtifactService
    from google.adk.events.event import Event
    from google.genai import types

USER_ID = "airflow"


@dataclass(frozen=True)
class Trigger:
    """One reason to run a node: its input, and ADK's branch for the run.

    Attributes:
        input: The node's input.
        branch: The branch of the predecessor's run, or None for the workflow's own.
        sub_branch: True when the predecessor triggered several nodes at once.
    """

    input: Any
    branch: str | None = None
    sub_branch: bool = False


@dataclass(frozen=True)
class Item:
    """One item of a parallel worker's list: the run of the worker it belongs to, its place in the list, its value."""

    firing: int
    index: int
    value: Any


@dataclass
class HostRun:
    """What came out of a host run.

    Attributes:
        firings: The runs that finished, in order.
        outputs: For items: their outputs, in the order given.
        state: The whole session state afterwards, ``temp:`` keys included.
        written: The keys that were set.
        error: The exception that the node failed with, as ADK reports it, or None.
        error_path: ADK's path of the node that failed, such as ``wf@1/node@1``.
    """

    firings: list[Firing] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    error: BaseException | None = None
    error_path: str = ""
    interrupts: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Run:
    """The Airflow run that a host works for.

    Attributes:
        app: The ADK App: its name, plugins and configs.
        workflow: The workflow that is being run.
        session_id: Id of the ADK session; the same for all tasks of one Airflow run.
        message: The user message that started the run.
        state: The session state that the node finds.
        artifact_service: Where artifacts go.
        on_event: Called with every ADK event as it happens.
    """

    app: App
    workflow: Workflow
    session_id: str
    message: types.Content
    state: dict[str, Any]
    artifact_service: BaseArtifactService | None = None
    on_event: Callable[[Event], None] | None = None


def find_node(workflow: Workflow, name: str) -> BaseNode:
    """The node ``name`` of ``workflow``. Raises KeyError when there is none."""
    assert workflow.graph is not None
    for node in workflow.graph.nodes:
        if node.name == name:
            return node
    raise KeyError(name)


def parallel_worker_of(node: BaseNode) -> Any:
    """ADK's parallel worker inside ``node`` (``node(..., parallel_worker=True)`` in any spelling), or None."""
    from google.adk.workflow._parallel_worker import _ParallelWorker

    if isinstance(node, _ParallelWorker):
        return node
    inner = getattr(node, "_inner_node", None)
    return inner if isinstance(inner, _ParallelWorker) else None


def worker_items(node: BaseNode, node_input: Any) -> list[Any]:
    """The list that ADK's parallel worker ``node`` makes of its input: a list as it is, anything else as one item."""
    from google.adk.workflow._parallel_worker import _unwrap_content_input
    from google.genai import types

    worker = parallel_worker_of(node)
    node_input = node._validate_input_data(node_input)
    if isinstance(node_input, types.Content):
        node_input = _unwrap_content_input(node_input, worker._node)
    return node_input if isinstance(node_input, list) else [node_input]


def start_input(workflow: Workflow, message: types.Content) -> Any:
    """What START hands to its successors: the user message, validated by the workflow's ``input_schema``."""
    return workflow._validate_input_data(message)


def start_triggers_sub_branches(workflow: Workflow) -> bool:
    """Whether ADK gives START's successors a branch of their own (it has several edges)."""
    assert workflow.graph is not None
    return sum(edge.from_node.name == START.name for edge in workflow.graph.edges) > 1


def common_branch(branches: Sequence[str | None]) -> str:
    """ADK's branch of a join over ``branches``."""
    return get_common_branch_prefix([branch or "" for branch in branches])


def worker_branch(trigger: Trigger, name: str, firing: int) -> str | None:
    """ADK's branch of the ``firing``-th run (from 0) of a parallel worker."""
    from google.adk.events._branch_path import _BranchPath

    if not trigger.sub_branch:
        return trigger.branch
    return str(_BranchPath.create_sub_branch(trigger.branch, name=name, run_id=str(firing + 1)))


def finish(workflow: Workflow, node: str, output: Any, route: Any, branch: str | None) -> Firing:
    """Makes the firing of a run that ended: whether it waits, and whom ADK's own graph triggers next."""
    assert workflow.graph is not None
    if find_node(workflow, node).wait_for_output and output is None and route is None:
        return Firing(branch=branch, waiting=True)
    following = workflow.graph.get_next_pending_nodes(node_name=node, routes_to_match=route)
    return Firing(output=output, route=route, branch=branch, next=tuple(following))


def validate_worker_output(node: BaseNode, outputs: list[Any]) -> Any:
    """The parallel worker's output as ADK would accept it."""
    return node._validate_output_data(outputs)


def workflow_output(workflow: Workflow, outputs: dict[str, Any]) -> Any:
    """The workflow's output from the outputs of its terminal nodes (only those that have one).

    Raises:
        WorkflowConfigurationError: More than one terminal node has an output, as in ADK.
    """
    from google.adk.workflow._errors import WorkflowConfigurationError

    if len(outputs) > 1:
        raise WorkflowConfigurationError(
            f"Workflow {workflow.name}: multiple terminal nodes produced output ({', '.join(sorted(outputs))})."
            " A workflow must have at most one terminal output."
        )
    return workflow._validate_output_data(next(iter(outputs.values()))) if outputs else None


class _Host(Workflow):
    """Takes the workflow's place in the run and does ``_work`` instead of scheduling a graph."""

    _work: Callable[[_Host, Context], Awaitable[None]] = PrivateAttr()
    _given: dict[str, Any] = PrivateAttr(default_factory=dict)
    _child: BaseNode = PrivateAttr()
    _result: HostRun = PrivateAttr(default_factory=HostRun)

    def _iter_static_children(self) -> Iterator[BaseNode]:
        yield self._child  # so that the Runner finds, and closes, the toolsets of the node's agents

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        _restore_temp_state(ctx, self._given)
        self._result.state = ctx.session.state
        ctx.event_author = self.name
        loop_state = _LoopState()
        ctx._workflow_scheduler = DynamicNodeScheduler(state=loop_state)
        try:
            await self._work(self, ctx)
            if ctx.error is None:
                await self._await_detached(loop_state, ctx)
        finally:
            ctx._workflow_scheduler = None
            await self._cleanup_all_tasks(loop_state)
        return
        yield  # makes this an async generator, as ADK expects

    async def _await_detached(self, loop_state: _LoopState, ctx: Context) -> None:
        """Dynamic nodes that a node started without awaiting them belong to the run, as in ADK."""
        tasks = loop_state.get_dynamic_tasks()
        if tasks:
            await asyncio.wait(tasks)
            self._surface_detached_dynamic_outcome(tasks, loop_state, ctx)
            self._result.error_path = ctx.error_node_path

    def _failed(self, ctx: Context, child: Context) -> bool:
        """Hands the first failure up, as ADK's own Workflow does: by setting it on its context."""
        if child.error is None:
            return False
        if ctx.error is None:
            ctx._error, ctx._error_node_path = child.error, child.error_node_path
        self._result.error_path = ctx.error_node_path
        return True

    async def _call(self, ctx: Context, node: BaseNode, value: Any, **kwargs: Any) -> Context:
        child: Context = await ctx._run_node_internal(
            node, node_input=value, return_ctx=True, skip_run_id_validation=True, **kwargs
        )
        self._result.interrupts.extend(sorted(child.interrupt_ids))
        return child


class _Items(BaseNode):
    """Stands at the parallel worker's place in the node path and runs some of its items at once."""

    rerun_on_resume: bool = True
    _run: Callable[[Context], Awaitable[None]] = PrivateAttr()

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        await self._run(ctx)
        return
        yield


async def run_triggers(run: Run, node_name: str, triggers: Sequence[Trigger]) -> HostRun:
    """Runs the node once per trigger, one run at a time, in the order given. Stops at the first failure."""
    assert run.workflow.graph is not None
    node = find_node(run.workflow, node_name)
    terminal = node_name in run.workflow.graph._terminal_node_names

    async def work(host: _Host, ctx: Context) -> None:
        for number, trigger in enumerate(triggers, start=1):
            scope = host._compute_isolation_scope_for_node(node, ctx, str(number))
            child = await host._call(
                ctx,
                node,
                trigger.input,
                use_sub_branch=trigger.sub_branch,
                override_branch=trigger.branch,
                override_isolation_scope=scope,
                run_id=str(number),
                use_as_output=terminal,
            )
            if host._failed(ctx, child) or child.interrupt_ids:
                return
            branch = child._invocation_context.branch
            host._result.firings.append(finish(run.workflow, node_name, child.output, child.route, branch))

    return await _run_host(run, node_name, work)


async def run_items(run: Run, node_name: str, items: Sequence[Item], triggers: Sequence[Trigger]) -> HostRun:
    """Runs items of the parallel worker ``node_name`` at once; ``triggers[item.firing]`` gives the worker's branch."""
    inner = parallel_worker_of(find_node(run.workflow, node_name))._node
    outputs: dict[tuple[int, int], Any] = {}

    async def one(host: _Host, ctx: Context, item: Item) -> None:
        child = await host._call(ctx, inner, item.value, use_sub_branch=True, run_id=str(item.index + 1))
        host._failed(ctx, child)
        outputs[item.firing, item.index] = child.output

    async def work(host: _Host, ctx: Context) -> None:
        for firing in sorted({item.firing for item in items}):
            batch = [item for item in items if item.firing == firing]
            place = _Items(name=node_name)

            async def run_batch(worker_ctx: Context, batch: list[Item] = batch) -> None:
                await asyncio.gather(*(one(host, worker_ctx, item) for item in batch))

            place._run = run_batch
            trigger = triggers[firing]
            child = await host._call(
                ctx, place, None, use_sub_branch=trigger.sub_branch, override_branch=trigger.branch,
                run_id=str(firing + 1),
            )  # fmt: skip
            if host._failed(ctx, child):
                return

    result = await _run_host(run, node_name, work)
    result.outputs = [outputs.get((item.firing, item.index)) for item in items]
    return result


async def run_workflow(run: Run) -> HostRun:
    """Runs the whole workflow in ADK's engine; the single firing of the result holds the workflow's output."""
    result = HostRun(state=run.state)
    await _drive(run, _watched(run, result), result)
    return result


async def _run_host(run: Run, node_name: str, work: Callable[[_Host, Context], Awaitable[None]]) -> HostRun:
    host = _Host(
        name=run.workflow.name,
        description=run.workflow.description,
        state_schema=run.workflow.state_schema,
    )
    host._work, host._given, host._child = work, run.state, find_node(run.workflow, node_name)
    host._result.state = run.state
    await _drive(run, host, host._result)
    return host._result


def _watched(run: Run, result: HostRun) -> Workflow:
    """The workflow itself, its class extended so that ADK's context of the run is seen at the end."""

    class Watched(type(run.workflow)):  # type: ignore[misc]
        async def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
            _restore_temp_state(ctx, run.state)
            result.state = ctx.session.state
            async with contextlib.aclosing(super()._run_impl(ctx=ctx, node_input=node_input)) as items:
                async for item in items:
                    yield item
            result.error_path = ctx.error_node_path
            result.interrupts = sorted(ctx.interrupt_ids)
            result.firings = [Firing(output=ctx.output, route=ctx.route)]

    watched = run.workflow.model_copy()
    object.__setattr__(watched, "__class__", Watched)
    return watched


def _restore_temp_state(ctx: Context, given: dict[str, Any]) -> None:
    # A new session drops temp: keys, but within one run they are state like any other.
    ctx.session.state.update({key: copy.deepcopy(v) for key, v in given.items() if key.startswith("temp:")})


async def _drive(run: Run, root: BaseNode, result: HostRun) -> None:
    """Runs ``root`` under a normal ADK Runner and notes what it wrote and how it ended."""
    app_name = run.app.name
    sessions = InMemorySessionService()  # type: ignore[no-untyped-call, unused-ignore]
    await sessions.create_session(app_name=app_name, user_id=USER_ID, session_id=run.session_id, state=copy.deepcopy(run.state))
    runner = Runner(
        app=run.app.model_copy(update={"root_agent": root}),
        session_service=sessions,
        artifact_service=run.artifact_service,
    )
    before = {key: _fingerprint(value) for key, value in run.state.items()}
    try:
        events = runner.run_async(user_id=USER_ID, session_id=run.session_id, new_message=run.message)
        async with contextlib.aclosing(events) as stream:
            async for event in stream:
                if event.actions:
                    result.written.update(event.actions.state_delta)
                if run.on_event is not None:
                    run.on_event(event)
    except Exception as error:
        result.error = error
    finally:
        await runner.close()
    result.state = dict(result.state)
    if result.error is not None:
        # ADK keeps of a failed run what an event carried; what a cancelled branch set after its last event is gone.
        stored = await sessions.get_session(app_name=app_name, user_id=USER_ID, session_id=run.session_id)
        assert stored is not None
        temp = {key: value for key, value in result.state.items() if key.startswith("temp:")}
        result.state = {**stored.state, **temp}
    result.written &= result.state.keys()
    result.written |= {k for k, value in result.state.items() if before.get(k) != _fingerprint(value)}


def _fingerprint(value: Any) -> Any:
    """Something that differs when the value changed, also inside a container that ADK did not see change."""
    try:
        return codec.dumps(codec.encode(value))
    except ValueNotTransferableError:
        return object()
