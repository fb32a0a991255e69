"""Which try of a task this is, whether it goes on from the one before, and whether it is still the one that counts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adk_airflow.errors import OvertakenError


@dataclass(frozen=True)
class Attempt:
    """One try of a task.

    Attributes:
        task: The task instance, for people: ``dag.task``, with the index of a mapped one.
        place: What all tries of the task instance share: DAG, run, task, map index.
        number: Airflow's number of the try, from 1.
        generation: What all tries share that go on from one another. A clear begins a new one: it raises the tries that a task
            may have, or, where it hits a running task, the run's count of clears.
        own_process: Airflow's supervisor started this process for the try. Not so in ``dag.test()``.
    """

    task: str
    place: tuple[str, str, str, int]
    number: int
    generation: str
    own_process: bool

    @staticmethod
    def outside() -> Attempt:
        """The one try of what runs outside of Airflow."""
        return Attempt("", ("", "", "", -1), 1, "", False)

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
            generation=f"{getattr(ti, 'max_tries', 0) or 0}.{clears}",
            own_process=own_process,
        )


def overtaken_by(error: BaseException) -> bool:
    """Whether what Airflow says to a request means that this try no longer counts, or that nobody is there to ask.

    The supervisor that started the process is gone, or the server has another task instance in the place of this one.
    """
    if isinstance(error, (EOFError, BrokenPipeError, ConnectionResetError)):
        return True
    response = getattr(error, "error", None)
    detail = getattr(response, "detail", None) or {}
    return isinstance(detail, Mapping) and detail.get("status_code") in (404, 409, 410)


def overtaken(attempt: Attempt) -> OvertakenError:
    """The error that ends a try which no longer counts."""
    return OvertakenError(
        f"try {attempt.number} of task {attempt.task} no longer counts: its supervisor has ended, or Airflow has begun another"
        f" try. Process {os.getpid()} stops before it calls or writes anything more; what it has finished is kept for the next"
        " try."
    )
