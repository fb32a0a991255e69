"""Runs a node under a normal ADK Runner, for one task of an Airflow run, and notes what came of it."""

from __future__ import annotations

import contextlib
import copy
import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from google.adk.apps.app import App
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.workflow import BaseNode

from adk_airflow.runtime import failures
from adk_airflow.runtime.adk.cli import short_failures
from adk_airflow.runtime.adk.credentials import Credentials, KeptCredentials
from adk_airflow.runtime.adk.graph import without_wrapper
from adk_airflow.runtime.adk.guarded import guarded
from adk_airflow.runtime.adk.history import History, events_of
from adk_airflow.runtime.adk.parameters import explain_parameter
from adk_airflow.runtime.adk.questions import Question, Questions
from adk_airflow.runtime.adk.recorded_model import recorded
from adk_airflow.runtime.adk.recorder import Recorder
from adk_airflow.runtime.record.attempt import Attempt
from adk_airflow.runtime.record.task_record import TaskRecord
from adk_airflow.runtime.services.models import ModelConnections, ModelErrors
from adk_airflow.runtime.wire.envelope import Firing

if TYPE_CHECKING:
    from google.adk.artifacts.base_artifact_service import BaseArtifactService
    from google.adk.events.event import Event
    from google.adk.memory.base_memory_service import BaseMemoryService
    from google.adk.sessions.base_session_service import BaseSessionService
    from google.adk.sessions.session import Session
    from google.adk.workflow import Workflow
    from google.genai import types

    from adk_airflow.runtime.wire.triggers import Parent

log = logging.getLogger(__name__)

USER_ID = "airflow"


@dataclass
class RunResult:
    """What came of a run in ADK.

    Attributes:
        firings: The runs of nodes that finished, in order.
        outputs: For items: their outputs, in the order given.
        state: The whole session state afterwards, ``temp:`` keys included.
        written: The keys that ADK was told to set.
        error: The exception that a node failed with, as ADK reports it, or None.
        error_path: ADK's path of the node that failed, such as ``wf@1/node@1``.
        interrupt_ids: The interrupts that ADK's engine stopped for.
        questions: What a person is asked, with what ADK itself has no interrupt for.
        cut_answers: The model's answers that ended at a limit of their length, in words.
        call_failed: Whether the error is that of a call of a ``"model"`` or a ``"tool"``; empty if not.
        said: With ``keep_events``: what was said in the session, as JSON data.
        triggered_early: The nodes outside of the part that were triggered before the last of its nodes had run.
    """

    firings: list[Firing] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    error: BaseException | None = None
    error_path: str = ""
    interrupt_ids: set[str] = field(default_factory=set)
    questions: list[Question] = field(default_factory=list)
    triggered_early: set[str] = field(default_factory=set)
    call_failed: str = ""
    cut_answers: list[str] = field(default_factory=list)
    said: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Run:
    """The Airflow run that something is run for.

    Attributes:
        app: The ADK App: its name, plugins and configs.
        workflow: The workflow that is being run, or the nested one of which a part is run.
        parents: For a nested workflow: the workflows around it, outermost first.
        session_id: Id of the ADK session; the same for all tasks of one Airflow run, unless it is a kept one.
        message: The user message that started the run.
        state: The session state that the node finds.
        artifact_service: Where artifacts go.
        memory_service: What agents remember of other sessions, or None.
        session_service: Keeps the session, and may have it from an earlier run. None: it ends with the task.
        remember: Adds what was said in the session to the memory when the run ends well.
        on_event: Called with every ADK event as it happens.
        models: The connections that agents get their models from, or None.
        record: Where what happens is recorded.
        history: What nodes in tasks before said, as JSON data, where the nodes can see it.
        keep_events: A node in a task after this one may see what is said here.
    """

    app: App
    workflow: Workflow
    session_id: str
    message: types.Content
    state: dict[str, Any]
    artifact_service: BaseArtifactService | None = None
    memory_service: BaseMemoryService | None = None
    session_service: BaseSessionService | None = None
    remember: bool = False
    on_event: Callable[[Event], None] | None = None
    parents: tuple[Parent, ...] = ()
    models: ModelConnections | None = None
    record: TaskRecord = field(default_factory=lambda: TaskRecord(Attempt.outside()))
    history: Sequence[Mapping[str, Any]] = ()
    keep_events: bool = False


