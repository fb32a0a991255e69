"""The record of one try of a task: what the recorder tells goes to its readers, and to the journal."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection
from typing import Any

from adk_airflow.runtime.record.attempt import Attempt, Standing
from adk_airflow.runtime.record.entries import Entry, Reader
from adk_airflow.runtime.record.journal import Journal
from adk_airflow.runtime.record.store import JournalStore


class TaskRecord:
    """What is known of one try.

    Args:
        attempt: The try.
        state: Airflow's ``context["task_state_store"]``; None: nothing is kept for another try.
        durable: What is finished is kept for another try.
        log: Where a summary of what was replayed goes.
        afresh: The nodes that each try does afresh, by path.

    Attributes:
        attempt: The try.
        standing: Whether the try still counts.
        journal: What of an earlier try is answered.
        readers: Told of each entry.
    """

    def __init__(
        self, attempt: Attempt, state: Any = None, log: Any = None, *, durable: bool = True, afresh: Collection[str] = ()
    ) -> None:
        self.attempt = attempt
        self._log = log or logging.getLogger(__name__)
        self.standing = Standing(attempt, state)
        durable_state = state if durable else None
        self._store = None if durable_state is None else JournalStore(attempt, durable_state, self.standing)
        self.journal = Journal(attempt, self._store, afresh=afresh)
        self.readers: list[Reader] = []

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

    def forget(self) -> None:
        """The task has succeeded: nothing is kept for another try."""
        with contextlib.suppress(Exception):  # it is only not removed
            self.standing.forget()
            if self._store is not None:
                self._store.forget()

    def say_replayed(self) -> None:
        """Says in the log what was answered from the journal."""
        names = {"model": "model call", "tool": "tool call", "node": "node run", "artifact": "artifact"}
        said = [f"{count} {names[kind]}{'s' if count > 1 else ''}" for kind, count in sorted(self.journal.replays.items())]
        if said:
            self._log.info("Answered from what earlier tries had finished: %s", ", ".join(said))
