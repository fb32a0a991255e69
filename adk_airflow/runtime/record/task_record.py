"""The record of one try of a task: what the recorder tells goes to its readers, and to the journal."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection, Mapping
from typing import Any

from adk_airflow.runtime.record.attempt import Attempt, Standing
from adk_airflow.runtime.record.budget import Budget, Budgets, Others
from adk_airflow.runtime.record.entries import Entry, Reader
from adk_airflow.runtime.record.journal import Journal
from adk_airflow.runtime.record.store import JournalStore
from adk_airflow.runtime.record.usage import Price, Usage


class TaskRecord:
    """What is known of one try.

    Args:
        attempt: The try.
        state: Airflow's ``context["task_state_store"]``; None: nothing is kept for another try.
        durable: What is finished is kept for another try.
        log: Where a summary of what was replayed goes.
        afresh: The nodes that each try does afresh, by path.
        price: What tokens cost; None: there are no prices.
        tags: Of Airflow's metrics; None: nothing is counted there.

    Attributes:
        attempt: The try.
        standing: Whether the try still counts.
        journal: What of an earlier try is answered.
        usage: What models cost, the first reader.
        budgets: What they may cost.
        readers: Told of each entry.
    """

    def __init__(
        self,
        attempt: Attempt,
        state: Any = None,
        log: Any = None,
        *,
        durable: bool = True,
        afresh: Collection[str] = (),
        price: Price | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        self.attempt = attempt
        self._log = log or logging.getLogger(__name__)
        self.standing = Standing(attempt, state)
        self._store = None if state is None else JournalStore(attempt, state, self.standing)
        self.journal = Journal(attempt, self._store, durable=durable, afresh=afresh)
        self.usage = Usage(self.journal, price, tags)
        self.budgets = Budgets((), self.usage)
        self.readers: list[Reader] = [self.usage.add]

    def keep_to(self, budgets: Collection[Budget], others: Others | None) -> None:
        """Nothing more is spent than these allow.

        Args:
            budgets: The budgets.
            others: What other tasks of the run have spent.
        """
        self.budgets = Budgets(budgets, self.usage, others)

    def note(self, entry: Entry) -> None:
        """Tells the readers."""
        for reader in self.readers:
            reader(entry)

    def warn(self, words: str) -> None:
        """Says something in the task's log."""
        self._log.warning(words)

    async def settle(self) -> None:
        """To be awaited before anything is paid: what was paid before is safe then, and this try still counts.

        Raises:
            OvertakenError: It does not.
        """
        if self._store is not None:
            await self._store.settle()
        self.standing.check()

    def failed(self, path: str, error: BaseException, *, call_failed: str) -> None:
        """The try has failed: what it finished is kept for the next one.

        Args:
            path: ADK's path of the node run that failed; empty for an agent that is the root.
            error: What it failed with.
            call_failed: Whether a call of a ``"model"`` or a ``"tool"`` failed; empty: what came of an answer.
        """
        self.journal.failed(path, error, call_failed=call_failed)
        if self._store is not None:
            self._store.finish()
        self.standing.check()

    def keep(self) -> None:
        """Keeps what the try has finished, as far as that can be done at once."""
        if self._store is not None:
            self._store.keep()

    def check(self) -> None:
        """Asks Airflow whether this try still counts.

        Raises:
            OvertakenError: It does not.
        """
        try:
            self.standing.check(ask=True)
        finally:
            if self._store is not None:
                self._store.drop_file()

    def forget(self) -> None:
        """The task has succeeded: nothing is kept for another try."""
        with contextlib.suppress(Exception):  # it is only not removed
            self.standing.forget()
            if self._store is not None:
                self._store.forget()

    def say_replayed(self) -> None:
        """Says in the log what was answered from the journal."""
        names = {"model": "model call", "tool": "tool call", "node": "node run", "artifact": "artifact"}
        said = [
            f"{count} {names[kind]}{'s' if count > 1 else ''}"
            for kind, count in sorted(self.journal.replays.items())
            if kind in names
        ]
        if said:
            self._log.info("Answered from what earlier tries had finished: %s", ", ".join(said))