async def drive(
    run: Run,
    root: BaseNode,
    result: RunResult,
    *,
    part: bool = False,
    begin: Callable[[Recorder], None] | None = None,
) -> Questions:
    """Runs ``root`` under a normal ADK Runner and notes what it wrote and how it ended.

    Args:
        run: The Airflow run.
        root: What the Runner runs.
        result: Where it is noted.
        part: The workflow goes on in other tasks, with all that a node finds in ``ctx.session.state``; else the state is what
            ADK's session service keeps.
        begin: Told the recorder before ADK begins.

    Returns:
        What was heard of questions.
    """
    recorder = Recorder(run.record)
    models = run.models or ModelConnections({})
    models.wrap = functools.partial(recorded, recorder=recorder)
    if begin is not None:
        begin(recorder)
    sessions: BaseSessionService = InMemorySessionService()  # type: ignore[no-untyped-call, unused-ignore]
    if run.session_service is not None:
        sessions = guarded(run.session_service, recorder)
    artifacts = run.artifact_service and guarded(run.artifact_service, recorder)
    memory = run.memory_service and guarded(run.memory_service, recorder)

    async def stored() -> Session | None:
        return await sessions.get_session(app_name=run.app.name, user_id=USER_ID, session_id=run.session_id)

    async def stored_if_copied() -> Session | None:
        """The session at the end; None where it holds what cannot be copied (a lock, an open file), which the outbox tells."""
        try:
            return await stored()
        except Exception:
            if run.session_service is not None:
                raise
            return None

    given = copy.deepcopy(run.state)
    if run.session_service is None or await stored() is None:
        await sessions.create_session(app_name=run.app.name, user_id=USER_ID, session_id=run.session_id, state=given)
        given = {}
    questions = Questions(run.parents[0].workflow if run.parents else run.workflow)
    history = History(run.history, lambda *place: _kept_in(sessions, *place))
    plugins = [
        Credentials(),
        *([history] if run.history else []),
        recorder,
        questions,
        ModelErrors(result.cut_answers),
        models,
        *run.app.plugins,
    ]
    runner = Runner(
        app=run.app.model_copy(update={"root_agent": root, "plugins": plugins}),
        session_service=sessions,
        artifact_service=artifacts,
        memory_service=memory,
        credential_service=KeptCredentials(),
    )
    try:
        with short_failures(failures.one_line):
            await _consume(runner, run, given, result, questions)
        if result.error is not None:
            result.call_failed = recorder.call_failed(result.error)
            root = run.parents[0].workflow if run.parents else run.workflow
            explain_parameter(result.error, root, result.error_path, result.state.keys() | run.state.keys())
        session = await stored_if_copied()
        if session is not None and result.error is None and run.keep_events:
            result.said = events_of(session, len(run.history))
        if session is not None and (result.error is not None or not part):
            # ADK keeps what an event carried; what a cancelled branch set after its last event is gone.
            temp = {key: value for key, value in result.state.items() if str(key).startswith("temp:")}
            result.state = {**session.state, **temp}
        if session is not None and result.error is None and run.remember and memory is not None:
            await _remember(run, memory, session)
    finally:
        await runner.close()
        models.restore()
        if close := getattr(run.session_service, "close", None):  # of services over a database; the runner leaves it open
            await close()
    result.state = dict(result.state)
    result.written &= result.state.keys()
    result.questions = questions.unanswered(sorted(result.interrupt_ids))
    return questions


def _kept_in(sessions: BaseSessionService, app_name: str, user_id: str, session_id: str) -> Session | None:
    """The session as an in-memory service keeps it; a service of another kind has no history to be given."""
    if not isinstance(sessions, InMemorySessionService):
        return None
    return sessions.sessions.get(app_name, {}).get(user_id, {}).get(session_id)


async def _remember(run: Run, memory: BaseMemoryService, session: Session) -> None:
    """Adds the session to the memory; what the run has done stands also when that fails."""
    try:
        await memory.add_session_to_memory(session)
    except Exception as error:
        log.warning(
            "Workflow %r: what was said in session %r is not remembered ([adk_airflow] remember_runs): %s",
            run.workflow.name,
            run.session_id,
            failures.one_line(error),
        )


async def _consume(runner: Runner, run: Run, state_delta: dict[str, Any], result: RunResult, questions: Questions) -> None:
    """Lets the runner work until it ends, and notes what it wrote and what it failed with."""
    try:
        events = runner.run_async(
            user_id=USER_ID, session_id=run.session_id, new_message=run.message, state_delta=state_delta or None
        )
        async with contextlib.aclosing(events) as stream:
            async for event in stream:
                if event.actions:
                    result.written.update(event.actions.state_delta)
                questions.on_event(event)
                if run.on_event is not None:
                    run.on_event(event)
    except Exception as error:
        result.error = (run.models.error if run.models else None) or without_wrapper(error)
