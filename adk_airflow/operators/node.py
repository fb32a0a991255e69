"""One ADK node as one Airflow task."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException, DownstreamTasksSkipped

from adk_airflow.errors import EnvelopeError
from adk_airflow.operators.base import AdkOperator
from adk_airflow.runtime.wire import json_form
from adk_airflow.runtime.wire.envelope import XCOM_KEY, Envelope

if TYPE_CHECKING:
    from adk_airflow.runtime.adk.runner import Run, RunResult
    from adk_airflow.runtime.inbox import Inbox, Start
    from adk_airflow.runtime.source import Source


class AdkGraphOperator(AdkOperator):
    """Base of the tasks that have a place in the workflow's graph.

    Args:
        exits: For each node before this one, near or far, the full id of the task that speaks for it.
        skips: For each node that only this task triggers, the full id of its first task: skipped when it is not triggered.
    """

    # Airflow then remembers whom this task skipped, also when a skipped task is cleared.
    inherits_from_skipmixin = True

    def __init__(
        self,
        *,
        exits: Mapping[str, str] | None = None,
        skips: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.exits = dict(exits or {})
        self.skips = dict(skips or {})

    @property
    def nodes(self) -> Sequence[str]:
        """The nodes that run in this task."""
        return (self.node,)

    def read_inbox(self, context: Mapping[str, Any], source: Source) -> Inbox:
        """Reads what reached the nodes.

        Raises:
            AirflowSkipException: Nothing did: every predecessor was routed elsewhere, or gave no output to wait for.
            EnvelopeError: What a task left cannot be used.
        """
        from adk_airflow.runtime import inbox

        start = self.start(context)
        states = self.states_of(context, self.exits.values())
        if start is not None and self.exits:
            # Nodes after START never skip themselves, so when they are skipped it is the task group that is.
            roots = [task for name, task in self.exits.items() if inbox.predecessors(source.workflow, name) == [inbox.START]]
            if roots and all(states.get(task) == "skipped" for task in roots):
                raise AirflowSkipException(f"workflow {source.workflow.name!r}: its task group was skipped")
        if start is not None:
            start = self._enter(context, source, start)
        reader = self.reader(context, states)
        found = inbox.read(source.workflow, self.nodes, start=start, exits=self.exits, reader=reader)
        if not found.arrivals:
            raise AirflowSkipException(
                f"workflow {source.workflow.name!r}: no predecessor of node {self.node!r} triggered it in this run"
            )
        return found

    def _enter(self, context: Mapping[str, Any], source: Source, start: Start) -> Start:
        """What the run gives, with START's output: as ADK does, plugins see the message first, then the ``input_schema``."""
        from adk_airflow.runtime import inbox
        from adk_airflow.runtime.adk import graph, message
        from adk_airflow.runtime.adk.runner import RunResult

        given = inbox.merge([], start)
        result, received = RunResult(state=given.plain_state()), given.message
        if message.plugins_see_messages(source.app):
            result = self.await_adk(message.receive(self.make_run(context, source, given)))
            received = result.firings.pop().output if result.firings else received
        try:
            if result.error is not None:
                raise result.error
            return replace(start, output=graph.start_input(source.workflow, received))
        except Exception as error:
            self.leave(context, source, given, replace(result, error=error))
            raise

    def states_of(self, context: Mapping[str, Any], task_ids: Iterable[str]) -> dict[str, str]:
        """The states of tasks of this run; nothing where this task runs only after all of them succeeded."""
        ids = sorted(set(task_ids))
        if not ids or self.trigger_rule == "all_success":
            return dict.fromkeys(ids, "success")
        ti = context["ti"]
        states = ti.get_task_states(dag_id=ti.dag_id, task_ids=ids, run_ids=[ti.run_id])
        return {task_id: str(state) for task_id, state in states.get(ti.run_id, {}).items()}

    def reader(self, context: Mapping[str, Any], states: Mapping[str, str]) -> Callable[[str], Any]:
        """Reads the envelope that a task of this run left.

        Airflow keeps the XComs of a task that ran, was cleared, and is now skipped: they belong to another course of the
        run. So only what a task left that is in state success counts.

        The reader raises EnvelopeError for a task that is in state success and left nothing: a person marked it.
        """
        ti = context["ti"]

        def read(task_id: str) -> Any:
            if states.get(task_id) != "success":
                return None
            # map_indexes=None: what an unmapped task left, whatever this task is.
            text = ti.xcom_pull(task_ids=task_id, key=XCOM_KEY, map_indexes=None)
            if text is None:
                raise EnvelopeError(
                    f"node {self.node!r}: task {task_id!r} is in state success but left nothing in XCom key {XCOM_KEY!r}. If it"
                    " was marked by hand, it has no output to hand on: clear it, so that it runs, and what comes after it."
                )
            return text

        return read

    def hand_on(self, context: Mapping[str, Any], envelope: Envelope) -> Any:
        """Skips the nodes that this task alone could have triggered and did not; returns the plain output."""
        output = self.plain_output(envelope)
        chosen = {name for firing in envelope.firings for name in firing.next}
        skipped = [task_id for name, task_id in self.skips.items() if name not in chosen]
        for firing in envelope.firings:
            if firing.route is not None:
                targets = ", ".join(firing.next) or "nothing"
                self.log.info("Node %r emitted route %r: goes on to %s", firing.node, firing.route, targets)
        if skipped:
            self.log.info("Not triggered, so skipped: %s", ", ".join(skipped))
            if output is not None:
                context["ti"].xcom_push(key="return_value", value=output)
            raise DownstreamTasksSkipped(tasks=skipped)  # type: ignore[no-untyped-call]
        return output


