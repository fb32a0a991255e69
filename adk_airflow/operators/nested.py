"""The tasks at the ends of a workflow: ``input`` takes what the outer graph gives a nested one, ``output`` gives its output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException

from adk_airflow.operators.graph import AdkGraphOperator
from adk_airflow.runtime.outbox import Outbox
from adk_airflow.runtime.start import START
from adk_airflow.runtime.wire.envelope import Envelope, Firing

if TYPE_CHECKING:
    from adk_airflow.runtime.adk.runner import RunResult
    from adk_airflow.runtime.inbox import Inbox
    from adk_airflow.runtime.task import Task


class AdkNestedInputOperator(AdkGraphOperator):
    """Validates a nested workflow's input and hands it to the successors of its START."""

    custom_operator_name = "ADK workflow input"

    def run(self, task: Task) -> RunResult:
        """The nested workflow's START, with its input."""
        from adk_airflow.runtime.adk import graph
        from adk_airflow.runtime.adk.runner import RunResult

        inner = task.source.enter([self.spec.node]).workflow
        trigger = task.inbox.arrivals[0].trigger
        task.outbox = Outbox(scopes={"/".join((*self.spec.scope, self.spec.node)): (trigger.branch, trigger.sub_branch)})
        value = graph.start_input(inner, trigger.input)
        firing = Firing(START, value, None, None, graph.start_successors(inner))
        return RunResult(state=task.inbox.values, firings=[firing])

    def plain_output(self, task: Task, envelope: Envelope) -> Any:
        """The plain input."""
        return task.plain(envelope.firings[0].output)

    def skip_untriggered(self, task: Task, envelope: Envelope, output: Any) -> None:
        """Nothing: the ``output`` task does it."""


class AdkOutputOperator(AdkGraphOperator):
    """Gives a workflow's output: that of the one terminal node that has one, checked as ADK checks it.

    Of a nested workflow it hands the output to the outer graph; routes inside do not leave it. Of the outermost one it is the
    last task.
    """

    custom_operator_name = "ADK workflow output"

    def receive(self, task: Task) -> Inbox:
        """Reads what the terminal nodes left.

        Raises:
            AirflowSkipException: Nothing of the workflow was triggered.
            EnvelopeError: What a task left cannot be used.
        """
        from adk_airflow.runtime import inbox

        tasks, workflow = self.spec.inner_tasks, self._workflow(task)
        reader = self.envelopes(task)
        found = inbox.read_back(workflow, self.spec.nodes or list(tasks), tasks, reader)
        if not found:
            raise AirflowSkipException(f"{task.where}: no node of workflow {workflow.name!r} was triggered")
        outputs = {name: found[tasks[name]].last_output(name) for name in self.spec.nodes if tasks[name] in found}
        task.received = {name: output for name, (has, output) in outputs.items() if has}
        return inbox.merge(found.values())

    def run(self, task: Task) -> RunResult:
        """The output, with what it triggers.

        Raises:
            WorkflowConfigurationError: Several terminal nodes have an output, as in ADK.
        """
        from adk_airflow.runtime.adk import graph
        from adk_airflow.runtime.adk.runner import RunResult

        result = RunResult(state=task.inbox.values)
        output = graph.workflow_output(self._workflow(task), task.received, ends_run=self._ends_run(task))
        if not self.spec.nested:
            result.firings = [Firing(self.spec.node, output)]
            return result
        branch, sub_branch = task.inbox.scopes["/".join((*self.spec.scope, self.spec.node))]
        own_branch = graph.branch_of_run(branch, sub_branch, self.spec.node, 0)
        result.firings = [graph.make_firing(task.source.workflow, self.spec.node, output, own_branch)]
        return result

    def _ends_run(self, task: Task) -> bool:
        """Whether no node comes after it, neither in the workflow around it nor in those around that."""
        if not self.spec.nested:
            return True
        from adk_airflow.runtime.adk import graph

        around = (*task.source.parents, task.source.workflow)
        return all(map(graph.is_terminal, around, (*self.spec.scope, self.spec.node)))

    def _workflow(self, task: Task) -> Any:
        """The workflow whose output it is."""
        return task.source.enter([self.spec.node]).workflow if self.spec.nested else task.source.workflow
