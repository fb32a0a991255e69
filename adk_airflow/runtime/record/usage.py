"""What calls of models cost: a sum over the record, by node, agent and model, with what earlier tries of the task paid.

Tokens are counted as ADK's own telemetry counts them. A call is counted once, in the try that made it, however it ended; one
that is answered from the journal costs nothing. Of a stream the newest report counts: each is of the whole call so far.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from adk_airflow.runtime.record.paths import is_below, node_of

if TYPE_CHECKING:
    from adk_airflow.runtime.record.entries import Entry
    from adk_airflow.runtime.record.journal import Journal

XCOM_USAGE = "usage"
XCOM_RUN = "usage_run"
COUNTS = ("requests", "input_tokens", "output_tokens", "cached_tokens", "thought_tokens")

Price = Callable[[str, "Spent", int], "Decimal | None"]
"""What tokens of a model cost, by its name, the tokens, and how many of them were written to a cache; None: not known."""


@dataclass(frozen=True)
class Spent:
    """What some calls of models cost.

    Attributes:
        requests: How many calls were made, also those that failed.
        input_tokens: All that the models read, cached tokens and what tools of the vendor gave included.
        output_tokens: All that they wrote, thoughts included.
        cached_tokens: Of the input what came from a cache.
        thought_tokens: Of the output what was thought.
        cost: In the currency of the prices; None: not known.
    """

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    thought_tokens: int = 0
    cost: Decimal | None = Decimal(0)

    @property
    def total_tokens(self) -> int:
        """Input and output."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Spent) -> Spent:
        counts = {name: getattr(self, name) + getattr(other, name) for name in COUNTS}
        known = self.cost is not None and other.cost is not None
        return Spent(**counts, cost=self.cost + other.cost if known else None)  # type: ignore[operator]

    def to_json(self) -> dict[str, Any]:
        """The counts, the sum of the tokens and the cost."""
        counts = {name: getattr(self, name) for name in COUNTS}
        return {**counts, "total_tokens": self.total_tokens, "cost": None if self.cost is None else float(self.cost)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Spent:
        """What ``to_json`` gave, or the journal keeps.

        Raises:
            ValueError: It is no such thing.
        """
        counts = {name: data.get(name, 0) for name in COUNTS}
        if not all(type(count) is int and count >= 0 for count in counts.values()):
            raise ValueError(f"{data!r} are no counts of tokens")
        cost = data.get("cost")
        try:
            return Spent(**counts, cost=None if cost is None else Decimal(str(cost)))
        except InvalidOperation:
            raise ValueError(f"{cost!r} is no cost") from None

    def __str__(self) -> str:
        calls = f"{self.requests} model call{'' if self.requests == 1 else 's'}"
        parts = {"input": self.input_tokens, "cached": self.cached_tokens, "output": self.output_tokens}
        tokens = ", ".join(f"{count:,} {name}" for name, count in {**parts, "thought": self.thought_tokens}.items() if count)
        cost = f", cost {self.cost.normalize():f}" if self.cost else ""
        return f"{calls}, {self.total_tokens:,} tokens{f' ({tokens})' if tokens else ''}{cost}"


def reported(responses: Sequence[Any]) -> tuple[Spent, int]:
    """What the answers of one call report: its tokens, and how many of them were written to a cache.

    Args:
        responses: ADK's LlmResponses, in order.
    """
    found = [metadata for response in responses if (metadata := getattr(response, "usage_metadata", None))]
    if not found:
        return Spent(1), 0

    def count(name: str) -> int:
        return int(getattr(found[-1], name, None) or 0)

    thoughts = count("thoughts_token_count")
    spent = Spent(
        requests=1,
        input_tokens=count("prompt_token_count") + count("tool_use_prompt_token_count"),
        output_tokens=count("candidates_token_count") + thoughts,
        cached_tokens=count("cached_content_token_count"),
        thought_tokens=thoughts,
    )
    return spent, count("cache_creation_input_tokens")  # ADK's Anthropic model notes it there


class Usage:
    """The usage of one task: a reader of its record.

    Args:
        journal: Keeps what is spent for the next try, and has what earlier ones spent.
        price: What tokens cost; None: there are no prices.
        tags: Of Airflow's metrics, in which each call is counted; None: it is not.
    """

    def __init__(self, journal: Journal, price: Price | None = None, tags: Mapping[str, str] | None = None) -> None:
        self.price = price
        self._journal = journal
        self._tags = tags
        self._rows: dict[tuple[str, str, str], Spent] = {}
        self._open: list[str] = []
        for data in journal.spent:
            with contextlib.suppress(ValueError):
                self._count(
                    str(data.get("node", "")), str(data.get("agent", "")), str(data.get("model", "")), Spent.from_json(data)
                )

    # -- what happens ------------------------------------------------------------------------------------

    def begin(self, node: str) -> None:
        """A call is about to be made, in the node at this path; ``add`` is told of its end."""
        self._open.append(node)

    def undo(self, node: str) -> None:
        """It is not made after all."""
        self._open.remove(node)

    def add(self, entry: Entry) -> None:
        """Counts a call."""
        if entry.kind != "model" or entry.replayed:
            return
        node = node_of(entry.path)
        if node in self._open:
            self._open.remove(node)
        spent, written = reported(entry.content.get("responses") or ())
        spent = replace(spent, cost=self._cost(entry.name, spent, written))
        self._count(node, entry.agent, entry.name, spent)
        cost = None if spent.cost is None else str(spent.cost)
        self._journal.spend({**spent.to_json(), "cost": cost, "node": node, "agent": entry.agent, "model": entry.name})
        if self._tags is not None:
            _count_metrics(spent, {**self._tags, "agent": entry.agent, "model": entry.name})

    def _cost(self, model: str, spent: Spent, written: int) -> Decimal | None:
        if self.price is None:
            return None
        return self.price(model, spent, written) if spent.total_tokens else Decimal(0)

    def _count(self, node: str, agent: str, model: str, spent: Spent) -> None:
        self._rows[node, agent, model] = self._rows.get((node, agent, model), Spent()) + spent

    # -- what came of it ---------------------------------------------------------------------------------

    def of(self, node: str = "") -> Spent:
        """What a node, with all that it runs, has spent; of the empty path the whole task. Calls under way are requests."""
        rows = (spent for (path, _, _), spent in self._rows.items() if is_below(path, node))
        return sum(rows, Spent(sum(is_below(path, node) for path in self._open)))

    def rows(self, node: str = "") -> dict[tuple[str, str], Spent]:
        """The same by agent and model, without what is under way."""
        return by_agent(((agent, model), spent) for (path, agent, model), spent in self._rows.items() if is_below(path, node))

    def to_xcom(self, task: str) -> dict[str, Any]:
        """The XCom ``usage`` of the task."""
        return {"task": task, **to_xcom(self.of(), self.rows(), with_cost=self.price is not None)}


def to_xcom(total: Spent, rows: Mapping[tuple[str, str], Spent], *, with_cost: bool) -> dict[str, Any]:
    """Counts as an XCom holds them.

    Args:
        total: The sum.
        rows: By agent and model.
        with_cost: There are prices.
    """

    def shown(spent: Spent) -> dict[str, Any]:
        data = spent.to_json()
        return data if with_cost else {key: value for key, value in data.items() if key != "cost"}

    return {
        **shown(total),
        "by_agent": [{"agent": agent, "model": model, **shown(rows[agent, model])} for agent, model in rows],
    }


def by_agent(rows: Iterator[tuple[tuple[str, str], Spent]]) -> dict[tuple[str, str], Spent]:
    """Sums of rows that have one agent and model, in the order in which these come."""
    found: dict[tuple[str, str], Spent] = {}
    for key, spent in rows:
        found[key] = found.get(key, Spent()) + spent
    return found


def _count_metrics(spent: Spent, tags: Mapping[str, str]) -> None:
    """Counts a call in Airflow's metrics. What hinders that must not fail the run."""
    from airflow.sdk.observability.stats import incr

    counts = {
        "adk.requests": spent.requests,
        "adk.tokens.input": spent.input_tokens,
        "adk.tokens.output": spent.output_tokens,
        "adk.tokens.cached": spent.cached_tokens,
        "adk.tokens.thought": spent.thought_tokens,
    }
    with contextlib.suppress(Exception):
        for name, count in counts.items():
            if count:
                incr(name, count=count, tags=dict(tags))
