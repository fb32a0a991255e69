"""Reads what the tasks before left in XCom. Only XComs of this run are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from adk_airflow.errors import EnvelopeError
from adk_airflow.runtime.wire.envelope import XCOM_KEY, Envelope


class Envelopes:
    """The envelopes that tasks of this run left.

    Airflow keeps the XComs of a task that ran, was cleared, and is now skipped: they belong to another course of the run. So
    only what a task left that is in state success counts.

    Args:
        context: The task's context.
        where: Who reads, for errors: the workflow and the node.
        all_succeeded: This task runs only after all that it reads succeeded, so nobody need ask for their states.

    Attributes:
        states: The states of the tasks that were asked for so far, by id; empty for one that has none.
    """

    def __init__(self, context: Mapping[str, Any], *, where: str, all_succeeded: bool = False) -> None:
        self._ti = context["ti"]
        self._where = where
        self._all_succeeded = all_succeeded
        self._found: dict[str, Envelope] = {}
        self.states: dict[str, str] = {}

    def ask(self, task_ids: Iterable[str]) -> None:
        """Asks for the states of several unmapped tasks at once, those that are not known yet."""
        ids = [task_id for task_id in dict.fromkeys(task_ids) if task_id not in self.states]
        found = dict.fromkeys(ids, "success") if self._all_succeeded else task_states(self._ti, ids)
        self.states.update({task_id: found.get(task_id, "") for task_id in ids})

    def get(self, task_id: str) -> Envelope | None:
        """What an unmapped task left; None when it was skipped or has not run.

        Raises:
            EnvelopeError: It cannot be used, or is not there although the task is in state success: a person marked it.
        """
        self.ask([task_id])
        if self.states[task_id] != "success":
            return None
        if task_id not in self._found:
            # map_indexes=None: what an unmapped task left, whatever this task is.
            text = self._ti.xcom_pull(task_ids=task_id, key=XCOM_KEY, map_indexes=None)
            if text is None:
                raise EnvelopeError(
                    f"{self._where}: task {task_id!r} is in state success but left nothing in XCom key {XCOM_KEY!r}. If it"
                    " was marked by hand, it has no output to hand on: clear it, so that it runs, and what comes after it."
                )
            self._found[task_id] = self._checked(Envelope.loads(text, task=task_id))
        return self._found[task_id]

    def of_mapped(self, task_id: str, count: int) -> list[Envelope]:
        """What the first ``count`` instances of a mapped task left, those that succeeded, in order.

        By index: after a clear that shortened the list, the XComs of the items that are gone are still there.

        Raises:
            EnvelopeError: One cannot be used, or is of an item that failed and was marked as a success.
        """
        if not count:
            return []
        states = task_states(self._ti, [task_id])
        succeeded = [index for index in range(count) if states.get(f"{task_id}_{index}") == "success"]
        texts = self._ti.xcom_pull(task_ids=[task_id], key=XCOM_KEY, map_indexes=succeeded) if succeeded else []
        return [self._checked(Envelope.loads(text, task=task_id)) for text in texts if text is not None]

    def _checked(self, envelope: Envelope) -> Envelope:
        if envelope.error is not None:
            raise EnvelopeError(
                f"{self._where}: task {envelope.task!r} failed ({': '.join(envelope.error)}) and was marked as a success"
                " afterwards, so it has no output to hand on. Clear it, so that it runs again."
            )
        return envelope


def task_states(ti: Any, task_ids: Iterable[str]) -> dict[str, str]:
    """The states of tasks of this run, by id; of mapped instances by id, underscore and index."""
    ids = sorted(set(task_ids))
    if not ids:
        return {}
    states = ti.get_task_states(dag_id=ti.dag_id, task_ids=ids, run_ids=[ti.run_id])
    return {task_id: str(state) for task_id, state in states.get(ti.run_id, {}).items()}
