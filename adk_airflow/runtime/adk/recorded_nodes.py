"""Runs of nodes as ADK's scheduler begins them: recorded, and answered from the journal where an earlier try finished one.

A finished run is answered as a whole: its events, and those of the runs below it, are given to ADK's session again, in their
order, so that state, history and what reads events are what they were; then ADK goes on with its output. A run that had not
finished runs again, and what was finished below it is answered.
"""

from __future__ import annotations

import asyncio
import bisect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from google.adk.workflow import Workflow
from google.adk.workflow._dynamic_node_scheduler import DynamicNodeRun, DynamicNodeScheduler
from google.adk.workflow._node_state import NodeState
from google.adk.workflow.utils._replay_interceptor import InterceptionResult, create_mock_context
from pydantic import ValidationError

from adk_airflow.errors import AdkAirflowError
from adk_airflow.runtime.adk import record_form
from adk_airflow.runtime.adk.recorder import NODE_PATH, branch_of, tool_call, words_of
from adk_airflow.runtime.record.entries import Entry
from adk_airflow.runtime.record.journal import Kept, fingerprint, top_level
from adk_airflow.runtime.wire import codec

if TYPE_CHECKING:
    from google.adk.agents.context import Context
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.adk.workflow import BaseNode

    from adk_airflow.runtime.adk.recorder import Recorder

_CREDENTIAL = "adk_request_credential"
_PATIENCE = 2.0  # seconds without any progress, after which the order of the earlier try is given up


@dataclass
class _Open:
    """A run of a node that has begun.

    Attributes:
        began: When it, or its attempt, began.
        events: The events of it and of what no other open run is nearer to, in JSON form.
        failures: The errors of its failed attempts that are not told yet: code, message and time.
        told: The message of the last one that was told.
        retries: ADK runs it again when it fails.
        asks: It waits for a person.
        durable: All its events can be given again.
    """

    began: float
    retries: bool
    events: list[dict[str, Any]] = field(default_factory=list)
    failures: list[tuple[str, str, float]] = field(default_factory=list)
    told: str | None = None
    asks: bool = False
    durable: bool = True


