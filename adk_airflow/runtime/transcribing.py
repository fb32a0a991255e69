"""What a task does with its transcript: it is opened, told, referred to, and read for nodes that see what was said before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from adk_airflow.errors import ServiceConfigurationError
from adk_airflow.runtime import failures
from adk_airflow.runtime.record.transcript import XCOM_KEY, Transcript
from adk_airflow.runtime.services import settings, transcripts

if TYPE_CHECKING:
    from google.adk.apps.app import App
    from google.adk.workflow import BaseNode

    from adk_airflow.runtime.record.attempt import Attempt
    from adk_airflow.runtime.record.entries import Entry
    from adk_airflow.runtime.wire.envelope import Records

_READS_AT_ONCE = 16
_PATIENCE_WHEN_STOPPED = 2.0  # seconds that a task that is being stopped waits for its record


class TaskTranscript:
    """The transcript of one try, and those of the tasks before it. Nothing that hinders it changes the run.

    Args:
        attempt: The try.
        context: The task's context.
        where: How log lines name what runs in the task.
        log: The task's log.
    """

    def __init__(self, attempt: Attempt, context: Mapping[str, Any], *, where: str, log: Any) -> None:
        self._attempt = attempt
        self._ti = context["ti"]
        self._where = where[:1].upper() + where[1:]
        self._log = log
        self._kept: Transcript | None = None
        try:
            self._root = settings.transcripts_place()
        except ServiceConfigurationError as error:
            log.warning("What happens in this task is not recorded: %s. The run goes on.", failures.one_line(error))
            return
        place = transcripts.TranscriptPlace(transcripts.try_folder(self._root, attempt.place, attempt.number))
        self._kept = Transcript(attempt, place, content=settings.log_content(), log=log, on_first=self.refer)

    def add(self, entry: Entry) -> None:
        """Takes an entry: a reader of the record."""
        if self._kept is not None:
            self._kept.add(entry)

    def close(self, path: str = "", error: BaseException | None = None) -> None:
        """Writes what is still to be written, when ADK has run to its end.

        Args:
            path: Path of the node run that failed.
            error: What the task fails with, or None.
        """
        if self._kept is not None:
            if error is not None:
                self._kept.failed(path, error)
            self._kept.close()

    def stop(self) -> None:
        """Writes what can be written at once, when the task is being stopped."""
        if self._kept is not None:
            self._kept.close(patience=_PATIENCE_WHEN_STOPPED)
            self.refer()

    def refer(self) -> None:
        """Pushes the XCom that says where it is; not again where Airflow does not take it: nothing of the run is in it."""
        if self._kept is None:
            return
        try:
            self._ti.xcom_push(key=XCOM_KEY, value=self._kept.reference())
        except Exception as error:
            self._log.warning(
                "XCom %r, where the record of this task is, could not be sent: %s", XCOM_KEY, failures.one_line(error)
            )

    # -- what nodes see of one another -------------------------------------------------------------------

    def keeps_events(self, workflow_nodes: Iterable[BaseNode], app: App) -> bool:
        """Whether a node of the workflow, in another task, may see what is said in this one.

        Args:
            workflow_nodes: The nodes of the outermost workflow; none for what has no place in a graph.
            app: The App.
        """
        from adk_airflow.runtime.adk import history

        nodes = list(workflow_nodes)
        return bool(nodes) and self._kept is not None and history.sees_history(nodes, app)

    def keep_events(self, events: Sequence[Mapping[str, Any]]) -> Records:
        """Keeps what was said for the tasks after this one; gives what their envelopes name it by.

        Args:
            events: The events, in ADK's JSON form.
        """
        if self._kept is None or not events:
            return {}
        self._kept.keep(transcripts.SESSION, transcripts.session_bytes(events))
        _, _, task, index = self._attempt.place
        return {task: {str(index): self._attempt.number}}

    def history(self, records: Records, nodes: Sequence[BaseNode], app: App) -> list[dict[str, Any]]:
        """What nodes in tasks before said, in ADK's order, where the nodes of this task can see it.

        What cannot be read is named in a warning.

        Args:
            records: The tries of those tasks.
            nodes: The nodes.
            app: The App.
        """
        from adk_airflow.runtime.adk import history

        if not records or self._kept is None or not history.sees_history(nodes, app):
            return []
        tries = [(task, int(index), number) for task, found in records.items() for index, number in found.items()]
        with ThreadPoolExecutor(min(_READS_AT_ONCE, len(tries))) as pool:
            return history.in_order(pool.map(self._events_of, tries))

    def _events_of(self, one: tuple[str, int, int]) -> list[dict[str, Any]]:
        task, index, number = one
        dag_id, run_id, *_ = self._attempt.place
        try:
            return transcripts.read_session(transcripts.try_folder(self._root, (dag_id, run_id, task, index), number))
        except Exception as error:  # of any store
            self._log.warning(
                "%s does not see what task %r said, whose record cannot be read ([adk_airflow] transcripts_uri): %s. The run"
                " goes on.",
                self._where, task if index < 0 else f"{task}[{index}]", failures.one_line(error),
            )  # fmt: skip
            return []
