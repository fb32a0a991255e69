"""What a task leaves for the tasks after it. Every value is encoded here, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from adk_airflow.errors import ValueNotTransferableError
from adk_airflow.runtime import failures
from adk_airflow.runtime.sealing import Sealing
from adk_airflow.runtime.wire import codec, lineage
from adk_airflow.runtime.wire.envelope import Envelope, Records, merged_records

if TYPE_CHECKING:
    from adk_airflow.runtime.adk.runner import RunResult
    from adk_airflow.runtime.inbox import Inbox
    from adk_airflow.runtime.wire.worker import ItemOutput, WorkerRuns


@dataclass(frozen=True)
class Outbox:
    """What a task adds to what its nodes did, in the envelope that it leaves.

    Attributes:
        worker: Of the ``items`` task of a parallel worker: the runs of the worker.
        outputs: Of a mapped task of a parallel worker: the outputs of its items.
        records: The try itself, where a node after it may see its events.
        scopes: Of the ``input`` task of a nested workflow: ADK's branch for it, by its path.
        asked: The task's id, where it asked a model.
    """

    worker: WorkerRuns | None = None
    outputs: Sequence[ItemOutput] = ()
    scopes: Mapping[str, tuple[str | None, bool]] = field(default_factory=dict)
    asked: str = ""
    records: Records = field(default_factory=dict)

    def pack(
        self, inbox: Inbox, result: RunResult, *, writer: str, workflow: str, node: str, where: str
    ) -> tuple[Envelope, str]:
        """The envelope and its text. What cannot travel becomes the result's error, if it has none; the rest is kept.

        What holds a secret is sealed in the text, or named in a warning where that cannot be done.

        Args:
            inbox: What the task was given.
            result: What its nodes did.
            writer: The task, unique in the run.
            workflow: The workflow's name.
            node: The node's name.
            where: How errors name the node.
        """
        state = self._written(inbox, result, writer, where)
        sealing = Sealing()
        envelope = Envelope(
            task=writer,
            workflow=workflow,
            node=node,
            message=inbox.message,
            firings=tuple(result.firings),
            state=state,
            lost=inbox.lost,
            worker=self.worker,
            outputs=tuple(self.outputs),
            scopes={**inbox.scopes, **self.scopes},
            asked=tuple(dict.fromkeys([*inbox.asked, *([self.asked] if self.asked else [])])),
            records=merged_records([inbox.records, self.records]),
            error=_error_of(result),
        )
        try:
            text = envelope.dumps(sealing)
        except ValueNotTransferableError as error:
            result.error = result.error or ValueNotTransferableError(f"{where}: {error}")
            envelope = replace(envelope, firings=(), outputs=(), error=_error_of(result))
            text = envelope.dumps(sealing)
        sealing.warn(where)
        return envelope, text

    def _written(self, inbox: Inbox, result: RunResult, writer: str, where: str) -> lineage.State:
        """The state after the task, with what changed inside a container that ADK did not see change."""
        written = {}
        for key in sorted(result.state, key=str):
            try:
                codec.encode(key)
            except ValueNotTransferableError as error:
                self._refuse(result, where, f"the name of state key {key!r}", error)
                continue
            try:
                data = codec.encode(result.state[key])
            except ValueNotTransferableError as error:
                self._refuse(result, where, f"state key {key!r}", error)
                continue
            before = inbox.state.get(key)
            if key in result.written or before is None or codec.dumps(before.value) != codec.dumps(data):
                written[key] = data
        return lineage.write(inbox.state, written, writer)

    @staticmethod
    def _refuse(result: RunResult, where: str, what: str, error: ValueNotTransferableError) -> None:
        refused = ValueNotTransferableError(f"{where}: {what} cannot travel to another task: {error}")
        result.error = result.error or refused


def _error_of(result: RunResult) -> tuple[str, str] | None:
    return None if result.error is None else (type(result.error).__name__, failures.error_text(result.error))