class NodeRuns:
    """The runs of nodes in one run of ADK.

    Args:
        recorder: The recorder.
        tells: Whether readers are told of the run at a path; not of what is around the nodes that belong to this task.
    """

    def __init__(self, recorder: Recorder, tells: Callable[[str], bool] = lambda path: True) -> None:
        self._recorder = recorder
        self._journal = recorder.record.journal
        self._tells = tells
        self._open: dict[str, _Open] = {}
        self._numbered = 0
        kept = sorted(self._journal.kept("node"), key=lambda kept: kept.line)
        self._kept, self._lines = kept, [entry.line for entry in kept]
        self._turns = _Turns(top_level(kept))
        recorder.on_event.append(self._take)
        recorder.give_call_again = self._give_call_again

    # -- live --------------------------------------------------------------------------------------------

    def begin(self, path: str, node: BaseNode) -> None:
        """A run begins."""
        self._open[path] = _Open(time.time(), node.retry_config is not None)

    def end(self, path: str, name: str, node_input: Any, ctx: Context) -> None:
        """A run has ended.

        Args:
            path: Its path.
            name: The node's name.
            node_input: What it was given.
            ctx: What came of it.
        """
        run = self._open.pop(path)
        error = ctx.error
        if error is None and not run.retries:
            run.failures.clear()  # errors of a model that the node could live with
        self._tell_failures(path, name, run)
        content = {"input": node_input, "output": ctx.output, "route": ctx.route}
        status = "waiting" if run.asks or ctx.interrupt_ids else "ok"
        if error is None:
            self._tell(path, name, run.began, status=status, content=content)
            if status == "ok":
                self._keep(path, node_input, ctx, run)
        elif run.told != str(error):  # one that no event told, such as that of a node that this one ran
            self._tell(path, name, run.began, status="failed", error=words_of(error), content=content)

    def cancelled(self, path: str, name: str) -> None:
        """A run was cancelled."""
        run = self._open.pop(path)
        self._tell_failures(path, name, run)
        self._tell(path, name, run.began, status="cancelled")

    def _tell_failures(self, path: str, name: str, run: _Open) -> None:
        for code, message, at in run.failures:
            self._tell(path, name, run.began, ended=at, status="failed", error=": ".join(filter(None, (code, message))))
            run.began, run.told = at, message  # another attempt may begin
        run.failures.clear()

    def _tell(self, path: str, name: str, began: float, *, ended: float | None = None, **more: Any) -> None:
        if self._tells(path):
            self._recorder.record.note(Entry("node", path, name, began=began, seconds=(ended or time.time()) - began, **more))

    def _take(self, event: Event) -> None:
        """Takes an event, for the nearest open run."""
        if event.partial or id(event) in self._recorder.again:
            return
        path = event.node_info.path or NODE_PATH.get()
        while path and path not in self._open:
            path = path.rpartition("/")[0]
        if not path:
            return
        run = self._open[path]
        own = path == event.node_info.path
        if own and event.error_code:
            run.failures.append((event.error_code, event.error_message or "", time.time()))
            if run.retries:
                self._tell_failures(path, path.rpartition("/")[2].partition("@")[0], run)
        run.asks = run.asks or (own and bool(event.long_running_tool_ids))
        if not self._journal.durable:
            return
        if event.actions.requested_auth_configs or any(call.name == _CREDENTIAL for call in event.get_function_calls()):
            run.durable = False  # a credential is in no record
        try:
            data = record_form.of_event(event)
        except (AdkAirflowError, ValueError, TypeError):
            run.durable = False
            return
        if delta := data.get("state_delta"):
            self._recorder.state.note(delta)
        run.events.append({"at": self._numbered, **data})
        self._numbered += 1

    def _keep(self, path: str, node_input: Any, ctx: Context, run: _Open) -> None:
        if not self._journal.durable or not self._tells(path):
            return
        if not run.durable or not self._journal.keeps(path):
            self._not_durable(path)
            return
        try:
            data: dict[str, Any] = {
                "output": codec.encode(ctx.output),
                "route": codec.encode(ctx.route),
                "branch": branch_of(ctx),
                "events": run.events,
            }
            asked = fingerprint(codec.encode(node_input))
        except AdkAirflowError:
            self._not_durable(path)
            return
        if ctx.actions.transfer_to_agent is not None:
            data["transfer"] = ctx.actions.transfer_to_agent
        if ctx.actions.skip_summarization:
            data["skip"] = True
        if state := self._recorder.state.changed(ctx.session.state):
            data["state"] = state
        if call := tool_call():
            data["call"] = call
        self._journal.add("node", path, f"{path}#node", asked, data, paid=False)

    def _not_durable(self, path: str) -> None:
        """What is around a run whose events cannot be given again cannot be answered as a whole either."""
        above = path.rpartition("/")[0]
        while above and above not in self._open:
            above = above.rpartition("/")[0]
        if above:
            self._open[above].durable = False

    # -- from the journal --------------------------------------------------------------------------------

    def finished(self, path: str, node_input: Any) -> Kept | None:
        """What an earlier try finished of this run; None: it runs."""
        if not self._journal.going_on or not self._tells(path):
            return None
        try:
            asked = fingerprint(codec.encode(node_input))
        except AdkAirflowError:
            return None
        return self._journal.find("node", path, f"{path}#node", asked)

    async def replay(
        self, kept: Kept, ctx: Context, node: BaseNode, node_input: Any, run_id: str, *, as_output: bool
    ) -> Context:
        """Gives ADK what a finished run gave.

        Args:
            kept: The finished run.
            ctx: The context around it.
            node: The node.
            node_input: What it is given.
            run_id: Its run id.
            as_output: Its output is that of the run around it.

        Raises:
            AdkAirflowError: It cannot be read.
        """
        began = time.time()
        data = kept.data
        output, route = codec.decode(data["output"]), codec.decode(data["route"])
        await self._turns.wait(kept)
        await self.give_again(self._with_those_below(kept), ctx.get_invocation_context())
        result = InterceptionResult(should_run=False, output=output, route=route, transfer_to_agent=data.get("transfer"))
        ancestors = [*([ctx.node_path] if as_output and ctx.node_path else []), *(ctx._output_for_ancestors or [])]
        child = create_mock_context(
            parent_ctx=ctx, node=node, run_id=run_id, result=result, ancestors=ancestors, node_path=kept.line,
            branch=data["branch"],
        )  # fmt: skip
        if data.get("skip"):
            child.actions.skip_summarization = True
        self._turns.done(kept)
        if self._tells(kept.line):
            content = {"input": node_input, "output": output, "route": route}
            self._recorder.record.note(
                Entry("node", kept.line, node.name, began=began, seconds=time.time() - began, replayed=True, content=content)
            )
        return child

    def _below(self, path: str) -> list[Kept]:
        first, last = (bisect.bisect_left(self._lines, f"{path}{end}") for end in "/0")  # "0" comes after "/"
        return self._kept[first:last]

    def _with_those_below(self, kept: Kept) -> list[Kept]:
        # An agent that another one hands over to runs below its path, but after it.
        return [*(below for below in self._below(kept.line) if below.order < kept.order), kept]

    async def before(self, path: str) -> None:
        """To be awaited before a run that had not finished: what had is answered first, as it was there then."""
        if not self._below(path):  # else what is finished below it waits for it
            await self._turns.all()

    async def give_again(self, entries: Sequence[Kept], invocation: InvocationContext) -> None:
        """Gives ADK's session the events of finished runs, and the state that they left.

        Args:
            entries: The runs.
            invocation: The invocation that goes on.
        """
        numbered = sorted((event for entry in entries for event in entry.data["events"]), key=lambda event: int(event["at"]))
        events = [record_form.event_from(_anew(event), invocation.invocation_id) for event in numbered]
        states = [_state(entry.data) for entry in sorted(entries, key=lambda entry: entry.order)]
        for event in events:
            self._recorder.again.add(id(event))
            await invocation._enqueue_event(event)
        for state in states:
            invocation.session.state.update(state)
        self._recorder.again.difference_update(map(id, events))

    async def _give_call_again(self, call: Kept, invocation: InvocationContext) -> None:
        """Gives the events again of a tool that is a workflow, and of the runs that a tool had begun."""
        begun = [kept for kept in self._kept if kept.data.get("call") == call.place]
        entries = [*begun, call] if call.data.get("events") else begun
        if entries:
            await self.give_again(entries, invocation)
            for kept in begun:
                self._turns.done(kept)


