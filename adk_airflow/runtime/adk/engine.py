"""Runs a part of a workflow in ADK's own engine, as the whole workflow would run it there.

A part is one node, or several nodes that belong together (a loop). ADK's ``Workflow`` runs it, with two changes: its triggers
come from the tasks before instead of START, and what leaves the part is recorded instead of scheduled. Node paths
(``ticket_router@1/classify@1``), branches, joins, loops, output claims and errors are therefore ADK's own.

The tests check the private names that this room uses against google-adk's version.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from google.adk.agents.context import Context
from google.adk.workflow import BaseNode, Workflow
from google.adk.workflow._node_state import NodeState
from google.adk.workflow._node_status import NodeStatus
from google.adk.workflow._trigger import Trigger as AdkTrigger
from google.adk.workflow._workflow import _LoopState
from pydantic import PrivateAttr

from adk_airflow.runtime.adk.graph import body_of, find_node
from adk_airflow.runtime.adk.max_iterations import RunLimit
from adk_airflow.runtime.adk.runner import Run, RunResult, drive
from adk_airflow.runtime.wire.envelope import Firing
from adk_airflow.runtime.wire.triggers import Arrival, Item, Trigger


class _Part(Workflow):
    """The workflow, of which only ``_names`` run here: triggered by ``_arrivals``, recording what leaves."""

    _names: frozenset[str] = PrivateAttr()
    _arrivals: Sequence[Arrival] = PrivateAttr()
    _given: dict[str, Any] = PrivateAttr()
    _result: RunResult = PrivateAttr()
    _stand_ins: dict[str, BaseNode] = PrivateAttr(default_factory=dict)
    _first_runs: dict[str, int] = PrivateAttr(default_factory=dict)
    _limit: RunLimit = PrivateAttr(default_factory=lambda: RunLimit("", {}))
    _left: set[str] = PrivateAttr(default_factory=set)

    def _iter_static_children(self) -> Iterator[BaseNode]:
        """Only these: the Runner opens and closes the toolsets of their agents."""
        return (node for node in super()._iter_static_children() if node.name in self._names)

    def _get_static_node_by_name(self, name: str) -> BaseNode:
        return self._stand_ins.get(name) or super()._get_static_node_by_name(name)

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        _restore_temp_state(ctx, self._given)
        self._result.state = ctx.session.state
        async with contextlib.aclosing(super()._run_impl(ctx=ctx, node_input=node_input)) as items:
            async for item in items:
                yield item
        self._result.error_path = ctx.error_node_path

    def _seed_start_triggers(self, loop_state: _LoopState, ctx: Context, node_input: Any) -> None:
        for name, before in self._first_runs.items():
            loop_state.run_counters.setdefault(ctx.node_path or "", {})[name] = before
        for arrival in self._arrivals:
            if arrival.source is None:
                trigger = arrival.trigger
                loop_state.trigger_buffer.setdefault(arrival.target, []).append(
                    AdkTrigger(input=trigger.input, use_sub_branch=trigger.sub_branch, branch=trigger.branch)
                )
            else:
                self._arrive_at_join(loop_state, arrival)

    def _arrive_at_join(self, loop_state: _LoopState, arrival: Arrival) -> None:
        source, trigger = arrival.source, arrival.trigger
        assert source is not None
        loop_state.nodes[source] = NodeState(status=NodeStatus.COMPLETED)
        loop_state.node_branches[source] = trigger.branch or ""
        loop_state.node_outputs.pop(source, None)
        if trigger.input is not None:
            loop_state.node_outputs[source] = trigger.input
        loop_state.join_arrivals.setdefault(arrival.target, set()).add(source)
        self._buffer_barrier_trigger(loop_state, arrival.target)

    def _start_node_task(self, loop_state: _LoopState, ctx: Context, node_name: str, trigger: AdkTrigger) -> bool:
        self._limit.begin(node_name)
        self._result.handed_on |= self._left
        return super()._start_node_task(loop_state, ctx, node_name, trigger)

    async def _handle_completion(
        self, loop_state: _LoopState, node_name: str, node: BaseNode, child_ctx: Context, ctx: Context
    ) -> None:
        if node.wait_for_output and child_ctx.output is None and child_ctx.route is None and not child_ctx.interrupt_ids:
            self._result.firings.append(Firing(node_name, waiting=True))
        await super()._handle_completion(loop_state, node_name, node, child_ctx, ctx)

    def _buffer_downstream_triggers(
        self, loop_state: _LoopState, node_name: str, output: Any, route: Any, branch: str | None = None
    ) -> None:
        following = self._require_graph().get_next_pending_nodes(node_name=node_name, routes_to_match=route)
        self._result.firings.append(Firing(node_name, output, route, branch, tuple(following)))
        self._limit.note(node_name, route)
        self._left.update(target for target in following if target not in self._names)
        if any(not task.done() for task in loop_state.pending_tasks.values()):
            self._result.handed_on |= self._left
        for target in following:
            if target not in self._names:
                continue
            if self._get_static_node_by_name(target)._requires_all_predecessors:
                loop_state.join_arrivals.setdefault(target, set()).add(node_name)
                self._buffer_barrier_trigger(loop_state, target)
            else:
                loop_state.trigger_buffer.setdefault(target, []).append(
                    AdkTrigger(input=output, use_sub_branch=len(following) > 1, branch=branch)
                )

    def _has_terminal_output(self, loop_state: _LoopState) -> bool:
        return True  # a part has no output of its own; the workflow's is made from the terminal nodes' firings

    def _finalize(self, loop_state: _LoopState, ctx: Context) -> None:
        self._result.interrupts = sorted(loop_state.interrupt_ids)
        ctx._interrupt_ids = set(loop_state.interrupt_ids)


class _Items(BaseNode):
    """Stands in for a parallel worker and runs some of its items at once."""

    rerun_on_resume: bool = True
    _run: Callable[[Context], Awaitable[None]] = PrivateAttr()

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        await self._run(ctx)
        return
        yield  # makes this an async generator, as ADK expects


async def run_part(
    run: Run, names: Iterable[str], arrivals: Sequence[Arrival], *, max_iterations: Mapping[str, int] | None = None
) -> RunResult:
    """Runs the nodes ``names`` of the workflow until nothing of them is triggered any more, or one fails.

    Args:
        run: The Airflow run.
        names: The nodes.
        arrivals: What triggers them from outside.
        max_iterations: How often a node may run at most, by its path from ``run.workflow`` (``inner/a`` in a nested
            workflow, whose every run counts anew); one more is a ``LoopLimitError``.
    """
    part = _make_part(run, frozenset(names), arrivals)
    part._limit, part._stand_ins = _limits(run.workflow, max_iterations or {})
    await drive(run, _around(run, part), part._result, part=True)
    return part._result


async def run_items(run: Run, node_name: str, firing: int, items: Sequence[Item], trigger: Trigger) -> RunResult:
    """Runs items of the ``firing``-th run (from 0) of the parallel worker ``node_name`` at once."""
    worker = find_node(run.workflow, node_name)
    inner = body_of(worker)
    outputs: dict[int, Any] = {}

    async def one(ctx: Context, item: Item) -> None:
        child = await ctx._run_node_internal(
            inner,
            node_input=item.value,
            use_sub_branch=True,
            run_id=str(item.index + 1),
            return_ctx=True,
            skip_run_id_validation=True,
        )
        if child.error is not None and ctx.error is None:
            ctx._error, ctx._error_node_path = child.error, child.error_node_path
        ctx._interrupt_ids.update(child.interrupt_ids)
        outputs[item.index] = child.output

    async def run_all(ctx: Context) -> None:
        await asyncio.gather(*(one(ctx, item) for item in items))

    stand_in = _Items(name=node_name, state_schema=worker.state_schema)
    stand_in._run = run_all
    part = _make_part(run, frozenset({node_name}), [Arrival(node_name, trigger)])
    part._stand_ins, part._first_runs = {node_name: stand_in}, {node_name: firing}
    await drive(run, _around(run, part), part._result, part=True)
    result = part._result
    result.firings, result.outputs = [], [outputs.get(item.index) for item in items]
    return result


def _make_part(run: Run, names: frozenset[str], arrivals: Sequence[Arrival]) -> _Part:
    workflow = run.workflow
    part = _Part(
        name=workflow.name,
        description=workflow.description,
        graph=workflow.graph,
        state_schema=workflow.state_schema,
        max_concurrency=workflow.max_concurrency,
    )
    part._names, part._arrivals, part._given = names, arrivals, run.state
    part._result = RunResult(state=run.state)
    return part


def _around(run: Run, part: _Part) -> _Part:
    """Puts a part of a nested workflow into its place in the workflows around it."""
    for parent in reversed(run.parents):
        outer = _make_part(replace(run, workflow=parent.workflow), frozenset({part.name}), [Arrival(part.name, parent.trigger)])
        outer._stand_ins = {part.name: part}
        part = outer
    return part


async def run_workflow(run: Run, *, max_iterations: Mapping[str, int] | None = None) -> RunResult:
    """Runs the whole workflow in ADK's engine; the single firing of the result holds the workflow's output.

    Args:
        run: The Airflow run.
        max_iterations: As for ``run_part``.
    """
    result = RunResult(state=run.state)
    if max_iterations:
        run = replace(run, workflow=_limited(run.workflow, max_iterations))
    await drive(run, _watched(run, result), result)
    return result


def _limits(workflow: Workflow, most: Mapping[str, int]) -> tuple[RunLimit, dict[str, BaseNode]]:
    """The limit of a workflow's own nodes, and stand-ins for the nested workflows that hold nodes with a limit."""
    inside: dict[str, dict[str, int]] = {}
    for path, limit in most.items():
        name, nested, rest = path.partition("/")
        if nested:
            inside.setdefault(name, {})[rest] = limit
    own = {path: limit for path, limit in most.items() if "/" not in path}
    stand_ins: dict[str, BaseNode] = {}
    for name, given in inside.items():
        nested_workflow: Any = find_node(workflow, name)
        stand_ins[name] = _limited(nested_workflow, given)
    return RunLimit(workflow.name, own), stand_ins


