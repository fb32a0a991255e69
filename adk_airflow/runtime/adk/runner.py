"""Runs a node under a normal ADK Runner, for one task of an Airflow run, and notes what came of it."""

from __future__ import annotations

import contextlib
import copy
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from google.adk.apps.app import App
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.workflow import BaseNode

from adk_airflow.errors import ValueNotTransferableError
from adk_airflow.runtime.adk.graph import task_agents, without_wrapper
from adk_airflow.runtime.wire import codec
from adk_airflow.runtime.wire.envelope import Firing

if TYPE_CHECKING:
    from google.adk.artifacts.base_artifact_service import BaseArtifactService
    from google.adk.events.event import Event
    from google.adk.memory.base_memory_service import BaseMemoryService
    from google.adk.sessions.base_session_service import BaseSessionService
    from google.adk.sessions.session import Session
    from google.adk.workflow import Workflow
    from google.genai import types

    from adk_airflow.runtime.services.models import ModelConnections
    from adk_airflow.runtime.wire.triggers import Parent

log = logging.getLogger(__name__)

USER_ID = "airflow"


@dataclass
class RunResult:
    """What came out of a host run.

    Attributes:
        firings: The runs that finished, in order.
        outputs: For items: their outputs, in the order given.
        state: The whole session state afterwards, ``temp:`` keys included.
        written: The keys that were set.
        error: The exception that the node failed with, as ADK reports it, or None.
        error_path: ADK's path of the node that failed, such as ``wf@1/node@1``.
        handed_on: The nodes outside of the part that were triggered before the last of its nodes had run.
    """

    firings: list[Firing] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    error: BaseException | None = None
    error_path: str = ""
    interrupts: list[str] = field(default_factory=list)
    handed_on: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Run:
    """The Airflow run that a host works for.

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


async def drive(run: Run, root: BaseNode, result: RunResult, *, part: bool = False) -> None:
    """Runs ``root`` under a normal ADK Runner and notes what it wrote and how it ended.

    Args:
        run: The Airflow run.
        root: What the Runner runs.
        result: Where it is noted.
        part: The workflow goes on in other tasks, with all that a node finds in ``ctx.session.state``; else the state is what
            ADK's session service keeps.
    """
    models = run.models
    sessions = run.session_service or InMemorySessionService()  # type: ignore[no-untyped-call, unused-ignore]

    async def stored() -> Session | None:
        return await sessions.get_session(app_name=run.app.name, user_id=USER_ID, session_id=run.session_id)

    given = copy.deepcopy(run.state)
    if run.session_service is None or await stored() is None:
        await sessions.create_session(app_name=run.app.name, user_id=USER_ID, session_id=run.session_id, state=given)
        given = {}
    runner = Runner(
        app=run.app.model_copy(update={"root_agent": root, "plugins": [*([models] if models else []), *run.app.plugins]}),
        session_service=sessions,
        artifact_service=run.artifact_service,
        memory_service=run.memory_service,
    )
    before = {key: _fingerprint(value) for key, value in run.state.items()}
    try:
        await _consume(runner, run, given, result)
        session = await stored()
        if session is not None and (result.error is not None or not part):
            # ADK keeps what an event carried; what a cancelled branch set after its last event is gone.
            temp = {key: value for key, value in result.state.items() if str(key).startswith("temp:")}
            result.state = {**session.state, **temp}
        if session is not None and result.error is None and run.remember and run.memory_service is not None:
            await _remember(run, run.memory_service, session)
    finally:
        await runner.close()
        if models is not None:
            models.restore()
        if close := getattr(run.session_service, "close", None):  # of services over a database; the runner leaves it open
            await close()
    result.state = dict(result.state)
    result.written &= result.state.keys()
    result.written |= {k for k, value in result.state.items() if before.get(k) != _fingerprint(value)}


async def _remember(run: Run, memory: BaseMemoryService, session: Session) -> None:
    """Adds the session to the memory; what the run has done stands also when that fails."""
    try:
        await memory.add_session_to_memory(session)
    except Exception as error:
        log.warning(
            "Workflow %r: what was said in session %r is not remembered ([adk_airflow] remember_runs): %s: %s",
            run.workflow.name,
            run.session_id,
            type(error).__name__,
            error,
        )


async def _consume(runner: Runner, run: Run, state_delta: dict[str, Any], result: RunResult) -> None:
    """Lets the runner work until it ends, and notes what it wrote and what it failed with."""
    agents = task_agents(run.workflow)
    asking: dict[str, str] = {}
    try:
        events = runner.run_async(
            user_id=USER_ID, session_id=run.session_id, new_message=run.message, state_delta=state_delta or None
        )
        async with contextlib.aclosing(events) as stream:
            async for event in stream:
                if event.actions:
                    result.written.update(event.actions.state_delta)
                if (name := event.node_info.name) in agents:
                    asking[event.node_info.path] = name
                    if event.output is not None or event.node_info.message_as_output:
                        del asking[event.node_info.path]
                if run.on_event is not None:
                    run.on_event(event)
    except Exception as error:
        result.error = (run.models.error if run.models else None) or without_wrapper(error)
    # A task-mode agent that ends without its task's result has asked something; ADK would wait for the user's next message.
    result.interrupts = sorted({*result.interrupts, *asking.values()})


def _fingerprint(value: Any) -> Any:
    """Something that differs when the value changed, also inside a container that ADK did not see change."""
    try:
        return codec.dumps(codec.encode(value))
    except ValueNotTransferableError:
        return object()