class AdkRegionOperator(AdkGraphOperator):
    """Runs several nodes of a workflow together in ADK's own engine: a loop, or what the user embedded.

    Args:
        region: Names of the nodes, in ADK's order.
        max_iterations: For each node that shall not run more often than that, by path where it is inside a nested workflow:
            how often. The run then fails with ``LoopLimitError``, which shows the last routes. None: no limit, as in ADK.
    """

    custom_operator_name = "ADK region"

    def __init__(self, *, region: Sequence[str], max_iterations: Mapping[str, int] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.region = list(region)
        self.max_iterations = dict(max_iterations or {})

    @property
    def nodes(self) -> Sequence[str]:
        """The nodes that run in this task."""
        return self.region

    def execute(self, context: Any) -> Any:
        """Returns the last plain output of each node that gave one, by name; XCom ``adk`` holds the envelope."""
        from adk_airflow.runtime.adk import engine

        source = self.load()
        inbox = self.read_inbox(context, source)
        run = self.make_run(context, source, inbox)
        result = self.await_shown(
            context, run, lambda run: engine.run_part(run, self.nodes, inbox.arrivals, max_iterations=self.max_iterations)
        )
        if result.handed_on:
            self.log.warning(
                "%s triggered %s and ran on. ADK would run them side by side: here what comes after it starts now, and it saw"
                " nothing of what they write to state (mode='embedded' runs all in one task, as ADK does).",
                self.where(source.workflow.name), ", ".join(sorted(result.handed_on)),
            )  # fmt: skip
        return self.hand_on(context, self.leave(context, source, inbox, result))

    def plain_output(self, envelope: Envelope) -> Any:
        """The last outputs of the region's nodes, by name."""
        outputs = {name: envelope.last_output(name) for name in self.region}
        return {name: json_form.for_xcom(output) for name, (has, output) in outputs.items() if has}


class AdkNodeOperator(AdkGraphOperator):
    """Runs one node of a workflow under ADK's Runner, once per trigger that reached it.

    Args:
        max_iterations: For a nested workflow: as for ``AdkRegionOperator``, by path (``inner/a``).
    """

    def __init__(self, *, max_iterations: Mapping[str, int] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_iterations = dict(max_iterations or {})

    def execute(self, context: Any) -> Any:
        """Returns the node's plain output; XCom ``adk`` holds the envelope."""
        from adk_airflow.runtime.adk import engine, graph

        source = self.load()
        inbox = self.read_inbox(context, source)
        run = self.make_run(context, source, inbox)

        def work(run: Run) -> Awaitable[RunResult]:
            return engine.run_part(run, self.nodes, inbox.arrivals, max_iterations=self.max_iterations)

        runs_others = graph.runs_others(graph.find_node(source.workflow, self.node))
        result = self.await_shown(context, run, work) if runs_others else self.await_adk(work(run))
        return self.hand_on(context, self.leave(context, source, inbox, result))
