"""One ADK node as one Airflow task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException, DownstreamTasksSkipped

from adk_airflow.operators.base import AdkOperator
from adk_airflow.runtime.envelope import XCOM_KEY, Envelope

if TYPE_CHECKING:
    from adk_airflow.runtime.inbox import Inbox
    from adk_airflow.runtime.source import Source


class AdkGraphOperator(AdkOperator):
    """Base of the tasks that have a place in the workflow's graph.

    Args:
        exits: For each node before this one, near or far, the full id of the task that speaks for it.
        skips: For each node that only this one triggers, the full id of its first task: skipped when it is not triggered.
    """

    # Airflow then remembers whom this task skipped, also when a skipped task is cleared.
    inherits_from_skipmixin = True

    def __init__(
        self,
        *,
        exits: Mapping[str, str] | None = None,
        skips: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.exits = dict(exits or {})
        self.skips = dict(skips or {})

    def read_inbox(self, context: Mapping[str, Any], source: Source) -> Inbox:
        """Reads what reached the node.

        Raises:
            AirflowSkipException: Nothing did: every predecessor was routed elsewhere, or gave no output to wait for.
            EnvelopeError: What a task left cannot be used.
        """
        from adk_airflow.runtime import inbox

        ti = context["ti"]
        found = inbox.read(
            source.workflow,
            self.node,
            start=self.start(context),
            exits=self.exits,
            # map_indexes=None: what an unmapped task left, whatever this task is.
            reader=lambda task_id: ti.xcom_pull(task_ids=task_id, key=XCOM_KEY, map_indexes=None),
        )
        if not found.triggers:
            raise AirflowSkipException(
                f"workflow {source.workflow.name!r}: no predecessor of node {self.node!r} triggered it in this run"
            )
        return found

    def hand_on(self, context: Mapping[str, Any], envelope: Envelope) -> Any:
        """Skips the nodes that this one alone could have triggered and did not; returns the plain output."""
        output = self.plain_output(envelope)
        chosen = {name for firing in envelope.firings for name in firing.next}
        skipped = [task_id for name, task_id in self.skips.items() if name not in chosen]
        for firing in envelope.firings:
            if firing.route is not None:
                self.log.info(
                    "Node %r emitted route %r: goes on to %s",
                    self.node,
                    firing.route,
                    list(firing.next) or "nothing",
                )
        if skipped:
            self.log.info("Not triggered, so skipped: %s", ", ".join(skipped))
            if output is not None:
                context["ti"].xcom_push(key="return_value", value=output)
            raise DownstreamTasksSkipped(tasks=skipped)  # type: ignore[no-untyped-call]
        return output


class AdkNodeOperator(AdkGraphOperator):
    """Runs one node of a workflow under ADK's Runner, once per trigger that reached it."""

    def execute(self, context: Any) -> Any:
        """Returns the node's plain output; XCom ``adk`` holds the envelope."""
        from adk_airflow.runtime import host

        source = self.load()
        inbox = self.read_inbox(context, source)
        run = self.make_run(context, source, inbox)
        result = self.await_adk(host.run_triggers(run, self.node, inbox.triggers))
        envelope = self.leave(context, source, inbox, result)
        return self.hand_on(context, envelope)
