"""The one event loop of a task, and how a task ends whose body does not want to.

``asyncio.run`` would not do: a plugin and the node after it would each get a loop of their own, it waits without end for
threads that block, and a body that catches the exception of Airflow's ``execution_timeout`` goes on. When the limit has
passed, or the task is cancelled, a ``TaskLoop`` ends its work in steps:

1. **At once** Airflow's exception, or a cancellation, reaches the work: a coroutine where it waits, a body where it blocks.
2. **A second after the limit** the work is cancelled, should the exception have been caught on its way.
3. **After 5 seconds** a coroutine that goes on in spite of it is left behind, and the task fails.
4. **After 8 seconds** the process ends, should its main thread still block. Airflow counts that as a failed try.

The last step is for a process that Airflow's supervisor started for this one task. In ``dag.test()`` and unit tests the
process is the caller's: there a body that blocks and catches everything goes on to its own end, and fails then.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import faulthandler
import logging
import os
import queue
import signal
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

from airflow.sdk.exceptions import AirflowException, AirflowTaskTimeout

T = TypeVar("T")

_AWAIT_THREADS = 10.0  # seconds that threads nobody waits for are given when all went well
_LEAST = 0.2  # seconds that anything is given to clean up

_left_behind: list[asyncio.Task[Any]] = []  # referenced, as collecting one would run its body once more


class TaskCancelled(AirflowException):
    """A person marked the task, or its worker is being stopped."""


class TaskLoop:
    """The event loop of a task; a context manager.

    Args:
        where: The workflow and node, for errors and log lines.
        seconds: The task's ``execution_timeout``, None for none.
        log: The task's log.
        grace: Seconds in which what is ended may clean up. Airflow, too, kills a task that it stops after 5. After 1.6 of them
            the process ends; after 2.2 also where the body holds Python's global lock, so that no other thread runs.
    """

    def __init__(self, where: str, *, seconds: float | None = None, log: Any = None, grace: float = 5.0) -> None:
        self._where = where
        self._seconds = seconds
        self._log = log or logging.getLogger(__name__)
        self._grace = grace
        self._limit_at: float | None = None
        self._cancelled_at: float | None = None
        self._work: asyncio.Task[Any] | None = None
        self._open = False
        self._watchdog: _Watchdog | None = None

    def __enter__(self) -> TaskLoop:
        self._thread = threading.get_ident()
        self._context = contextvars.copy_context()
        self._executor = ThreadPoolExecutor(thread_name_prefix="asyncio")
        self._loop = _Loop()
        self._loop.set_default_executor(self._executor)
        asyncio.set_event_loop(self._loop)  # for code that asks for the loop before it runs
        if self._seconds is not None:
            self._limit_at = time.monotonic() + _seconds_left(self._seconds)
        if has_own_process():
            self._watchdog = _Watchdog(self._say_why, self._grace)
            if self._limit_at is not None:
                self._watchdog.watch(self._limit_at)
        self._open = True
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Ends what still runs on the loop.

        Threads that nobody waits for are given 10 seconds, as a thread that blocks cannot be ended; none after the limit, a
        cancellation or an exception.

        Raises:
            AirflowTaskTimeout: The limit passed meanwhile.
        """
        try:
            self._settle(asyncio.all_tasks(self._loop) - set(_left_behind))
            self._settle([self._loop.create_task(self._loop.shutdown_asyncgens())], cancel=False)
            if error is None and self._ends_at() is None:
                self._await_threads()
        finally:
            self._open = False
            self._loop.end_subprocesses()
            self._executor.shutdown(wait=False, cancel_futures=True)
            asyncio.set_event_loop(None)
            self._loop.close()
            if self._watchdog is not None:
                self._watchdog.stop()

    def run(self, work: Awaitable[T]) -> T:
        """Runs the work to its end; may be called several times. What one sets in a context variable, the next finds.

        Args:
            work: A coroutine or another awaitable.

        Raises:
            AirflowTaskTimeout: The limit passed, whatever the work made of it.
            TaskCancelled: ``cancel`` was called, whatever the work made of it; or the work cancelled itself.
        """
        if self._cancelled_at is not None:
            if asyncio.iscoroutine(work):
                work.close()
            raise self._cancelled()
        task = self._work = self._loop.create_task(_await(work), context=self._context)
        late = self._limit_at and self._loop.call_at(self._limit_at + self._grace / 5, self._end_work)
        try:
            result: T = self._loop.run_until_complete(task)
        except BaseException as error:
            done = task.done()
            if not done:  # the exception of a signal, or `_end_work` stopped the loop
                self._work = None
                self._settle([task])
            if isinstance(error, AirflowTaskTimeout):  # whose words are a process id
                error.add_note(f"{self._where} ran longer than its execution_timeout of {self._seconds or 0:g} s.")
                raise
            self._raise_ended(error if done else None)
            if isinstance(error, asyncio.CancelledError):
                raise self._cancelled() from None
            raise
        finally:
            self._work = None
            if late:
                late.cancel()
        self._raise_ended(None)
        return result

    def cancel(self) -> None:
        """Cancels what runs, at once; what is not yet run will not be. May be called in a signal handler.

        Raises:
            CancelledError: In a signal handler that interrupts a body, so that it ends where it blocks.
        """
        if not self._open:
            return
        if self._cancelled_at is None:
            self._cancelled_at = time.monotonic()
        if self._watchdog is not None:
            self._watchdog.watch(self._cancelled_at)
        if self._work is None:
            return
        self._loop.call_soon_threadsafe(self._end_work)
        if threading.get_ident() == self._thread and asyncio.current_task(self._loop) is not None:
            raise asyncio.CancelledError

    # -- how work ends -----------------------------------------------------------------------------------

    def _end_work(self) -> None:
        """Cancels the work, and stops the loop if that does not help."""
        if self._work is None or self._work.done():
            return
        ends_at = self._ends_at()
        if ends_at is not None and self._loop.time() >= ends_at:
            self._loop.stop()
            return
        self._work.cancel()
        if ends_at is not None:
            self._loop.call_at(ends_at, self._end_work)

    def _ends_at(self) -> float | None:
        """When work that resists is left behind; None as long as nothing ends it."""
        begun = [at for at in (self._limit_at, self._cancelled_at) if at is not None and at <= time.monotonic()]
        return min(begun) + self._grace if begun else None

    def _settle(self, tasks: Iterable[asyncio.Task[Any]], *, cancel: bool = True) -> None:
        """Lets tasks end, for some seconds."""
        tasks = list(tasks)
        if not tasks:
            return
        if cancel:
            for task in tasks:
                task.cancel()
        ends_at = self._ends_at()
        seconds = self._grace if ends_at is None else max(ends_at - time.monotonic(), _LEAST)
        done, resisting = self._loop.run_until_complete(asyncio.wait(tasks, timeout=seconds))
        for task in done:
            if not task.cancelled():
                task.exception()  # else asyncio would report it as never retrieved
        if resisting:
            _left_behind.extend(resisting)
            self._log.warning("%s: what it runs goes on although it was cancelled; it is left behind.", self._where)

    def _raise_ended(self, cause: BaseException | None) -> None:
        """Raises that the work was ended, if it was, instead of what it made of that."""
        if self._cancelled_at is not None:
            raise self._cancelled() from None
        if self._limit_at is not None and time.monotonic() >= self._limit_at:
            raise AirflowTaskTimeout(f"{self._where} went on past its execution_timeout of {self._seconds:g} s") from cause

    def _cancelled(self) -> TaskCancelled:
        return TaskCancelled(f"{self._where} was cancelled while it ran")

    def _await_threads(self) -> None:
        ending = threading.Thread(target=self._executor.shutdown, daemon=True)
        ending.start()
        until = time.monotonic() + _AWAIT_THREADS
        while ending.is_alive() and self._ends_at() is None:
            if time.monotonic() >= until:
                self._log.warning(
                    "%s started a thread (asyncio.to_thread, run_in_executor) that still runs %g s after its end. The"
                    " task does not wait for it any longer; it ends with the task's process. Await it, if it matters.",
                    self._where, _AWAIT_THREADS,
                )  # fmt: skip
                return
            ending.join(0.1)

    def _say_why(self) -> None:
        why = "it was cancelled" if self._cancelled_at is not None else f"its execution_timeout of {self._seconds:g} s"
        frame = sys._current_frames().get(self._thread)
        self._log.error(
            "%s does not end after %s: its body blocks where no exception reaches it, or catches every exception. The task's"
            " process is ended now, and this try fails. Let it catch Exception instead of BaseException, and give what blocks a"
            " time limit of its own. It hangs here:\n%s",
            self._where[:1].upper() + self._where[1:], why, "".join(traceback.format_stack(frame, limit=10)),
        )  # fmt: skip


