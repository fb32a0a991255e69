"""The two tasks around a nested workflow: ``input`` takes what the outer graph gives it, ``output`` gives back its output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.sdk.exceptions import AirflowSkipException

from adk_airflow.operators.node import AdkGraphOperator
from adk_airflow.runtime.inbox import START
from adk_airflow.runtime.wire.envelope import Firing


class AdkNestedInputOperator(AdkGraphOperator):
    """Validates a nested workflow's input and hands it to the successors of its START."""

    custom_operator_name = "ADK workflow input"

    def execute(self, context: Any) -> Any:
        """Returns the plain input."""
        from adk_airflow.runtime.adk import graph
        from adk_airflow.runtime.adk.runner import RunResult
        from adk_airflow.runtime.wire import json_form

        source = self.load()
        inbox = self.read_inbox(context, source)
        inner = source.enter([self.node]).workflow
        trigger = inbox.arrivals[0].trigger
        result = RunResult(state=inbox.plain_state())
        try:
            value = graph.start_input(inner, trigger.input)
            result.firings = [Firing(START, value, None, None, graph.start_successors(inner))]
        except Exception as error:
            result.error = error
        path = "/".join((*self.scope, self.node))
        self.leave(context, source, inbox, result, scopes={path: (trigger.branch, trigger.sub_branch)})
        return json_form.for_xcom(result.firings[0].output)


class AdkNestedOutputOperator(AdkGraphOperator):
    """Gives a nested workflow's output, checked as ADK checks it, to the outer graph; routes inside do not leave it.

    Args:
        terminals: The names of the nested workflow's terminal nodes.
        inner_exits: For each node of the nested workflow, START included, the full id of the task that speaks for it.
    """

    custom_operator_name = "ADK workflow output"

    def __init__(self, *, terminals: Sequence[str], inner_exits: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.terminals = list(terminals)
        self.inner_exits = dict(inner_exits)

    def execute(self, context: Any) -> Any:
        """Returns the nested workflow's plain output."""
        from adk_airflow.runtime import inbox
        from adk_airflow.runtime.adk import graph
        from adk_airflow.runtime.adk.runner import RunResult

        source = self.load()
        inner = source.enter([self.node]).workflow
        envelopes = inbox.read_back(
            inner,
            self.terminals or list(self.inner_exits),
            self.inner_exits,
            self.reader(context, self.states_of(context, self.inner_exits.values())),
        )
        if not envelopes:
            raise AirflowSkipException(f"workflow {source.workflow.name!r}: nested workflow {self.node!r} was not triggered")
        outputs = {}
        for name in self.terminals:
            if self.inner_exits[name] in envelopes:
                has, output = envelopes[self.inner_exits[name]].last_output(name)
                if has:
                    outputs[name] = output
        merged = inbox.merge(envelopes.values())
        result = RunResult(state=merged.plain_state())
        branch, sub_branch = merged.scopes["/".join((*self.scope, self.node))]
        try:
            output = graph.workflow_output(inner, outputs)
            run_branch = graph.branch_of_run(branch, sub_branch, self.node, 0)
            result.firings = [graph.make_firing(source.workflow, self.node, output, run_branch)]
        except Exception as error:
            result.error = error
        return self.hand_on(context, self.leave(context, source, merged, result))
