"""A task's event loop: one for all that runs, and work that ends when the limit has passed or the task is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import signal
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from typing import Any

import psutil
import pytest
from airflow.sdk.exceptions import AirflowException, AirflowTaskTimeout
from airflow.sdk.execution_time.timeout import timeout

from adk_airflow.runtime.event_loop import TaskCancelled, TaskLoop, has_own_process
from tests.supervised import Tried, run_tasks
from tests.waiting import until

WHERE = "workflow 'wf', node 'step'"


class Log:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def warning(self, message: str, *arguments: Any) -> None:
        self.lines.append(message % arguments)

    error = warning


class Blocked:
    """A call that blocks a thread until the test is over."""

    def __init__(self) -> None:
        self.over = threading.Event()

    def call(self) -> str:
        self.over.wait(120)
        return "late"


@pytest.fixture
def blocked() -> Iterator[Blocked]:
    blocked = Blocked()
    yield blocked
    blocked.over.set()


@pytest.fixture
def on_kill() -> Iterator[list[Callable[[], None]]]:
    """What is called on SIGTERM, as Airflow calls an operator's on_kill."""
    calls: list[Callable[[], None]] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: [call() for call in calls] and None)
    yield calls
    signal.signal(signal.SIGTERM, before)


def kill_soon() -> None:
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()


async def value(of: Any) -> Any:
    return of


async def catches_everything_and_waits() -> str:
    for _ in range(1200):
        with contextlib.suppress(BaseException):
            await asyncio.sleep(0.1)
    return "late"


async def catches_once_and_returns() -> str:
    with contextlib.suppress(BaseException):
        await asyncio.sleep(120)
    return "late"


async def makes_another_error_of_it() -> str:
    try:
        await asyncio.sleep(120)
    except BaseException:
        raise ValueError("something went wrong") from None
    return "late"


async def catches_everything_and_blocks() -> str:
    until = time.monotonic() + 2
    while time.monotonic() < until:
        with contextlib.suppress(BaseException):
            time.sleep(0.1)
    return "late"


# -- one loop ----------------------------------------------------------------------------------------------


def test_all_runs_share_one_loop_and_their_context() -> None:
    variable = contextvars.ContextVar("variable", default="unset")

    async def opens() -> tuple[asyncio.AbstractEventLoop, asyncio.Event]:
        variable.set("by the first")
        return asyncio.get_running_loop(), asyncio.Event()

    async def uses(event: asyncio.Event) -> tuple[asyncio.AbstractEventLoop, str]:
        asyncio.get_running_loop().call_later(0.01, event.set)
        await event.wait()
        return asyncio.get_running_loop(), variable.get()

    with TaskLoop(WHERE) as loop:
        first, event = loop.run(opens())
        second, seen = loop.run(uses(event))

    assert first is second
    assert first.is_closed()
    assert (seen, variable.get()) == ("by the first", "unset")


def test_what_the_work_fails_with_is_raised_as_it_is() -> None:
    error = LookupError("mine")

    async def fails() -> None:
        raise error

    with pytest.raises(LookupError) as caught, TaskLoop(WHERE, seconds=60) as loop:
        loop.run(fails())
    assert caught.value is error


def test_what_still_runs_at_the_end_is_ended_and_may_clean_up() -> None:
    ended = []

    async def background() -> None:
        try:
            await asyncio.sleep(120)
        finally:
            await asyncio.sleep(0.05)
            ended.append("task")

    async def generator() -> AsyncGenerator[int]:
        try:
            yield 1
        finally:
            await asyncio.sleep(0.05)
            ended.append("generator")

    async def work() -> Any:
        kept = generator()
        await anext(kept)
        kept_task = asyncio.create_task(background())
        await asyncio.sleep(0)
        return kept, kept_task

    with TaskLoop(WHERE) as loop:
        _kept = loop.run(work())
    assert ended == ["task", "generator"]


def test_a_thread_that_nobody_awaits_may_end_when_all_went_well() -> None:
    ended = []

    async def work() -> str:
        asyncio.get_running_loop().run_in_executor(None, lambda: ended.append(time.sleep(0.5)))
        return "done"

    with TaskLoop(WHERE, seconds=60) as loop:
        assert loop.run(work()) == "done"
    assert ended == [None]


def test_the_process_of_a_test_is_not_the_tasks() -> None:
    assert not has_own_process()


# -- the limit ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "work",
    [catches_everything_and_waits, catches_once_and_returns, makes_another_error_of_it, catches_everything_and_blocks],
)
@pytest.mark.parametrize("airflow", [True, False], ids=["with Airflow's timer", "without"])
def test_work_ends_at_the_limit_and_never_succeeds(work: Callable[[], Awaitable[str]], airflow: bool) -> None:
    limit = timeout(0.3) if airflow else threading.Lock()  # outside of the main thread Airflow has no timer
    with pytest.raises(AirflowTaskTimeout), limit, TaskLoop(WHERE, seconds=0.3, grace=0.5) as loop:
        loop.run(work())
    assert loop._work is None


