"""What the tasks of a run have spent on models, as their XComs ``usage`` say."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from adk_airflow.runtime import failures
from adk_airflow.runtime.envelopes import task_states
from adk_airflow.runtime.record.attempt import is_away
from adk_airflow.runtime.record.store import loop_asks_too
from adk_airflow.runtime.record.usage import XCOM_USAGE, Spent, Usage, by_agent, to_xcom
from adk_airflow.runtime.sending import PATIENCE

T = TypeVar("T")
# A task that is cleared, or skipped then, has the XComs of another course of the run until it starts.
_COUNTED = {"running", "success", "failed", "up_for_retry", "up_for_reschedule", "deferred", "awaiting_input", "restarting"}
_PAUSE = 2.0


class RunUsage:
    """Reads what other tasks of a run have spent, and shows them what this one has.

    Args:
        ti: The task instance.
        writer: The task, unique in the run.
        usage: What it has spent.
        log: The task's log.
        own_process: Requests may be made in another thread.
    """

    def __init__(self, ti: Any, writer: str, usage: Usage, log: Any, *, own_process: bool) -> None:
        self._ti = ti
        self._writer = writer
        self._usage = usage
        self._log = log
        self._own_process = own_process
        self._ended: dict[str, list[dict[str, Any]]] = {}

    async def publish(self) -> None:
        """Renews the XCom of this task."""
        value = self._usage.to_xcom(self._writer)
        await self._ask(lambda: self._ti.xcom_push(key=XCOM_USAGE, value=value))

    async def spent(self, task_ids: Collection[str]) -> dict[tuple[str, str, str], Spent]:
        """By task, agent and model, without this task's own."""
        found = await self._ask(lambda: self.read(task_ids))
        rows: dict[tuple[str, str, str], Spent] = {}
        for value in found:
            named = [(row, Spent.from_json(row)) for row in value["by_agent"]]
            under_way = value["requests"] - sum(spent.requests for _, spent in named)
            for row, spent in [*named, *([({}, Spent(under_way))] if under_way > 0 else [])]:
                key = (str(value["task"]), str(row.get("agent", "")), str(row.get("model", "")))
                rows[key] = rows.get(key, Spent()) + spent
        return rows

    def read(self, task_ids: Collection[str]) -> list[dict[str, Any]]:
        """The XComs of other tasks, of mapped ones all. Tasks that have ended are read once."""
        states = task_states(self._ti, task_ids)
        found: list[dict[str, Any]] = []
        for task_id in task_ids:
            own = {writer: state for writer, state in states.items() if writer.rpartition("_")[0] == task_id or writer == task_id}
            counted = {_writer(name, task_id) for name, state in own.items() if state in _COUNTED} - {self._writer}
            if not counted:
                continue
            values = self._ended.get(task_id)
            if values is None:
                values = self._ti.xcom_pull(task_ids=[task_id], key=XCOM_USAGE) or []
                values = [value for value in values if _is_usage(value)]
                if set(own.values()) == {"success"}:
                    self._ended[task_id] = values
            found += [value for value in values if value["task"] in counted]
        return found

    def of_run(self, task_ids: Collection[str]) -> dict[str, Any] | None:
        """The sum over these tasks and this one, as an XCom holds it; None where none asked a model."""
        rows = [((row["agent"], row["model"]), Spent.from_json(row)) for value in self.read(task_ids) for row in value["by_agent"]]
        sums = by_agent(iter([*rows, *self._usage.rows().items()]))
        if not sums:
            return None
        return to_xcom(sum(sums.values(), Spent()), sums, with_cost=self._usage.price is not None)

    async def _ask(self, request: Callable[[], T]) -> T:
        """Asks Airflow without keeping the event loop from its work, for as long as its API server may be away."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                if self._own_process and not loop_asks_too():
                    return await asyncio.to_thread(request)
                return request()
            except Exception as error:
                in_the_way = type(error).__name__ == "DeadlockImminentError"  # a coroutine is asking
                if time.monotonic() > until or not (in_the_way or is_away(error)):
                    raise
                if not in_the_way:
                    self._log.warning("What the run has spent cannot be asked for now: %s", failures.one_line(error))
                await asyncio.sleep(0.01 if in_the_way else _PAUSE)


def _writer(name: str, task_id: str) -> str:
    """How a task instance calls itself, by its name among the states."""
    index = name.removeprefix(task_id).removeprefix("_")
    return f"{task_id}[{index}]" if index else task_id


def _is_usage(value: Any) -> bool:
    """Whether it is an XCom of ours, and not one that a user's code pushed under the same key."""
    try:
        texts = all(isinstance(row[key], str) for row in value["by_agent"] for key in ("agent", "model"))
        return texts and isinstance(value["task"], str) and [Spent.from_json(row) for row in [value, *value["by_agent"]]] != []
    except (KeyError, TypeError, ValueError, AttributeError):
        return False
