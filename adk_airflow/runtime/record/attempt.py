"""Which try of a task this is, whether it goes on from the one before, and whether it is still the one that counts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from adk_airflow.errors import OvertakenError

KEY = "adk:try"
PATIENCE = 600.0
"""Seconds for which what was paid for is sent again to an API server that is away."""

_ASK_AGAIN = 5.0  # seconds


@dataclass(frozen=True)
class Attempt:
    """One try of a task.

    Attributes:
        task: The task instance, for people: ``dag.task``, with the index of a mapped one.
        place: What all tries of the task instance share: DAG, run, task, map index.
        number: Airflow's number of the try, from 1.
        generation: What all tries share that go on from one another: a clear begins a new one, since it raises the tries that a
            task may have. Only that of a running task does not.
        clears: How often tasks of the run have been cleared, this one or others.
        own_process: Airflow's supervisor started this process for the try. Not so in ``dag.test()``.
    """

    task: str
    place: tuple[str, str, str, int]
    number: int
    generation: str
    own_process: bool
    clears: int = 0

    @property
    def is_last(self) -> bool:
        """Whether Airflow gives the task no other try; a clear would begin another generation."""
        return self.number > int(self.generation)

    @staticmethod
    def outside() -> Attempt:
        """The one try of what runs outside of Airflow."""
        return Attempt("", ("", "", "", -1), 1, "0", False)

    @staticmethod
    def of(context: Mapping[str, Any], *, own_process: bool) -> Attempt:
        """The try that a task's context is of."""
        ti, run = context["ti"], context["dag_run"]
        index = -1 if ti.map_index is None else int(ti.map_index)
        clears = getattr(run, "clear_number", None) or 0
        return Attempt(
            task=f"{ti.dag_id}.{ti.task_id}" + ("" if index < 0 else f"[{index}]"),
            place=(str(ti.dag_id), str(ti.run_id), str(ti.task_id), index),
            number=int(ti.try_number or 1),
            generation=str(getattr(ti, "max_tries", 0) or 0),
            own_process=own_process,
            clears=clears,
        )


class Standing:
    """Whether a try still counts: its supervisor lives, and Airflow has not put another in its place.

    Args:
        attempt: The try.
        state: Airflow's ``context["task_state_store"]``, or None where there is none to ask.

    Attributes:
        replaced: Airflow has another task instance in the place of this one: it was cleared while it ran, or given up.
        on_lost: Called when the try turns out to count no longer, maybe in another thread.
    """

    def __init__(self, attempt: Attempt, state: Any) -> None:
        self._attempt = attempt
        self._state = state
        self._supervisor = os.getppid()
        self._asked_at: float | None = None
        self._lost = False
        self.replaced = False
        self.on_lost: Callable[[], None] | None = None

    def heard(self, error: BaseException) -> bool:
        """Takes an error of a request to Airflow; says whether the try counts no longer."""
        if not overtaken_by(error):
            return False
        self.replaced = self.replaced or _status(error) is not None
        self.lose()
        return True

    def lose(self) -> None:
        """It counts no longer; may be called in another thread."""
        if not self._lost:
            self._lost = True
            if self.on_lost is not None:
                self.on_lost()

    def look(self) -> bool:
        """Whether it counts, as far as this process can tell."""
        if self._attempt.own_process and os.getppid() != self._supervisor:
            self.lose()
        return not self._lost

    def check(self, *, ask: bool = False) -> None:
        """Raises what says that this try no longer counts.

        Args:
            ask: Airflow is asked, too, unless it was within the last seconds; before a write that outlives the try.

        Raises:
            OvertakenError: It does not.
        """
        now = time.monotonic()
        if ask and self._attempt.own_process and (self._asked_at is None or now - self._asked_at > _ASK_AGAIN):
            self._asked_at = now
            self._ask()
        if not self.look():
            attempt = self._attempt
            raise OvertakenError(
                f"try {attempt.number} of task {attempt.task} no longer counts: its supervisor has ended, or Airflow has begun"
                f" another try. Process {os.getpid()} stops before it calls or writes anything more; what it has finished is"
                " kept for the next try."
            )

    def _ask(self) -> None:
        if self._state is None:
            return
        try:
            self._state.set(KEY, self._attempt.number)
        except Exception as error:  # a server that is away says nothing
            self.heard(error)

    def forget(self) -> None:
        """Removes what it left."""
        if self._asked_at is not None and self._state is not None:
            self._state.delete(KEY)


def overtaken_by(error: BaseException) -> bool:
    """Whether what Airflow says to a request means that this try no longer counts, or that nobody is there to ask.

    The supervisor that started the process is gone, or the server has another task instance in the place of this one.
    """
    return isinstance(error, (EOFError, BrokenPipeError, ConnectionResetError)) or _status(error) in (404, 409, 410)


def is_away(error: BaseException) -> bool:
    """Whether Airflow's API server gave no answer, or could not work: it may later."""
    from airflow.sdk.exceptions import AirflowRuntimeError

    status = _status(error)
    return isinstance(error, AirflowRuntimeError) and (status is None or status >= 500)


def _status(error: BaseException) -> int | None:
    detail = getattr(getattr(error, "error", None), "detail", None)
    status = detail.get("status_code") if isinstance(detail, Mapping) else None
    return status if isinstance(status, int) else None
