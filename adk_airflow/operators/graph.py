"""The tasks that have a place in a workflow's graph: one node, or several that run together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow.sdk import SkipMixin
from airflow.sdk.exceptions import AirflowSkipException

from adk_airflow.operators.base import AdkInputOperator, AdkOperator
from adk_airflow.operators.spec import TaskSpec
from adk_airflow.runtime.envelopes import Envelopes, task_states
from adk_airflow.runtime.event_loop import TaskCancelled
from adk_airflow.runtime.start import Start
from adk_airflow.runtime.task import Task
from adk_airflow.runtime.wire.envelope import Envelope

if TYPE_CHECKING:
    from google.adk.workflow import BaseNode

    from adk_airflow.runtime.adk.runner import RunResult
    from adk_airflow.runtime.inbox import Inbox
    from adk_airflow.runtime.source import Source


class AdkSpecOperator(AdkOperator):
    """Base of the tasks that the translator makes.

    Args:
        spec: What the task stands for.
    """

    custom_operator_name = "ADK node"
    has_nodes = True

    def __init__(self, *, spec: TaskSpec, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.spec = spec
        self.ends_run = spec.ends_run
        if spec.kind:
            self.custom_operator_name = f"ADK {spec.kind}"

    @property
    def shares(self) -> Mapping[str, tuple[str, ...]]:
        """By the path of a node, the ids of the tasks that spend its budget, too; of the empty path the run's."""
        return self.spec.shares

    def load(self) -> Source:
        """Imports the workflow; gives the one that the node belongs to."""
        from adk_airflow.runtime.source import check_unchanged, load

        found = load(self.spec.workflow, app_name=self.spec.app_name).enter(self.spec.scope)
        if self.spec.fingerprint:
            check_unchanged(found.workflow, self.spec.fingerprint)
        return found

    def name_of(self, source: Source) -> str:
        """The node's name."""
        return self.spec.node

    def nodes_of(self, source: Source) -> Sequence[BaseNode]:
        """The nodes that run in this task."""
        from adk_airflow.runtime.adk import graph

        return [graph.find_node(source.workflow, name) for name in self.spec.nodes]

    def where(self, source: Source) -> str:
        """The workflow and the node."""
        return f"workflow {source.workflow.name!r}, node {self.spec.node!r}"


class AdkGraphOperator(AdkSpecOperator, AdkInputOperator, SkipMixin):
    """Base of the tasks that have a place in the workflow's graph."""

    # Airflow then asks for whom this task skipped, also when a skipped task is cleared.
    inherits_from_skipmixin = True

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not self.spec.starts:
            self._show_no_template("input", "state")

    def envelopes(self, task: Task) -> Envelopes:
        """Reads what the tasks before it left."""
        return Envelopes(task.context, where=task.where, all_succeeded=self.trigger_rule == "all_success")

    def receive(self, task: Task) -> Inbox:
        """Reads what reached the nodes.

        Raises:
            AirflowSkipException: Nothing did: every predecessor was routed elsewhere, or gave no output to wait for.
            EnvelopeError: What a task left cannot be used.
        """
        from adk_airflow.runtime import inbox

        workflow, envelopes = task.source.workflow, self.envelopes(task)
        start, error = None, None
        if self.spec.starts:
            if self.spec.first_tasks:
                self._check_group(task)
            start, error = self._enter(task)
        found = inbox.read(workflow, self.spec.nodes, start=start, output_tasks=self.spec.output_tasks, envelopes=envelopes)
        if not found.arrivals and error is None:
            raise AirflowSkipException(
                f"workflow {workflow.name!r}: no predecessor of node {self.spec.node!r} triggered it in this run"
            )
        return replace(found, error=error)

    def _check_group(self, task: Task) -> None:
        """Skips this task when its task group was skipped: Airflow itself skips only the group's first tasks.

        Raises:
            AirflowSkipException: Every first task was skipped, and by a task outside.
        """
        states = task_states(task.context["ti"], self.spec.first_tasks)
        skipped = [first for first in self.spec.first_tasks if states.get(first) == "skipped"]
        if skipped == list(self.spec.first_tasks) and all(self._skipped_from_outside(task, first) for first in skipped):
            raise AirflowSkipException(f"workflow {task.source.workflow.name!r}: its task group was skipped")

    def _skipped_from_outside(self, task: Task, first: str) -> bool:
        """Whether a task before the group had this one skipped; else its own node raised AirflowSkipException."""
        assert self.dag is not None
        operator, ti = self.dag.get_task(first), task.context["ti"]
        before = sorted(operator.upstream_task_ids)
        if operator.trigger_rule == "all_success" and "skipped" in task_states(ti, before).values():
            return True
        for said in (ti.xcom_pull(task_ids=name, key="skipmixin_key", map_indexes=None) or {} for name in before):
            if first in said.get("skipped", ()) or ("followed" in said and first not in said["followed"]):
                return True
        return False

    def _enter(self, task: Task) -> tuple[Start, Exception | None]:
        """What the run gives, with START's output: as ADK does, plugins see the message first, then the ``input_schema``."""
        from adk_airflow.runtime import inbox
        from adk_airflow.runtime.adk import graph, message

        start = self.start(task)
        given = inbox.merge([], start)
        received = given.message
        try:
            if message.plugins_see_messages(task.source.app):
                result = task.wait_for(message.receive(task.adk_run(given)))
                if result.error is not None:
                    raise result.error
                received = result.firings.pop().output if result.firings else received
            return replace(start, output=graph.start_input(task.source.workflow, received)), None
        except TaskCancelled:
            raise
        except Exception as error:
            return start, error

    def skip_untriggered(self, task: Task, envelope: Envelope, output: Any) -> None:
        """Skips the nodes that this task alone could have triggered and did not; Airflow remembers them as skipped by it.

        Raises:
            DownstreamTasksSkipped: Airflow's way to skip.
        """
        for firing in envelope.firings:
            if firing.route is not None:
                targets = ", ".join(firing.next) or "nothing"
                self.log.info("Node %r emitted route %r: goes on to %s", firing.node, firing.route, targets)
                task.warn_of_route(firing.node, firing.route)
        chosen = {name for firing in envelope.firings for name in firing.next}
        skipped = [task_id for name, task_id in self.spec.skips.items() if name not in chosen]
        if skipped:
            assert self.dag is not None
            self.log.info("Not triggered, so skipped: %s", ", ".join(skipped))
            ti = task.context["ti"]
            if output is not None:
                task.push("return_value", output)
            self.skip(ti, [self.dag.get_task(task_id) for task_id in skipped])  # raises, so nothing is returned