def test_the_error_says_which_node_and_which_limit_and_what_the_work_made_of_it() -> None:
    message = "workflow 'wf', node 'step' went on past its execution_timeout of 0.2 s"
    with pytest.raises(AirflowTaskTimeout, match=message) as caught, TaskLoop(WHERE, seconds=0.2, grace=0.5) as loop:
        loop.run(makes_another_error_of_it())
    assert repr(caught.value.__cause__) == "ValueError('something went wrong')"


def test_airflows_own_error_says_so_too() -> None:
    with pytest.raises(AirflowTaskTimeout) as caught, timeout(0.2), TaskLoop(WHERE, seconds=0.2) as loop:
        loop.run(asyncio.sleep(120))
    assert caught.value.__notes__ == ["workflow 'wf', node 'step' ran longer than its execution_timeout of 0.2 s."]


@pytest.mark.parametrize("airflow", [True, False], ids=["with Airflow's timer", "without"])
def test_a_thread_that_blocks_is_not_waited_for(blocked: Blocked, airflow: bool) -> None:
    limit = timeout(0.3) if airflow else threading.Lock()
    with pytest.raises(AirflowTaskTimeout), limit, TaskLoop(WHERE, seconds=0.3, grace=0.5) as loop:
        loop.run(asyncio.to_thread(blocked.call))
    assert not blocked.over.is_set()


def test_work_that_is_ended_may_clean_up() -> None:
    closed = []

    async def work() -> None:
        try:
            await asyncio.sleep(120)
        finally:
            await asyncio.sleep(0.2)
            closed.append(True)

    with pytest.raises(AirflowTaskTimeout), timeout(0.2), TaskLoop(WHERE, seconds=0.2) as loop:
        loop.run(work())
    assert closed == [True]


def test_a_process_that_the_work_waits_for_ends_too() -> None:
    started: list[asyncio.subprocess.Process] = []

    async def wait_for_process() -> None:
        started.append(await asyncio.create_subprocess_exec("sleep", "600"))
        await started[0].wait()

    with pytest.raises(AirflowTaskTimeout) as caught, TaskLoop(WHERE, seconds=0.3, grace=0.5) as loop:
        loop.run(wait_for_process())

    assert caught.tb is not None  # which holds on to the process
    assert until(lambda: not _runs(started[0].pid))