def has_own_process() -> bool:
    """Whether Airflow's supervisor started this process for one task, and so notices how it ends.

    Not so in ``dag.test()``, where a supervisor of the same process speaks with the task, nor without any supervisor.
    """
    runner = sys.modules.get("airflow.sdk.execution_time.task_runner")
    comms = getattr(runner, "SUPERVISOR_COMMS", None)  # Airflow names no public way
    if comms is None:
        return False
    from airflow.sdk.execution_time.comms import CommsDecoder

    return isinstance(comms, CommsDecoder)


class _Loop(asyncio.SelectorEventLoop):
    """An event loop that ends the processes that it started.

    Asyncio ends one when nothing refers to it any longer, which the traceback of an error does; Airflow waits for its output.
    """

    def __init__(self) -> None:
        super().__init__()
        self._started: weakref.WeakSet[asyncio.SubprocessTransport] = weakref.WeakSet()

    async def subprocess_exec(self, *args: Any, **kwargs: Any) -> Any:
        transport, protocol = await super().subprocess_exec(*args, **kwargs)
        self._started.add(transport)
        return transport, protocol

    async def subprocess_shell(self, *args: Any, **kwargs: Any) -> Any:
        transport, protocol = await super().subprocess_shell(*args, **kwargs)
        self._started.add(transport)
        return transport, protocol

    def end_subprocesses(self) -> None:
        for transport in list(self._started):
            transport.close()


