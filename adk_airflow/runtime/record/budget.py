"""What a node, a task or a run may spend on models: looked at before each call, so that none is made that is too many."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol

from adk_airflow.errors import BudgetExceededError, ServiceConfigurationError
from adk_airflow.runtime.record.paths import is_below
from adk_airflow.runtime.record.usage import Spent

if TYPE_CHECKING:
    from adk_airflow.runtime.record.usage import Usage

LIMITS = ("max_llm_calls", "max_tokens", "max_cost")

_HOW_TO_PRICE = "Set [adk_airflow] prices: a table, a file with one, or genai-prices (docs/usage.md)."


def problem(name: str, value: Any) -> str:
    """Why a value is no limit; nothing where it is one."""
    if name == "max_cost":
        right = isinstance(value, (int, float, Decimal)) and not isinstance(value, bool) and 0 < value < float("inf")
        return "" if right else f"{name} {value!r} is no number above 0"
    return "" if type(value) is int and value >= 1 else f"{name} {value!r} is not an integer of 1 or more"


def check(where: str, given: Mapping[str, Any], *, nodes: Collection[str] | None = None) -> None:
    """Refuses what is no limit.

    Args:
        where: The task, for errors.
        given: The arguments, by name: a number, a dict of numbers by the path of a node, or None.
        nodes: The paths that a dict may have. None: any.

    Raises:
        ValueError: One is no limit, or of a node that is not there.
    """
    for name, value in given.items():
        for path, limit in by_path(value).items():
            if wrong := problem(name, limit):
                raise ValueError(f"{where}: {wrong}")
            if nodes is not None and path not in nodes and path != "":
                near = difflib.get_close_matches(str(path), nodes, n=1)
                hint = f" Did you mean {near[0]!r}?" if near else ""
                raise ValueError(f"{where}: {name} names {path!r}, and there is no such node.{hint}")


def by_path(given: Any) -> Mapping[str, Any]:
    """An argument's limits by the path of a node; the empty one for the whole task."""
    return given if isinstance(given, Mapping) else {} if given is None else {"": given}


class Others(Protocol):
    """What other tasks of the run have spent."""

    async def spent(self, task_ids: Collection[str]) -> dict[tuple[str, str, str], Spent]:
        """By task, agent and model, without this task's own."""

    async def publish(self) -> None:
        """Lets other tasks see what this one has spent."""


@dataclass(frozen=True)
class Budget:
    """What a node with all that it runs may spend; of the empty path the whole task, or, with other tasks, the run.

    Attributes:
        where: The workflow and node, or the agent, that has it, for errors.
        path: The node's path.
        limits: By their names in ``LIMITS``.
        tasks: The ids of the tasks whose spending counts, too; of mapped ones all. Empty: only this one's.
    """

    where: str
    path: str
    limits: Mapping[str, Any]
    tasks: tuple[str, ...] = ()

    @property
    def _of(self) -> str:
        return f"node {self.path!r}" if self.path else "the run" if self.tasks else "this task"

    def check(self, usage: Usage, others: Mapping[tuple[str, str, str], Spent], agent: str, model: str) -> None:
        """Refuses a call that has begun, which counts already.

        Raises:
            BudgetExceededError: What may be spent is spent.
            ServiceConfigurationError: Nobody knows what it costs.
        """
        if "max_cost" in self.limits and (usage.price is None or usage.price(model, Spent(), 0) is None):
            raise ServiceConfigurationError(f"{self.where}: {self._of} has a max_cost, and {model!r} no price. {_HOW_TO_PRICE}")
        spent = sum(others.values(), usage.of(self.path))
        if "max_cost" in self.limits and spent.cost is None:
            raise ServiceConfigurationError(
                f"{self.where}: {self._of} has a max_cost, but of what was spent not all has a price. {_HOW_TO_PRICE}"
            )
        used = {"max_llm_calls": spent.requests - 1, "max_tokens": spent.total_tokens, "max_cost": spent.cost}
        for name, limit in self.limits.items():
            if used[name] >= Decimal(str(limit)):  # type: ignore[operator]
                raise BudgetExceededError(
                    f"{self.where}: agent {agent!r} may not ask {model!r}, since {self._of} has spent its budget,"
                    f" {name}={limit}: {self._who(usage, others)}. What earlier tries paid counts. Raise {name} of {self._of},"
                    " or have it ask less, and clear the task."
                )

    def _who(self, usage: Usage, others: Mapping[tuple[str, str, str], Spent]) -> str:
        own = [f"agent {agent!r} with {model!r}: {spent}" for (agent, model), spent in usage.rows(self.path).items()]
        far = [f"in task {task!r} agent {agent!r} with {model!r}: {spent}" for (task, agent, model), spent in others.items()]
        return "; ".join([*own, *far]) or "calls that are under way"


class Budgets:
    """All budgets that a task has to keep to.

    Args:
        budgets: The budgets.
        usage: What the task has spent.
        others: What other tasks have; None where no budget is shared.
    """

    def __init__(self, budgets: Collection[Budget], usage: Usage, others: Others | None = None) -> None:
        self._budgets = tuple(budgets)
        self._usage = usage
        self._others = others if any(budget.tasks for budget in budgets) else None
        self._counts_calls = any(budget.tasks and "max_llm_calls" in budget.limits for budget in budgets)
        self._published = not usage.of().requests
        self._one = asyncio.Lock()

    async def before_call(self, node: str, agent: str, model: str) -> None:
        """To be awaited before a model is asked: refuses what is too much, and notes that the call is under way.

        Args:
            node: The path of the node that asks.
            agent: The agent that asks.
            model: The model's name.

        Raises:
            BudgetExceededError: It is too much.
            ServiceConfigurationError: Nobody knows what it costs.
        """
        self._usage.begin(node)
        try:
            for budget in self._budgets:
                if is_below(node, budget.path):
                    budget.check(self._usage, await self._spent_by_others(budget), agent, model)
        except BaseException:
            self._usage.undo(node)
            raise

    async def _spent_by_others(self, budget: Budget) -> Mapping[tuple[str, str, str], Spent]:
        if not budget.tasks or self._others is None:
            return {}
        async with self._one:
            if self._counts_calls or not self._published:
                await self._others.publish()  # first: of two tasks that begin a last call, at least one sees the other
                self._published = True
            return await self._others.spent(budget.tasks)

    async def after_call(self) -> None:
        """To be awaited when a call has ended."""
        if self._others is not None:
            async with self._one:
                await self._others.publish()
