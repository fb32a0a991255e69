"""ADK's ``Workflow``, of which a part may run alone, whose loops may be limited, and whose end is seen from outside.

This is the one subclass of it. ADK's own engine runs it: node paths (``ticket_router@1/classify@1``), branches, joins, loops,
output claims, dynamic nodes and errors are therefore ADK's. The tests check the private names that this relies on.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.adk.agents.context import Context
from google.adk.workflow import BaseNode, Workflow
from google.adk.workflow._node_state import NodeState
from google.adk.workflow._node_status import NodeStatus
from google.adk.workflow._trigger import Trigger as AdkTrigger
from google.adk.workflow._workflow import _LoopState
from pydantic import PrivateAttr

from adk_airflow.runtime.adk.graph import waits_for_all
from adk_airflow.runtime.adk.max_iterations import IterationLimit
from adk_airflow.runtime.adk.recorded_nodes import NodeRuns, RecordingScheduler
from adk_airflow.runtime.adk.runner import RunResult
from adk_airflow.runtime.adk.stand_in import class_below
from adk_airflow.runtime.wire.envelope import Firing
from adk_airflow.runtime.wire.triggers import Arrival


@dataclass
class Part:
    """Which nodes of a workflow run, and what triggers them.

    Attributes:
        names: The nodes.
        arrivals: What reaches them from outside.
        runs_before: How often a node has run in other tasks, so that its run ids go on from there.
        triggered: The nodes outside of the part that have been triggered so far.
    """

    names: frozenset[str]
    arrivals: Sequence[Arrival]
    runs_before: Mapping[str, int] = field(default_factory=dict)
    triggered: set[str] = field(default_factory=set)


@dataclass
class Hosting:
    """What a hosted workflow knows of the task that it runs for.

    Attributes:
        part: Which nodes run; None for all.
        given: The session state that the run finds.
        result: Where what comes of it is noted; None where something around it sees that.
        replaced: What runs in the place of some of its nodes, by name.
        limit: How often its nodes may run.
        runs: Records the runs of its nodes; None: nobody does.
    """

    part: Part | None
    given: Mapping[str, Any]
    result: RunResult | None
    replaced: Mapping[str, BaseNode]
    limit: IterationLimit
    runs: NodeRuns | None = None


class HostedWorkflow(Workflow):
    """The workflow, run for a task; made by ``hosted`` and ``part_of``.

    With a part its triggers come from the tasks before instead of START, and what leaves it is recorded instead of scheduled.
    Beside what it overrides of ADK it has one attribute, named so that a user's class below it has none of that name.
    """

    _adk_airflow_hosting: Hosting = PrivateAttr()

    def _iter_static_children(self) -> Iterator[BaseNode]:
        """Of a part only its nodes: the Runner opens and closes the toolsets of their agents."""
        children, part = super()._iter_static_children(), self._adk_airflow_hosting.part
        return children if part is None else (node for node in children if node.name in part.names)

    def _get_static_node_by_name(self, name: str) -> BaseNode:
        return self._adk_airflow_hosting.replaced.get(name) or super()._get_static_node_by_name(name)

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        own = self._adk_airflow_hosting
        result = own.result
        if isinstance(around := ctx._workflow_scheduler, RecordingScheduler):
            own.runs = around.runs
        if result is not None:
            # A new session drops temp: keys, but within one run they are state like any other.
            temp = {key: copy.deepcopy(value) for key, value in own.given.items() if key.startswith("temp:")}
            ctx.session.state.update(temp)
            result.state = ctx.session.state
        async with contextlib.aclosing(super()._run_impl(ctx=ctx, node_input=node_input)) as items:
            async for item in items:
                yield item
        if result is not None:
            result.error_path = ctx.error_node_path
            result.interrupt_ids = set(ctx.interrupt_ids)
            if own.part is None:
                result.firings = [Firing(self.name, ctx.output, ctx.route)]

    async def _run_loop(self, loop_state: _LoopState, ctx: Context) -> None:
        if (runs := self._adk_airflow_hosting.runs) is not None:
            ctx._workflow_scheduler = RecordingScheduler(state=loop_state, runs=runs, host=_host)
        await super()._run_loop(loop_state, ctx)

    def _seed_start_triggers(self, loop_state: _LoopState, ctx: Context, node_input: Any) -> None:
        part = self._adk_airflow_hosting.part
        self._adk_airflow_hosting.limit.restart()
        if part is None:
            super()._seed_start_triggers(loop_state, ctx, node_input)
            return
        for name, before in part.runs_before.items():
            loop_state.run_counters.setdefault(ctx.node_path or "", {})[name] = before
        for arrival in part.arrivals:
            if arrival.source is None:
                trigger = arrival.trigger
                loop_state.trigger_buffer.setdefault(arrival.target, []).append(
                    AdkTrigger(input=trigger.input, use_sub_branch=trigger.sub_branch, branch=trigger.branch)
                )
            else:
                _arrive_at_join(self, loop_state, arrival)

    def _start_node_task(self, loop_state: _LoopState, ctx: Context, node_name: str, trigger: AdkTrigger) -> bool:
        own = self._adk_airflow_hosting
        own.limit.begin(node_name)
        if own.part is not None and own.result is not None:
            own.result.triggered_early |= own.part.triggered
        return super()._start_node_task(loop_state, ctx, node_name, trigger)

    async def _handle_completion(
        self, loop_state: _LoopState, node_name: str, node: BaseNode, child_ctx: Context, ctx: Context
    ) -> None:
        own = self._adk_airflow_hosting
        if own.part is not None and own.result is not None:
            without_output = child_ctx.output is None and child_ctx.route is None
            if node.wait_for_output and without_output and not child_ctx.interrupt_ids:
                own.result.firings.append(Firing(node_name, waiting=True))
        await super()._handle_completion(loop_state, node_name, node, child_ctx, ctx)

    def _buffer_downstream_triggers(
        self, loop_state: _LoopState, node_name: str, output: Any, route: Any, branch: str | None = None
    ) -> None:
        own = self._adk_airflow_hosting
        own.limit.note(node_name, route)
        part, result = own.part, own.result
        if part is None or result is None:
            super()._buffer_downstream_triggers(loop_state, node_name, output, route, branch)
            return
        following = self._require_graph().get_next_pending_nodes(node_name=node_name, routes_to_match=route)
        result.firings.append(Firing(node_name, output, route, branch, tuple(following)))
        part.triggered.update(target for target in following if target not in part.names)
        if any(not task.done() for task in loop_state.pending_tasks.values()):
            result.triggered_early |= part.triggered
        for target in following:
            if target not in part.names:
                continue
            if waits_for_all(self._get_static_node_by_name(target)):
                loop_state.join_arrivals.setdefault(target, set()).add(node_name)
                self._buffer_barrier_trigger(loop_state, target)
            else:
                loop_state.trigger_buffer.setdefault(target, []).append(
                    AdkTrigger(input=output, use_sub_branch=len(following) > 1, branch=branch)
                )

    def _has_terminal_output(self, loop_state: _LoopState) -> bool:
        # A part has no output of its own; the workflow's is made from the terminal nodes' firings.
        return self._adk_airflow_hosting.part is not None or super()._has_terminal_output(loop_state)

    def _finalize(self, loop_state: _LoopState, ctx: Context) -> None:
        if self._adk_airflow_hosting.part is None:
            super()._finalize(loop_state, ctx)
        else:
            ctx._interrupt_ids = set(loop_state.interrupt_ids)


def _arrive_at_join(workflow: Workflow, loop_state: _LoopState, arrival: Arrival) -> None:
    source, trigger = arrival.source, arrival.trigger
    assert source is not None
    loop_state.nodes[source] = NodeState(status=NodeStatus.COMPLETED)
    loop_state.node_branches[source] = trigger.branch or ""
    loop_state.node_outputs.pop(source, None)
    if trigger.input is not None:
        loop_state.node_outputs[source] = trigger.input
    loop_state.join_arrivals.setdefault(arrival.target, set()).add(source)
    workflow._buffer_barrier_trigger(loop_state, arrival.target)


def _host(workflow: Workflow) -> Workflow:
    return workflow if isinstance(workflow, HostedWorkflow) else hosted(workflow)


def hosted(
    workflow: Workflow,
    *,
    given: Mapping[str, Any] | None = None,
    result: RunResult | None = None,
    part: Part | None = None,
    limit: IterationLimit | None = None,
    replaced: Mapping[str, BaseNode] | None = None,
) -> HostedWorkflow:
    """The workflow itself, hosted: a copy with all its fields, of its own class if it is a subclass of ADK's.

    Args:
        workflow: The workflow.
        given: As of ``Hosting``, as the others.
        result: See there.
        part: See there.
        limit: See there.
        replaced: See there.
    """
    cls = _hosted_class(type(workflow))
    made: HostedWorkflow = cls.__new__(cls)
    copied = workflow.model_copy()
    for name in ("__dict__", "__pydantic_extra__", "__pydantic_fields_set__"):
        object.__setattr__(made, name, getattr(copied, name))
    object.__setattr__(made, "__pydantic_private__", dict(copied.__pydantic_private__ or {}))
    limit = limit or IterationLimit(workflow.name, {})
    made._adk_airflow_hosting = Hosting(part, given or {}, result, replaced or {}, limit)
    return made


@functools.cache
def _hosted_class(cls: type[Workflow]) -> Any:
    """``HostedWorkflow``, below a user's own class where the workflow is of one; it looks like that class."""
    if cls is Workflow:
        return HostedWorkflow
    return class_below(cls, HostedWorkflow)


def part_of(workflow: Workflow, part: Part, given: Mapping[str, Any], **more: Any) -> HostedWorkflow:
    """A part of the workflow, with a result of its own.

    Args:
        workflow: The workflow.
        part: The part.
        given: The session state that it finds.
        **more: As for ``hosted``.
    """
    plain = Workflow(
        name=workflow.name,
        description=workflow.description,
        graph=workflow.graph,
        state_schema=workflow.state_schema,
        max_concurrency=workflow.max_concurrency,
    )
    return hosted(plain, part=part, given=given, result=RunResult(state=dict(given)), **more)
