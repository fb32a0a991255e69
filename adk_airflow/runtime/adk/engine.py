"""Runs a node, several that belong together (a loop), items of a parallel worker, or a whole workflow in ADK's own engine."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from google.adk.agents.context import Context
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.workflow import BaseNode, Workflow
from pydantic import PrivateAttr

from adk_airflow.runtime.adk.graph import body_of, find_node, is_terminal, parallel_worker_of
from adk_airflow.runtime.adk.hosted import HostedWorkflow, Part, hosted, part_of
from adk_airflow.runtime.adk.max_iterations import IterationLimit
from adk_airflow.runtime.adk.recorded_nodes import NodeRuns
from adk_airflow.runtime.adk.runner import Run, RunResult, drive
from adk_airflow.runtime.wire.envelope import Firing
from adk_airflow.runtime.wire.triggers import Arrival, Item, Trigger

if TYPE_CHECKING:
    from google.adk.events.event import Event

    from adk_airflow.runtime.adk.recorder import Recorder


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
    part = part_of(run.workflow, Part(frozenset(names), arrivals), run.state, **_limits(run.workflow, max_iterations or {}))
    return await _drive_part(run, part)


async def run_items(
    run: Run, node_name: str, firing: int, items: Sequence[Item], trigger: Trigger, *, mapped_tasks: int = 1
) -> RunResult:
    """Runs items of a parallel worker, as many at once as are this task's share of ``max_parallel_workers``.

    Args:
        run: The Airflow run.
        node_name: The worker.
        firing: Which of its runs the items belong to, from 0.
        items: The items.
        trigger: What triggered that run.
        mapped_tasks: How many such tasks may run at once.
    """
    worker = find_node(run.workflow, node_name)
    inner = body_of(worker)
    most = parallel_worker_of(worker).max_parallel_workers
    at_once = asyncio.Semaphore(max(1, most // mapped_tasks) if most else len(items))
    outputs: dict[int, Any] = {}

    async def one(ctx: Context, item: Item) -> None:
        async with at_once:
            if ctx.error is not None or ctx.interrupt_ids:
                return  # as in ADK, nothing more is begun
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
    part = Part(frozenset({node_name}), [Arrival(node_name, trigger)], runs_before={node_name: firing})
    result = await _drive_part(run, part_of(run.workflow, part, run.state, replaced={node_name: stand_in}), around=1)
    result.firings, result.outputs = [], [outputs.get(item.index) for item in items]
    return result


async def run_workflow(run: Run, *, max_iterations: Mapping[str, int] | None = None) -> RunResult:
    """Runs the whole workflow in ADK's engine; the single firing of the result holds the workflow's output.

    Args:
        run: The Airflow run.
        max_iterations: As for ``run_part``.
    """
    result = RunResult(state=dict(run.state))
    workflow = hosted(run.workflow, given=run.state, result=result, **_limits(run.workflow, max_iterations or {}))
    published = _Published()
    await drive(published.beside(run), workflow, result, begin=_recording(workflow))
    if result.error is None:
        # As ADK's event holds it; its engine keeps what the workflow's output_schema makes of it.
        result.firings = [published.in_place_of(firing, f"{firing.node}@1") for firing in result.firings]
    return result


class _Published(BasePlugin):
    """What ADK's events give out as the outputs of node runs, before another plugin replaces an event."""

    def __init__(self) -> None:
        super().__init__(name="adk_airflow_published")
        self._outputs: dict[str, Any] = {}
        self._invocation_id: str | None = None

    def beside(self, run: Run) -> Run:
        """The run, with this plugin before those of its App."""
        return replace(run, app=run.app.model_copy(update={"plugins": [self, *run.app.plugins]}))

    async def on_event_callback(self, *, invocation_context: Any, event: Event) -> None:
        """Takes one event, not of an agent that an ``AgentTool`` runs in an invocation of its own."""
        self._invocation_id = self._invocation_id or invocation_context.invocation_id
        if event.output is not None and invocation_context.invocation_id == self._invocation_id:
            self._outputs.update(dict.fromkeys(event.node_info.output_for or (), event.output))

    def in_place_of(self, firing: Firing, path: str) -> Firing:
        """The firing with the output of the events of the run at this path, if they have one."""
        if firing.output is None:  # maybe after an earlier run that had one
            return firing
        return replace(firing, output=self._outputs.get(path, firing.output))


class _Items(BaseNode):
    """Stands in for a parallel worker and runs some of its items."""

    rerun_on_resume: bool = True
    _run: Callable[[Context], Awaitable[None]] = PrivateAttr()

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        await self._run(ctx)
        return
        yield  # makes this an async generator, as ADK expects


def _recording(root: HostedWorkflow, around: int = 0) -> Callable[[Recorder], None]:
    """Has the runs of nodes recorded, but for those of the workflows and the node around what this task runs."""

    def begin(recorder: Recorder) -> None:
        root._adk_airflow_hosting.runs = NodeRuns(recorder, lambda path: path.count("/") > around)

    return begin


async def _drive_part(run: Run, part: HostedWorkflow, *, around: int = 0) -> RunResult:
    """Runs a part; that of a nested workflow in its place in the workflows around it."""
    result, root = part._adk_airflow_hosting.result, part
    assert result is not None
    for parent in reversed(run.parents):
        place = Part(frozenset({root.name}), [Arrival(root.name, parent.trigger)])
        root = part_of(parent.workflow, place, run.state, replaced={root.name: root})
    published = _Published()
    begin = _recording(root, len(run.parents) + around)
    await drive(published.beside(run), root, result, part=True, begin=begin)
    workflows = (*(parent.workflow for parent in run.parents), run.workflow)
    if all(map(is_terminal, workflows, (workflow.name for workflow in workflows[1:]))):
        runs: Counter[str] = Counter()
        for at, firing in enumerate(result.firings):
            runs[firing.node] += 1
            # A nested workflow that ends the run: as in run_workflow.
            if is_terminal(run.workflow, firing.node) and isinstance(find_node(run.workflow, firing.node), Workflow):
                path = "/".join(f"{workflow.name}@1" for workflow in workflows)
                result.firings[at] = published.in_place_of(firing, f"{path}/{firing.node}@{runs[firing.node]}")
    return result


def _limits(workflow: Workflow, most: Mapping[str, int]) -> dict[str, Any]:
    """The limit of a workflow's own nodes, and hosted copies of the nested workflows that hold nodes with a limit."""
    inside: dict[str, dict[str, int]] = {}
    for path, limit in most.items():
        name, nested, rest = path.partition("/")
        if nested:
            inside.setdefault(name, {})[rest] = limit
    own = {path: limit for path, limit in most.items() if "/" not in path}
    replaced: dict[str, BaseNode] = {}
    for name, given in inside.items():
        nested_workflow: Any = find_node(workflow, name)
        replaced[name] = hosted(nested_workflow, **_limits(nested_workflow, given))
    return {"limit": IterationLimit(workflow.name, own), "replaced": replaced}
