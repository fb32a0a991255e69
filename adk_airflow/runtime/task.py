"""The life of a task, the same for all operators: load, receive, run, send, skip.

An operator is a ``Step``: it says which part of ADK runs. ``live`` does the rest, in this order:

1. **load**: import the workflow (or the agent, the tool), and google-adk with it.
2. **receive**: read what reached this task (``inbox``): the run's input, or the envelopes of the tasks before.
3. **run**: let ADK run it, on the one event loop of the task.
4. **send**: leave the envelope in XCom (``outbox``), also when the run failed; then raise what it failed with.
5. **skip**: have Airflow skip what only this task could have triggered and did not; return the plain output.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from adk_airflow.errors import HumanInputNotSupportedError
from adk_airflow.runtime import failures, sealing, sending
from adk_airflow.runtime.event_loop import TaskCancelled, TaskLoop, has_own_process
from adk_airflow.runtime.log_watch import telling_the_masker
from adk_airflow.runtime.outbox import Outbox
from adk_airflow.runtime.run_usage import RunUsage, Spender
from adk_airflow.runtime.wire import json_form
from adk_airflow.runtime.wire.envelope import XCOM_KEY, Envelope
from adk_airflow.runtime.wire.triggers import Parent, Trigger

if TYPE_CHECKING:
    from google.adk.workflow import BaseNode

    from adk_airflow.runtime.adk.runner import Run, RunResult
    from adk_airflow.runtime.inbox import Inbox
    from adk_airflow.runtime.record.entries import Entry
    from adk_airflow.runtime.record.task_record import TaskRecord
    from adk_airflow.runtime.services.models import ModelConnections
    from adk_airflow.runtime.source import Source
    from adk_airflow.runtime.transcribing import TaskTranscript


class Step(Spender, Protocol):
    """What an operator says: which part of ADK its task runs."""

    llm_conn_id: str | dict[str, str] | None
    durable: bool | dict[str, bool]
    execution_timeout: timedelta | None

    @property
    def ends_run(self) -> bool:
        """Whether the task leaves the workflow's output."""

    @property
    def log(self) -> Any:
        """Airflow's log of the task."""

    def load(self) -> Source:
        """Imports what the task runs; of a nested workflow the node's own."""

    def name_of(self, source: Source) -> str:
        """The name of the node, the agent or the tool."""

    def where(self, source: Source) -> str:
        """How errors and log lines name it."""

    def nodes_of(self, source: Source) -> Sequence[BaseNode]:
        """The nodes of a workflow that run in its task, of which others run in other tasks; none without a graph."""

    def receive(self, task: Task) -> Inbox:
        """Reads what reached this task. Raises AirflowSkipException when nothing did."""

    def run(self, task: Task) -> RunResult:
        """Lets ADK run it. An exception counts like one that ADK reports in the result."""

    def plain_output(self, task: Task, envelope: Envelope) -> Any:
        """What people and other tasks see as this task's ``return_value``; None for no output."""

    def skip_untriggered(self, task: Task, envelope: Envelope, output: Any) -> None:
        """Has Airflow skip what this task alone could have triggered and did not."""


@telling_the_masker()
def live(step: Step, context: Mapping[str, Any], running: Callable[[Task | None], None]) -> Any:
    """Runs a task from load to skip and returns its plain output.

    Args:
        step: The operator.
        context: The task's context.
        running: Told the task as long as it can be cancelled.

    Raises:
        Exception: What the node itself failed with.
        EnvelopeError: What a task before left cannot be used.
        ValueNotTransferableError: An output or a state value has no JSON form.
        HumanInputNotSupportedError: The node waits for a person.
        AirflowSkipException: Nothing reached the node.
    """
    try:
        task = Task(step, context, step.load())
        running(task)
        try:
            with task.loop:
                task.inbox = step.receive(task)
                result = task.run()
        except BaseException:
            task.end()
            raise
        finally:
            running(None)
        envelope = task.send(result)
        output = step.plain_output(task, envelope)
        step.skip_untriggered(task, envelope, output)
        return output
    except BaseException as error:
        failures.hide_secrets(error)  # Airflow shows it to callbacks, listeners and mails, too
        raise