def _limited(workflow: Workflow, most: Mapping[str, int]) -> Workflow:
    """The workflow itself, its class extended so that it fails when a node runs more often than it may."""
    runs, stand_ins = _limits(workflow, most)

    class Limited(type(workflow)):  # type: ignore[misc]
        def _get_static_node_by_name(self, name: str) -> BaseNode:
            found: BaseNode = stand_ins.get(name) or super()._get_static_node_by_name(name)
            return found

        def _seed_start_triggers(self, loop_state: _LoopState, ctx: Context, node_input: Any) -> None:
            runs.restart()
            super()._seed_start_triggers(loop_state, ctx, node_input)

        def _start_node_task(self, loop_state: _LoopState, ctx: Context, node_name: str, trigger: AdkTrigger) -> bool:
            runs.begin(node_name)
            started: bool = super()._start_node_task(loop_state, ctx, node_name, trigger)
            return started

        def _buffer_downstream_triggers(
            self, loop_state: _LoopState, node_name: str, output: Any, route: Any, branch: str | None = None
        ) -> None:
            runs.note(node_name, route)
            super()._buffer_downstream_triggers(loop_state, node_name, output, route, branch)

    return _with_class(workflow, Limited)


def _with_class(workflow: Workflow, extended: type) -> Workflow:
    copied = workflow.model_copy()
    object.__setattr__(copied, "__class__", extended)
    return copied


def _watched(run: Run, result: RunResult) -> Workflow:
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
            result.firings = [Firing(self.name, ctx.output, ctx.route)]

    return _with_class(run.workflow, Watched)


def _restore_temp_state(ctx: Context, given: dict[str, Any]) -> None:
    # A new session drops temp: keys, but within one run they are state like any other.
    ctx.session.state.update({key: copy.deepcopy(v) for key, v in given.items() if key.startswith("temp:")})