class RecordingScheduler(DynamicNodeScheduler):
    """ADK's scheduler of a workflow, which begins all runs of nodes in it: those of the graph and those that nodes make."""

    def __init__(self, *, state: Any, runs: NodeRuns, host: Callable[[Workflow], Workflow]) -> None:
        super().__init__(state=state)
        self.runs = runs
        self.host = host

    async def _run_node_internal(
        self,
        ctx: Context,
        node: BaseNode,
        name: str,
        node_path: str,
        run_id: str,
        node_input: Any,
        use_as_output: bool,
        is_fresh: bool,
        *args: Any,
        **kwargs: Any,
    ) -> Context:
        if isinstance(node, Workflow):
            node = self.host(node)
        kept = self.runs.finished(node_path, node_input) if is_fresh else None
        if kept is not None:
            try:
                child = await self.runs.replay(kept, ctx, node, node_input, run_id, as_output=use_as_output)
            except (AdkAirflowError, ValidationError, KeyError, TypeError):  # made by another version
                child = None
            if child is not None:
                run = self._state.runs[node_path] = DynamicNodeRun(state=NodeState(input=node_input, run_id=run_id))
                self._record_result(run, child, node)
                return child
        await self.runs.before(node_path)
        self.runs.begin(node_path, node)
        reset = NODE_PATH.set(node_path)
        try:
            child = await super()._run_node_internal(
                ctx, node, name, node_path, run_id, node_input, use_as_output, is_fresh, *args, **kwargs
            )
        except BaseException:
            self.runs.cancelled(node_path, name)
            raise
        finally:
            NODE_PATH.reset(reset)
        self.runs.end(node_path, name, node_input, child)
        return child


class _Turns:
    """Lets finished runs be answered in the order in which they ended, as far as that can be known."""

    def __init__(self, entries: list[Kept]) -> None:
        self._expected = {kept.place: None for kept in sorted(entries, key=lambda kept: kept.order)}
        self._moved = asyncio.Event()
        self._waiting: set[str] = set()

    async def wait(self, kept: Kept) -> None:
        """Waits until those that ended before it have been answered, or do not come."""
        self._waiting.add(kept.place)
        while kept.place in self._expected and (first := next(iter(self._expected))) != kept.place:
            self._moved.clear()
            try:
                await asyncio.wait_for(self._moved.wait(), _PATIENCE)
            except TimeoutError:
                if first not in self._waiting:
                    self._expected.pop(first, None)
        if len(self._waiting) > 1:
            await asyncio.sleep(0.001)  # what the one before makes ADK do comes first

    async def all(self) -> None:
        """Waits until all have been answered, or those that are left do not come."""
        while self._expected:
            left = len(self._expected)
            self._moved.clear()
            try:
                await asyncio.wait_for(self._moved.wait(), _PATIENCE)
            except TimeoutError:
                if len(self._expected) == left:
                    self._expected.clear()

    def done(self, kept: Kept) -> None:
        """It has been answered."""
        self._waiting.discard(kept.place)
        self._expected.pop(kept.place, None)
        self._moved.set()


def _state(data: Mapping[str, Any]) -> dict[str, Any]:
    """What a run changed inside of the state."""
    return {key: codec.decode(value) for key, value in (data.get("state") or {}).items()}


def _anew(event: Mapping[str, Any]) -> dict[str, Any]:
    """The event without its number, and without its id: a session that is kept has that of the earlier try, too."""
    return {key: value for key, value in event.items() if key not in ("at", "id")}