class Task:
    """One try of a task.

    Attributes:
        step: The operator.
        context: Airflow's context.
        source: What runs, and the App it runs in.
        inbox: What was received.
        received: What the step read besides the inbox.
        outbox: What the step adds to the envelope.
        session_id: An ADK session that outlives the run. Empty: one of the run's own, named like it.
    """

    inbox: Inbox
    _transcript: TaskTranscript

    def __init__(self, step: Step, context: Mapping[str, Any], source: Source) -> None:
        self.step = step
        self.context = context
        self.source = source
        self.received: Any = None
        self.outbox = Outbox()
        self.session_id = ""
        self._warned: set[str] = set()
        limit = step.execution_timeout.total_seconds() if step.execution_timeout else None
        self.loop = TaskLoop(self.where, seconds=limit, log=step.log)

    @property
    def name(self) -> str:
        """The name of the node, the agent or the tool."""
        return self.step.name_of(self.source)

    @property
    def where(self) -> str:
        """How errors and log lines name what runs in this task."""
        return self.step.where(self.source)

    @property
    def writer(self) -> str:
        """The task, unique in the run: its id, with the index of a mapped one."""
        ti = self.context["ti"]
        return str(ti.task_id) if ti.map_index < 0 else f"{ti.task_id}[{ti.map_index}]"

    @functools.cached_property
    def record(self) -> TaskRecord:
        """The record of this try, with what earlier ones have finished; of a task that runs ADK."""
        from adk_airflow.runtime.record.attempt import Attempt
        from adk_airflow.runtime.record.task_record import TaskRecord
        from adk_airflow.runtime.run_usage import budgets_of
        from adk_airflow.runtime.services.prices import read_prices
        from adk_airflow.runtime.transcribing import TaskTranscript

        ti = self.context["ti"]
        durable = self.step.durable
        afresh = [path for path, is_durable in durable.items() if not is_durable] if isinstance(durable, dict) else []
        record = TaskRecord(
            Attempt.of(self.context, own_process=has_own_process()),
            self.context.get("task_state_store"),
            self.step.log,
            durable=durable is not False,
            afresh=afresh,
            price=read_prices(),
            tags={"dag_id": str(ti.dag_id), "task_id": str(ti.task_id)},
        )
        record.standing.on_lost = self.loop.cancel
        if budgets := budgets_of(self.step, self.where):
            record.keep_to(budgets, self._run_usage(record))
        self._transcript = TaskTranscript(record.attempt, self.context, where=self.where, log=self.step.log)
        record.readers.append(self._transcript.add)
        return record

    def _run_usage(self, record: TaskRecord | None) -> RunUsage:
        from adk_airflow.runtime.record.attempt import Attempt
        from adk_airflow.runtime.record.task_record import TaskRecord
        from adk_airflow.runtime.services.prices import read_prices

        # A task that ran nothing in ADK sums what others spent, and has no record for that.
        record = record or TaskRecord(Attempt.of(self.context, own_process=has_own_process()), price=read_prices())
        own_process = record.attempt.own_process
        return RunUsage(self.context["ti"], self.writer, record.usage, self.step.log, own_process=own_process)

    def end(self) -> None:
        """The try ends before its time: a person or a time limit ended it, or it no longer counts.

        Raises:
            OvertakenError: It no longer counts.
        """
        if (record := self.recorded()) is not None:
            record.check()
            record.keep()
            self._run_usage(record).send(None)
            self._transcript.stop()

    def forget(self, context: Any) -> None:
        """The task has succeeded: a callback of Airflow's."""
        if (record := self.recorded()) is not None:
            record.forget()

    def recorded(self) -> TaskRecord | None:
        """The record, if anything ran in ADK."""
        found: TaskRecord | None = self.__dict__.get("record")
        return found

    # -- run ---------------------------------------------------------------------------------------------

    def run(self) -> RunResult:
        """What came of the step's run."""
        from adk_airflow.runtime.adk.runner import RunResult

        values = self.inbox.values
        if self.inbox.error is not None:
            return RunResult(state=values, error=self.inbox.error)
        try:
            return self.step.run(self)
        except TaskCancelled:
            raise
        except Exception as error:
            return RunResult(state=values, error=error)

    def adk_run(self, inbox: Inbox | None = None) -> Run:
        """The ADK side of this Airflow run.

        Args:
            inbox: What was received. None: the task's.

        Raises:
            ServiceConfigurationError: A service that the settings name is not there.
            ModelConnectionError: There is no connection that the task names, or no installed provider knows its type.
        """
        from adk_airflow.runtime.adk.runner import Run
        from adk_airflow.runtime.services import settings

        inbox, record, source = inbox or self.inbox, self.record, self.source
        nodes = self.step.nodes_of(source)
        whole = (*source.parents, source.workflow)[0].graph if nodes else None
        run_id, writer = str(self.context["run_id"]), self.writer
        sessions = None
        if self.session_id:
            writer = f"{run_id}.{writer}"
            sessions = settings.durable_session_service(self.session_id, self.where)
        scope = [workflow.name for workflow in source.parents[1:]] + [source.workflow.name]
        triggers = [inbox.scopes["/".join(scope[: at + 1])] for at in range(len(source.parents))]
        return Run(
            app=source.app,
            parents=tuple(
                Parent(workflow, Trigger(None, branch, sub_branch))
                for workflow, (branch, sub_branch) in zip(source.parents, triggers, strict=True)
            ),
            workflow=source.workflow,
            session_id=self.session_id or run_id,
            message=inbox.message,
            state=inbox.values,
            artifact_service=settings.default_artifact_service(),
            memory_service=settings.default_memory_service(writer),
            session_service=sessions,
            remember=settings.remember_runs(),
            on_event=self._log_event,
            models=self._models(),
            record=record,
            history=self._transcript.history(inbox.records, nodes, source.app),
            keep_events=self._transcript.keeps_events(whole.nodes if whole is not None else (), source.app),
        )

    def _models(self) -> ModelConnections | None:
        """The connections that this task's agents get their models from, read before the event loop runs; None for none."""
        from airflow.sdk import conf

        conn_ids = self.step.llm_conn_id or conf.get("adk_airflow", "llm_conn_id", fallback="")
        if isinstance(conn_ids, str):
            conn_ids = {"": conn_ids} if conn_ids else {}
        if not conn_ids:
            return None
        from adk_airflow.runtime.services.models import read_connections

        return read_connections(conn_ids, where=self.where)

    def _log_event(self, event: Any) -> None:
        for part in (event.content.parts or []) if event.content else []:
            if part.text:
                self.step.log.info("%s says: %s", event.author, failures.masked(part.text))

    def wait_for(self, work: Awaitable[RunResult]) -> RunResult:
        """Runs ADK's part to its end on the task's event loop, or until Airflow cancels the task.

        Raises:
            TaskCancelled: It was marked in the UI, or its worker is being stopped.
        """

        return self.loop.run(work)

    def cancel(self) -> None:
        """Cancels what runs in ADK, at once; Airflow calls this in a signal handler."""
        self.loop.cancel()

    def watch(self, run: Run, work: Callable[[Run], Awaitable[RunResult]]) -> RunResult:
        """``wait_for`` of a run of several nodes: each of their runs is logged as it ends.

        Args:
            run: The Airflow run.
            work: Runs the nodes.
        """
        from adk_airflow.runtime.record.run_log import node_runs_to

        run.record.readers += [node_runs_to(self.step.log), self._warn_of_run]
        return self.wait_for(work(run))

    def _warn_of_run(self, entry: Entry) -> None:
        if entry.kind == "node" and entry.status == "ok":
            self.warn_of_route(entry.path, entry.content.get("route"))

    def warn_of_route(self, node: str, route: Any) -> None:
        """Warns, once, of a route after which nothing runs although the node has edges.

        Args:
            node: The node, or the path of its run.
            route: The route that it emitted; None for none.
        """
        from adk_airflow.runtime.adk import graph

        workflows = (*self.source.parents, self.source.workflow)
        is_path = "/" in node
        text = graph.unroutable_run(workflows[0], node, route) if is_path else graph.unroutable(workflows[-1], node, route)
        if text and text not in self._warned:
            self._warned.add(text)
            self.step.log.warning("%s", text[:1].upper() + text[1:])

    # -- send --------------------------------------------------------------------------------------------

    def push(self, key: str, value: Any) -> None:
        """Pushes an XCom of this task, for as long as Airflow's API server may be away.

        Raises:
            OvertakenError: This try no longer counts.
        """
        record = self.recorded()
        standing = record.standing if record is not None else None
        sending.push(self.context["ti"], key, value, where=self.where, log=self.step.log, standing=standing)

    def send(self, result: RunResult) -> Envelope:
        """Leaves the envelope in XCom, also when the node failed, and raises what it failed with.

        Raises:
            ValueNotTransferableError: An output or a state value has no JSON form.
            HumanInputNotSupportedError: The node waits for a person.
            Exception: Whatever the node itself failed with.
        """
        log, inbox = self.step.log, self.inbox
        workflow = self.source.workflow.name
        for item in inbox.lost:
            log.warning(
                "Workflow %r: state key %r was written by %s and %s side by side; the value of %s stays.",
                workflow, item.key, item.lost, item.kept, item.kept,
            )  # fmt: skip
        if result.questions and result.error is None:
            result.error = HumanInputNotSupportedError(
                f"{self.where}: {'; '.join(map(str, result.questions))}, which an Airflow task cannot wait for yet."
                " Give the answer by params, or run it with ADK."
            )
        record = self.recorded()
        if result.error is not None:
            failures.explain(result.error, cut_answers=result.cut_answers)
        if record is not None:
            record.say_replayed()
            if result.error is not None:
                record.failed(result.error_path, result.error, call_failed=result.call_failed)
            elif result.said:
                self.outbox = replace(self.outbox, records=self._transcript.keep_events(result.said))
            if record.usage.of().requests:
                self.outbox = replace(self.outbox, asked=str(self.context["ti"].task_id))
        envelope, text = self.outbox.pack(
            inbox, result, writer=self.writer, workflow=workflow, node=self.name, where=self.where
        )
        if record is not None:
            self._transcript.close(result.error_path, result.error)
        self.push(XCOM_KEY, text)
        if record is not None or (self.step.ends_run and inbox.asked):
            self._run_usage(record).send(inbox.asked if self.step.ends_run else None)
        if record is not None:
            self._transcript.refer()
        if result.error is not None:
            subject = self.where
            log.error(
                "%s failed (%s): %s",
                subject[:1].upper() + subject[1:], result.error_path or self.name, failures.one_line(result.error),
            )  # fmt: skip
            failures.begin_in_own_code(result.error)
            raise result.error
        return envelope

    def plain(self, output: Any) -> Any:
        """An output in the form that any task reads, without the secrets in it; a warning says so."""
        found, hides = sealing.masked(json_form.for_xcom(output))
        if hides:
            self.step.log.warning(
                "%s: there is a secret in its output. XCom 'return_value' has *** in its place; nodes of a workflow are given"
                " the output as it is. A task of yours that needs the secret should read it where it comes from.", self.where,
            )  # fmt: skip
        return found

    def last_plain_output(self, envelope: Envelope, node: str) -> Any:
        """The last output of a node, plain; None for no output."""
        has, output = envelope.last_output(node)
        return self.plain(output) if has else None


def materialized(value: Any) -> Any:
    """What a mapped task gave comes as a lazy sequence; here all of it is needed."""
    lazy = isinstance(value, Sequence) and not isinstance(value, (str, bytes, list, tuple))
    return list(value) if lazy else value
