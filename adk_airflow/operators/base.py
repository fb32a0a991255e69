"""What all operators share: finding the workflow, reading the inbox, leaving the envelope, saying who failed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException

from adk_airflow.errors import HumanInputNotSupportedError, ValueNotTransferableError
from adk_airflow.runtime.wire import codec, json_form, lineage
from adk_airflow.runtime.wire.envelope import XCOM_KEY, Envelope
from adk_airflow.runtime.wire.triggers import Parent, Trigger

if TYPE_CHECKING:
    from adk_airflow.runtime.adk.runner import Run, RunResult
    from adk_airflow.runtime.inbox import Inbox, Start
    from adk_airflow.runtime.record.node_runs import NodeRun
    from adk_airflow.runtime.services.models import ModelConnections
    from adk_airflow.runtime.source import Source


class AdkOperator(BaseOperator):
    """Base of the operators that stand for (a part of) an ADK workflow.

    Args:
        workflow: Reference to the workflow: ``package.module:attribute``, or what ``runtime.source.register`` returned.
        node: Name of the node.
        kind: ADK's kind of the node, shown as the operator's name in the UI.
        scope: For a node of a nested workflow: the names of the workflows on the way to it, without the outermost.
        starts: START has an edge to the node, so the run's input and initial state enter here.
        input: The user's input where ``starts``: text or JSON data. None: the run's ``params["input"]``. Templated.
        state: The initial session state where ``starts``. None: the run's other params. Templated.
        llm_conn_id: Airflow connection whose credentials the agents of this task use; a dict gives one by node path or agent
            name, ``""`` for the others. Templated. None: ``[adk_airflow] llm_conn_id``, or else what the process has.
    """

    template_fields: Sequence[str] = ("input", "state", "llm_conn_id")
    ui_color = "#e8f0fe"
    custom_operator_name = "ADK node"

    def __init__(
        self,
        *,
        workflow: str,
        node: str,
        kind: str = "",
        scope: Sequence[str] = (),
        starts: bool = False,
        input: Any = None,
        state: dict[str, Any] | None = None,
        llm_conn_id: str | dict[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.workflow = workflow
        self.node = node
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Future[RunResult]] | None = None
        if kind:
            self.custom_operator_name = f"ADK {kind}"
        self.scope = list(scope)
        self.starts = starts
        # Decided here: what an upstream task gives may be None too.
        self._input_of_params = input is None
        self._state_of_params = state is None
        self.input = input
        self.state = state
        self.llm_conn_id = llm_conn_id
        # Nothing to render, and nothing to show under Rendered Templates:
        unused = {*(() if starts else ("input", "state")), *(() if llm_conn_id else ("llm_conn_id",))}
        self.template_fields = tuple(field for field in self.template_fields if field not in unused)

    def load(self) -> Source:
        """Imports the workflow (and google-adk with it); gives the one that the node belongs to."""
        from adk_airflow.runtime.source import load

        return load(self.workflow).enter(self.scope)

    def start(self, context: Mapping[str, Any]) -> Start | None:
        """What the run gives to this task, None when START has no edge to its node."""
        from adk_airflow.runtime.airflow_state import initial_state, run_state
        from adk_airflow.runtime.inbox import Start

        if not self.starts:
            return None
        given = self.given_input(context)
        state = initial_state(context)
        if not self._state_of_params:
            state = {**{key: whole(value) for key, value in (self.state or {}).items()}, **run_state(context)}
        try:
            return Start(given, state).checked()
        except ValueNotTransferableError as error:
            raise ValueNotTransferableError(f"node {self.node!r}, what the run gives it: {error}") from None

    def given_input(self, context: Mapping[str, Any]) -> Any:
        """The user's input, as it was given."""
        return context["params"].get("input") if self._input_of_params else whole(self.input)

    def where(self, workflow: str) -> str:
        """How errors and log lines name what runs in this task."""
        return f"workflow {workflow!r}, node {self.node!r}"

    def make_run(self, context: Mapping[str, Any], source: Source, inbox: Inbox, session_id: str = "") -> Run:
        """The ADK side of this Airflow run.

        Args:
            context: The task's context.
            source: The workflow.
            inbox: What it was given.
            session_id: An ADK session that outlives the run. Empty: one of the run's own, named like it.

        Raises:
            ServiceConfigurationError: A service that the settings name is not there.
        """
        from adk_airflow.runtime.adk.runner import Run
        from adk_airflow.runtime.services import settings

        run_id, writer = str(context["run_id"]), self._writer(context)
        sessions = None
        if session_id:
            writer = f"{run_id}.{writer}"
            sessions = settings.durable_session_service(session_id, self.where(source.workflow.name))

        scopes = [inbox.scopes["/".join(self.scope[: at + 1])] for at in range(len(self.scope))]
        return Run(
            app=source.app,
            parents=tuple(
                Parent(workflow, Trigger(None, branch, sub_branch))
                for workflow, (branch, sub_branch) in zip(source.parents, scopes, strict=True)
            ),
            workflow=source.workflow,
            session_id=session_id or run_id,
            message=inbox.message,
            state=inbox.plain_state(),
            artifact_service=settings.default_artifact_service(),
            memory_service=settings.default_memory_service(writer),
            session_service=sessions,
            remember=settings.remember_runs(),
            on_event=self._log_event,
            models=self.read_models(self.where(source.workflow.name)),
        )

    def read_models(self, where: str) -> ModelConnections | None:
        """The connections that this task's agents get their models from, read before an event loop runs; None for none.

        Raises:
            ModelConnectionError: There is no such connection, or no installed provider knows its type.
        """
        from airflow.sdk.configuration import conf

        conn_ids = self.llm_conn_id or conf.get("adk_airflow", "llm_conn_id", fallback="")
        if isinstance(conn_ids, str):
            conn_ids = {"": conn_ids} if conn_ids else {}
        if not conn_ids:
            return None
        from adk_airflow.runtime.services.models import read_connections

        return read_connections(conn_ids, where=where)

    def _log_event(self, event: Any) -> None:
        for part in (event.content.parts or []) if event.content else []:
            if part.text:
                self.log.info("%s says: %s", event.author, part.text)

    def await_adk(self, work: Awaitable[RunResult]) -> RunResult:
        """Runs ADK's part to its end on an event loop of its own, or until Airflow cancels the task.

        Raises:
            AirflowException: The task was cancelled: marked in the UI, or its worker is being stopped.
        """

        async def run() -> RunResult:
            self._running = (asyncio.get_running_loop(), asyncio.ensure_future(work))
            return await self._running[1]

        try:
            return asyncio.run(run())
        except asyncio.CancelledError:
            raise AirflowException(f"node {self.node!r} was cancelled while it ran") from None
        finally:
            self._running = None

    def on_kill(self) -> None:
        """Cancels what runs in ADK, at once; Airflow, which calls this in a signal handler, ends what resists seconds later."""
        if self._running is not None:
            loop, work = self._running
            loop.call_soon_threadsafe(work.cancel)
            if asyncio.current_task(loop) is not None:
                raise asyncio.CancelledError  # the loop does not wait but executes a body, which may block for long

    def await_shown(
        self, context: Mapping[str, Any], run: Run, work: Callable[[Run], Awaitable[RunResult]], *, around: Sequence[str] = ()
    ) -> RunResult:
        """``await_adk`` for a task that runs several nodes: each of their runs is logged and recorded as it ends.

        Args:
            context: The task's context.
            run: The Airflow run.
            work: Runs the nodes.
            around: The nodes below ``scope`` that go on in other tasks.
        """
        from adk_airflow.runtime.record.node_runs import NodeRunWatch
        from adk_airflow.runtime.record.run_record import RunRecord

        record = RunRecord(context["ti"], self.log)

        def report(node_run: NodeRun) -> None:
            # What is around these nodes and goes on in other tasks only seems to end here.
            if node_run.path.count("/") > len(self.scope) + len(around):
                record.add(node_run)

        watch = NodeRunWatch(run.session_id, report)

        def on_event(event: Any) -> None:
            watch.on_event(event)
            self._log_event(event)

        watch.start()
        try:
            return self.await_adk(work(replace(run, on_event=on_event)))
        finally:
            watch.finish()
            record.push()

    def leave(
        self,
        context: Mapping[str, Any],
        source: Source,
        inbox: Inbox,
        result: RunResult,
        *,
        items: Sequence[Any] = (),
        batches: int = 0,
        scopes: Mapping[str, tuple[str | None, bool]] | None = None,
    ) -> Envelope:
        """Leaves the envelope in XCom, also when the node failed, and raises what the node raised.

        Raises:
            ValueNotTransferableError: An output or a state value has no JSON form.
            HumanInputNotSupportedError: The node waits for a person.
            Exception: Whatever the node itself failed with.
        """
        name = source.workflow.name
        for item in inbox.lost:
            self.log.warning(
                "Workflow %r: state key %r was written by %s and %s side by side; the value of %s stays.",
                name, item.key, item.lost, item.kept, item.kept,
            )  # fmt: skip
        if result.interrupts and result.error is None:
            result.error = HumanInputNotSupportedError(
                f"{self.where(name)} asks a person for an answer"
                f" (interrupt {', '.join(result.interrupts)}), which an Airflow task cannot wait for yet."
                " Give the answer by params, or run it with ADK."
            )
        written = {key: result.state[key] for key in sorted(result.written)}
        try:
            for value in (*(firing.output for firing in result.firings), *items):
                self.encode(value, "its output", name)
            for key in written:
                self.encode(key, f"the name of state key {key!r}", name)
            encoded = {key: self.encode(value, f"state key {key!r}", name) for key, value in written.items()}
        except ValueNotTransferableError as error:
            result.error = result.error or error
            result.firings, items = [], ()
            encoded = {key: codec.encode(value) for key, value in written.items() if codec.travels([key, value])}
        envelope = Envelope(
            task=self._writer(context),
            workflow=name,
            node=self.node,
            message=inbox.message,
            firings=tuple(result.firings),
            state=lineage.write(inbox.state, encoded, self._writer(context)),
            lost=inbox.lost,
            items=tuple(items),
            batches=batches,
            scopes={**inbox.scopes, **(scopes or {})},
            error=None if result.error is None else (type(result.error).__name__, json_form.storable_text(str(result.error))),
        )
        context["ti"].xcom_push(key=XCOM_KEY, value=envelope.dumps())
        if result.error is not None:
            where = result.error_path or self.node
            subject = self.where(name)
            self.log.error("%s failed (%s): %s", subject[:1].upper() + subject[1:], where, _one_line(result.error))
            raise result.error
        return envelope

    def encode(self, value: Any, what: str, workflow: str) -> Any:
        """``codec.encode`` with an error that names the workflow and the node."""
        try:
            return codec.encode(value)
        except ValueNotTransferableError as error:
            raise ValueNotTransferableError(f"{self.where(workflow)}: {what} cannot travel to another task: {error}") from None

    @staticmethod
    def _writer(context: Mapping[str, Any]) -> str:
        ti = context["ti"]
        return str(ti.task_id) if ti.map_index < 0 else f"{ti.task_id}[{ti.map_index}]"

    def plain_output(self, envelope: Envelope) -> Any:
        """What people and other tasks see as this task's ``return_value``; None for no output."""
        has, output = envelope.last_output(self.node)
        return json_form.for_xcom(output) if has else None


def _one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"


def whole(value: Any) -> Any:
    """What a mapped task gave comes as a lazy sequence; here all of it is needed."""
    lazy = isinstance(value, Sequence) and not isinstance(value, (str, bytes, list, tuple))
    return list(value) if lazy else value
