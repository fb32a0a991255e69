"""What the tasks of a run have spent on models, as their XComs ``usage`` say."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol, TypeVar

from adk_airflow.runtime import failures
from adk_airflow.runtime.envelopes import task_states
from adk_airflow.runtime.record.attempt import PATIENCE, is_away
from adk_airflow.runtime.record.budget import LIMITS, Budget, by_path
from adk_airflow.runtime.record.store import loop_asks_too
from adk_airflow.runtime.record.usage import XCOM_RUN, XCOM_USAGE, Spent, Usage, by_agent, to_xcom

T = TypeVar("T")
# A task that is cleared, or skipped then, has the XComs of another course of the run until it starts.
_COUNTED = {"running", "success", "failed", "up_for_retry", "up_for_reschedule", "deferred", "awaiting_input", "restarting"}
_PAUSE = 2.0


class Spender(Protocol):
    """What an operator says of what its task may spend."""

    max_llm_calls: int | Mapping[str, int] | None
    max_tokens: int | Mapping[str, int] | None
    max_cost: float | Mapping[str, float] | None

    @property
    def shares(self) -> Mapping[str, tuple[str, ...]]:
        """By the path of a node, the ids of the tasks that spend its budget, too; of the empty path the run's."""


def budgets_of(step: Spender, where: str) -> list[Budget]:
    """The budgets that a task has to keep to.

    Args:
        step: The operator.
        where: How errors name what runs in the task.
    """
    limits: dict[str, dict[str, Any]] = {}
    for name in LIMITS:
        given = getattr(step, name)
        for path, limit in by_path(given).items():
            limits.setdefault(path, {})[name] = limit
    return [Budget(where, path, found, step.shares.get(path, ())) for path, found in limits.items()]


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
            own = {
                writer: state for writer, state in states.items() if writer.rpartition("_")[0] == task_id or writer == task_id
            }
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
        rows = [
            ((row["agent"], row["model"]), Spent.from_json(row)) for value in self.read(task_ids) for row in value["by_agent"]
        ]
        sums = by_agent(iter([*rows, *self._usage.rows().items()]))
        if not sums:
            return None
        return to_xcom(sum(sums.values(), Spent()), sums, with_cost=self._usage.price is not None)

    def send(self, task_ids: Collection[str] | None) -> None:
        """Leaves what the task has spent in XCom. What hinders that is logged: it must not fail the task.

        Args:
            task_ids: The tasks of the run that asked a model, where this one ends it: their sum is left, too.
        """
        asked = self._usage.of().requests
        try:
            if asked:
                self._log.info("Models: %s", self._usage.of())
                self._ti.xcom_push(key=XCOM_USAGE, value=self._usage.to_xcom(self._writer))
            if (task_ids or (asked and task_ids is not None)) and (value := self.of_run(task_ids)) is not None:
                self._ti.xcom_push(key=XCOM_RUN, value=value)
        except Exception as error:
            self._log.warning("What models cost is not in the XComs of the task: %s", failures.one_line(error))

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