def _runs(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_what_is_left_behind_is_said() -> None:
    log = Log()
    with pytest.raises(AirflowTaskTimeout), TaskLoop(WHERE, seconds=0.2, grace=0.5, log=log) as loop:
        loop.run(catches_everything_and_waits())
    assert log.lines == [f"{WHERE}: what it runs goes on although it was cancelled; it is left behind."]


def test_the_limit_counts_from_the_tasks_begin() -> None:
    async def work() -> str:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(120)
        return "late"

    # 60 s, of which Airflow's timer has only these left
    with pytest.raises(AirflowTaskTimeout), timeout(0.5), TaskLoop(WHERE, seconds=60, grace=1) as loop:
        loop.run(work())


# -- cancelling --------------------------------------------------------------------------------------------


async def waits() -> str:
    await asyncio.sleep(120)
    return "late"


async def blocks() -> str:
    time.sleep(120)
    return "late"


@pytest.mark.parametrize("work", [waits, blocks, catches_everything_and_waits, catches_once_and_returns])
def test_a_signal_cancels_what_runs(work: Callable[[], Awaitable[str]], on_kill: list[Callable[[], None]]) -> None:
    with TaskLoop(WHERE, grace=1) as loop:
        on_kill.append(loop.cancel)
        kill_soon()
        with pytest.raises(TaskCancelled, match=f"{WHERE} was cancelled while it ran"):
            loop.run(work())
    assert issubclass(TaskCancelled, AirflowException)


def test_a_thread_that_blocks_does_not_keep_a_cancelled_task(blocked: Blocked, on_kill: list[Callable[[], None]]) -> None:
    with TaskLoop(WHERE, grace=1) as loop:
        on_kill.append(loop.cancel)
        kill_soon()
        with pytest.raises(TaskCancelled):
            loop.run(asyncio.to_thread(blocked.call))
    assert not blocked.over.is_set()


def test_what_was_not_yet_running_does_not_run() -> None:
    ran = []

    async def work() -> None:
        ran.append(True)

    with TaskLoop(WHERE) as loop:
        loop.run(value("first"))
        loop.cancel()
        with pytest.raises(TaskCancelled):
            loop.run(work())
    assert ran == []


def test_a_task_that_has_ended_cannot_be_cancelled() -> None:
    loop = TaskLoop(WHERE)
    loop.cancel()
    with loop:
        assert loop.run(value(1)) == 1
    loop.cancel()


def test_work_that_cancels_itself_counts_as_cancelled() -> None:
    async def work() -> None:
        raise asyncio.CancelledError

    with pytest.raises(TaskCancelled), TaskLoop(WHERE) as loop:
        loop.run(work())


# -- in a process of its own -------------------------------------------------------------------------------

SOURCE = """
import asyncio
import collections
import itertools
import os
import signal
import subprocess
import threading
import time
from datetime import timedelta

from adk_airflow.runtime.event_loop import TaskLoop, has_own_process
from airflow.sdk import DAG, BaseOperator


class Runs(BaseOperator):
    def __init__(self, *, work, **arguments):
        super().__init__(**arguments)
        self.work = work

    def execute(self, context):
        limit = self.execution_timeout and self.execution_timeout.total_seconds()
        with TaskLoop(f"node {self.task_id!r}", seconds=limit, log=self.log, grace=1) as self.loop:
            return self.loop.run(self.work())

    def on_kill(self):
        self.loop.cancel()


async def own_process():
    assert has_own_process()


async def thread():
    await asyncio.to_thread(time.sleep, 120)


async def catches():
    started = subprocess.Popen(["sleep", "120"])
    print("started", started.pid)
    while True:
        try:
            time.sleep(120)
        except BaseException:
            pass


async def marked():
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()
    await catches()


async def no_other_thread_runs():
    collections.deque(itertools.repeat(0), maxlen=0)


with DAG("task_loops", schedule=None):
    for work in (own_process, thread, catches, no_other_thread_runs):
        Runs(task_id=work.__name__, work=work, execution_timeout=timedelta(seconds=1))
    Runs(task_id="marked", work=marked)
"""


@pytest.fixture(scope="module")
def tried() -> dict[str, Tried]:
    return run_tasks("task_loops", SOURCE)


def test_a_task_has_a_process_of_its_own(tried: dict[str, Tried]) -> None:
    assert (tried["own_process"].state, tried["own_process"].exit_code) == ("success", 0)


def test_the_process_ends_while_a_thread_blocks(tried: dict[str, Tried]) -> None:
    assert (tried["thread"].state, tried["thread"].exit_code) == ("failed", 0)
    assert "AirflowTaskTimeout" in tried["thread"].text


@pytest.mark.parametrize(("task", "why"), [("catches", "its execution_timeout of 1 s"), ("marked", "it was cancelled")])
def test_the_process_of_a_body_that_blocks_and_catches_everything_is_ended(
    tried: dict[str, Tried], task: str, why: str
) -> None:
    assert (tried[task].state, tried[task].exit_code) == ("failed", 1)
    said = next(event for event in tried[task].events if "does not end" in event)
    assert said.startswith(f"Node '{task}' does not end after {why}: its body blocks where no exception reaches it")
    assert "in catches\n    time.sleep(120)" in said
    started = next(int(event.split()[1]) for event in tried[task].events if event.startswith("started "))
    until(lambda: not psutil.pid_exists(started) or psutil.Process(started).status() == psutil.STATUS_ZOMBIE)


def test_the_process_of_a_body_that_lets_no_other_thread_run_is_ended(tried: dict[str, Tried]) -> None:
    assert (tried["no_other_thread_runs"].state, tried["no_other_thread_runs"].exit_code) == ("failed", 1)
    assert any("in no_other_thread_runs" in event for event in tried["no_other_thread_runs"].events)


# -- in the tasks of a workflow ----------------------------------------------------------------------------

WORKFLOWS = """
import asyncio
import time
from datetime import timedelta

from adk_airflow import AdkDag
from google.adk.workflow import START, Workflow, node


async def thread():
    await asyncio.to_thread(time.sleep, 120)


async def waits():
    while True:
        try:
            await asyncio.sleep(120)
        except BaseException:
            pass


def blocks():
    while True:
        try:
            time.sleep(120)
        except BaseException:
            pass


def passes():
    return "passed"


bodies = [node(body, name=body.__name__) for body in (thread, waits, blocks, passes)]
limit = {"execution_timeout": timedelta(seconds=3)}
dag = AdkDag(Workflow(name="limited", edges=[(START, body) for body in bodies]), schedule=None, default_args=limit)
"""


def test_a_node_ends_within_seconds_of_its_execution_timeout() -> None:
    tried = run_tasks("limited", WORKFLOWS)

    states = {task: one.state for task, one in tried.items() if task in ("thread", "waits", "blocks", "passes")}
    assert states == {"thread": "failed", "waits": "failed", "blocks": "failed", "passes": "success"}
    assert (tried["waits"].exit_code, tried["blocks"].exit_code) == (0, 1)
    assert "node 'thread' ran longer than its execution_timeout of 3 s." in tried["thread"].text
    assert "node 'blocks' does not end after its execution_timeout of 3 s" in tried["blocks"].text