class AdkRegionOperator(AdkGraphOperator):
    """Runs several nodes of a workflow together in ADK's own engine: a loop, or what the user embedded.

    Args:
        max_iterations: For each node that shall not run more often than that, by path where it is inside a nested workflow:
            how often. The run then fails with ``LoopLimitError``, which shows the last routes. None: no limit, as in ADK.
    """

    custom_operator_name = "ADK region"

    def __init__(self, *, max_iterations: Mapping[str, int] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_iterations = dict(max_iterations or {})

    def run(self, task: Task) -> RunResult:
        """Runs the nodes until nothing triggers them any more."""
        from adk_airflow.runtime.adk import engine

        arrivals = task.inbox.arrivals
        result = task.watch(
            task.adk_run(),
            lambda run: engine.run_part(run, self.spec.nodes, arrivals, max_iterations=self.max_iterations),
        )
        if result.triggered_early:
            self.log.warning(
                "%s triggered %s and ran on. ADK would run them side by side: here what comes after it starts now, and it saw"
                " nothing of what they write to state (mode='embedded' runs all in one task, as ADK does).",
                task.where, ", ".join(sorted(result.triggered_early)),
            )  # fmt: skip
        return result

    def plain_output(self, task: Task, envelope: Envelope) -> Any:
        """The last plain output of each node that gave one, by name."""
        outputs = {name: envelope.last_output(name) for name in self.spec.nodes}
        return {name: task.plain(output) for name, (has, output) in outputs.items() if has}


class AdkNodeOperator(AdkGraphOperator):
    """Runs one node of a workflow under ADK's Runner, once per trigger that reached it.

    Args:
        max_iterations: For a nested workflow: as for ``AdkRegionOperator``, by path (``inner/a``).
    """

    def __init__(self, *, max_iterations: Mapping[str, int] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_iterations = dict(max_iterations or {})

    def run(self, task: Task) -> RunResult:
        """Runs the node for each of its triggers."""
        from adk_airflow.runtime.adk import engine, graph

        def work(run: Any) -> Any:
            return engine.run_part(run, self.spec.nodes, task.inbox.arrivals, max_iterations=self.max_iterations)

        run = task.adk_run()
        if graph.runs_others(graph.find_node(task.source.workflow, self.spec.node)):
            return task.watch(run, work)
        return task.wait_for(work(run))
