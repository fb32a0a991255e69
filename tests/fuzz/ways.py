"""Three ways to run a workflow, with results in one form: ADK in-process, as Airflow tasks, embedded in one task."""

from __future__ import annotations

import asyncio
import json
import random
import selectors
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.conformance.run import make_recorder, per_node, recorded
from tests.fuzz.code import build
from tests.fuzz.graphs import Flow


@dataclass(frozen=True)
class Result:
    """What a run gave.

    Attributes:
        parts: What is compared: ``status``, ``error`` (its type), ``output``, ``state <key>`` for each key and
            ``outputs <node path>`` for each node (a sorted list), each as JSON text.
        failed: As tasks: the ids of the tasks that failed.
    """

    parts: Mapping[str, str]
    failed: frozenset[str] = frozenset()

    def differs_from(self, other: Result) -> list[str]:
        """The names of the parts that are not the same."""
        return sorted(key for key in {*self.parts, *other.parts} if self.parts.get(key) != other.parts.get(key))


@dataclass
class Timing:
    """How long nodes take, in virtual seconds.

    Attributes:
        ends: For each node, the time before which no run of it goes on.
        rounds: The n-th run of every node comes after all runs before the n-th.
        seed: Instead: every run takes a random time.
    """

    ends: Mapping[str, float] = field(default_factory=dict)
    rounds: bool = False
    seed: int | None = None


def run_in_adk(flow: Flow, timing: Timing | None = None) -> Result:
    """Runs the workflow with ADK's own InMemoryRunner, on a clock that does not wait."""
    loop = _PatientLoop()
    try:
        return loop.run_until_complete(_in_adk(flow, timing, loop))
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def run_in_airflow(flow: Flow, mode: str) -> Result:
    """Runs the workflow through a real DAG run; ``mode`` as for ``AdkDag``."""
    from google.adk.apps.app import App

    from adk_airflow.testing import run_workflow

    outputs: list[tuple[str, Any]] = []
    recorder = make_recorder(lambda path, output: outputs.append((path, output)))
    app = App(name="fuzz", root_agent=build(flow), plugins=[recorder])
    overrides = {name: dict(given) for name, given in flow.overrides.items()} if mode == "tasks" else None
    run = run_workflow(app, input=flow.text, state=dict(flow.state), mode=mode, nodes=overrides)
    # Of a parallel worker's tasks only the items run in ADK; the list that `collect` makes of them is no event.
    lists = [
        (f"{flow.name}/{task_id.removesuffix('.collect').replace('.', '/')}", recorded(value))
        for task_id in run.task_states
        if task_id.endswith(".collect")
        for value in run.outputs.get(task_id.removesuffix(".collect"), [])
    ]
    return Result(
        _parts(run.error and run.error[0], run.output, run.session_state, [*outputs, *lists], run.state == "success"),
        frozenset(task_id for task_id, states in run.task_states.items() if "failed" in states),
    )


def _parts(
    error: str | None, output: Any, state: Mapping[str, Any], outputs: list[tuple[str, Any]], success: bool
) -> dict[str, str]:
    parts = {"status": "ok" if success else "error", "error": str(error), "output": _text(output if success else None)}
    parts |= {f"state {key}": _text(value) for key, value in state.items() if not key.startswith("temp:")}
    nodes: dict[str, list[str]] = {}
    for line in per_node(outputs):
        nodes.setdefault(json.loads(line)[0], []).append(line)
    return {**parts, **{f"outputs {path}": "\n".join(lines) for path, lines in nodes.items()}}


def _text(value: Any) -> str:
    # As text, True and 1 are not the same.
    return json.dumps(recorded(value), sort_keys=True)


async def _in_adk(flow: Flow, timing: Timing | None, loop: _PatientLoop) -> Result:
    from google.adk.apps.app import App
    from google.adk.runners import InMemoryRunner
    from google.adk.workflow import Workflow
    from google.genai import types

    class Watched(Workflow):
        """Shows the output of the run, which the events alone do not tell."""

        async def _run_impl(self, *, ctx: Any, node_input: Any) -> AsyncGenerator[Any, None]:
            async for item in super()._run_impl(ctx=ctx, node_input=node_input):
                yield item
            found.append(ctx.output)

    found: list[Any] = []
    outputs: list[tuple[str, Any]] = []
    recorder = make_recorder(lambda path, output: outputs.append((path, output)))
    built = build(flow, _Pauses(timing, loop) if timing else None)
    root = Watched(name=built.name, edges=built.edges, max_concurrency=None if timing else built.max_concurrency)
    runner = InMemoryRunner(app=App(name="fuzz", root_agent=root, plugins=[recorder]))
    sessions, state = runner.session_service, dict(flow.state)
    await sessions.create_session(app_name="fuzz", user_id="fuzz", session_id="fuzz", state=state)
    message = types.Content(role="user", parts=[types.Part(text=flow.text)])
    error = None
    try:
        async for _ in runner.run_async(user_id="fuzz", session_id="fuzz", new_message=message):
            pass
    except Exception as raised:
        error = type(raised).__name__
    session = await sessions.get_session(app_name="fuzz", user_id="fuzz", session_id="fuzz")
    assert session is not None
    await runner.close()
    return Result(_parts(error, found[-1] if found else None, session.state, outputs, error is None))


class _Pauses:
    """Makes the runs of a node wait as a Timing says."""

    def __init__(self, timing: Timing, loop: _PatientLoop) -> None:
        self._timing = timing
        self._loop = loop
        self._runs: dict[str, int] = {}
        self._waiting: dict[float, int] = {}
        self._random = random.Random(timing.seed)

    async def __call__(self, name: str, late: bool = False) -> None:
        run = self._runs[name] = self._runs.get(name, 0) + 1
        if self._timing.seed is not None:
            await asyncio.sleep(self._random.choice((0, 0.5, 1, 2, 4)) * self._random.random() + (100 if late else 0))
            return
        until = self._timing.ends[name] + (0.5 if late else 0) + (1000 * run if self._timing.rounds else 0)
        if until <= self._loop.time():
            return
        # Those that wait for the same moment go on in the order in which they came, within the clock's resolution.
        turn = self._waiting[until] = self._waiting.get(until, 0) + 1
        wake = asyncio.Event()
        self._loop.call_at(until + turn * 1e-10, wake.set)
        await wake.wait()


class _PatientSelector(selectors.DefaultSelector):
    """Instead of waiting for a time, moves the clock there."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is not None and timeout > 0:
            self.now += timeout
            timeout = 0
        return super().select(timeout)


class _PatientLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock moves only while nothing else is to be done."""

    def __init__(self) -> None:
        self._clock = _PatientSelector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now