class _Watchdog:
    """Ends the process some seconds after the task should have ended.

    Args:
        say_why: Logs the reason before.
        grace: As of the loop.
    """

    def __init__(self, say_why: Callable[[], None], grace: float) -> None:
        self._say_why = say_why
        self._grace = grace
        # Its put() may interrupt another one, which a signal handler can do.
        self._orders: queue.SimpleQueue[float | None] = queue.SimpleQueue()
        threading.Thread(target=self._watch, name="adk-airflow-watchdog", daemon=True).start()

    def watch(self, should_end_at: float) -> None:
        """Sets when the task should end (``time.monotonic``)."""
        self._orders.put(should_end_at + 1.6 * self._grace)
        with contextlib.suppress(Exception):  # no file behind stderr
            seconds = should_end_at + 2.2 * self._grace - time.monotonic()
            faulthandler.dump_traceback_later(max(seconds, _LEAST), exit=True, file=sys.stderr)

    def stop(self) -> None:
        """The task has ended."""
        self._orders.put(None)
        faulthandler.cancel_dump_traceback_later()

    def _watch(self) -> None:
        ends_at = self._orders.get()
        while ends_at is not None:
            try:
                ends_at = self._orders.get(timeout=max(ends_at - time.monotonic(), 0))
            except queue.Empty:
                self._end()

    def _end(self) -> None:
        # In a thread, as what blocks may hold the lock of a log.
        saying = threading.Thread(target=self._say, daemon=True)
        saying.start()
        saying.join(2)
        if os.getpgrp() == os.getpid():  # also what it started: Airflow would wait for its output
            os.killpg(os.getpid(), signal.SIGTERM)
        os._exit(1)

    def _say(self) -> None:
        self._say_why()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()


def _seconds_left(seconds: float) -> float:
    """What Airflow's own timer, which began before the workflow was imported, leaves of the limit."""
    if threading.current_thread() is not threading.main_thread():
        return seconds
    left = signal.getitimer(signal.ITIMER_REAL)[0]
    return min(left, seconds) if left else seconds


async def _await(work: Awaitable[T]) -> T:
    return await work
