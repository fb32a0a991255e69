"""A whole workflow in one task, and the task that picks a workflow's output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adk_airflow.errors import WorkflowLoadError
from adk_airflow.operators.base import AdkOperator
from adk_airflow.operators.node import AdkGraphOperator
from adk_airflow.runtime.wire import json_form
from adk_airflow.runtime.wire.envelope import Envelope, Firing


class AdkWorkflowOperator(AdkOperator):
    """Runs a whole ADK workflow in one task, in ADK's own engine: loops and all, exactly as in-process.

    Args:
        workflow: ``"package.module:attribute"`` of a Workflow or App.
        input: The user's input: text or JSON data. None: the run's ``params["input"]``. Templated.
        state: The initial session state. None: the run's other params. Templated.
        session_id: An ADK session kept by ``[adk_airflow] session_service_uri``: a later run that gives the same id goes
            on in it. Templated. Empty: a session of the run's own.
        max_iterations: How often a node may run at most, by its name, or path (``inner/a``) in a nested workflow; one more
            fails with ``LoopLimitError``, which shows the last routes. None: no limit, as in ADK.
    """

    template_fields: Sequence[str] = (*AdkOperator.template_fields, "session_id")
    custom_operator_name = "ADK workflow"

    def __init__(
        self,
        *,
        workflow: str,
        node: str = "",
        session_id: str | None = None,
        max_iterations: Mapping[str, int] | None = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(workflow, str):
            raise WorkflowLoadError(
                f"AdkWorkflowOperator takes 'package.module:attribute', not a {type(workflow).__name__}."
                " For a workflow that is an object use AdkTaskGroup(workflow, mode='embedded')."
            )
        super().__init__(workflow=workflow, node=node or kwargs.get("task_id", ""), starts=True, **kwargs)
        self.session_id = session_id
        self.max_iterations = dict(max_iterations or {})

    def execute(self, context: Any) -> Any:
        """Returns the workflow's plain output; XCom ``adk`` holds the envelope."""
        from adk_airflow.runtime.adk import engine
        from adk_airflow.runtime.inbox import merge

        source = self.load()
        self.node = source.workflow.name
        start = self.start(context)
        assert start is not None
        inbox = merge([], start)
        result = self.await_shown(
            context,
            self.make_run(context, source, inbox, self.session_id or ""),
            lambda run: engine.run_workflow(run, max_iterations=self.max_iterations),
        )
        return self.plain_output(self.leave(context, source, inbox, result))


class AdkResultOperator(AdkGraphOperator):
    """Picks the output of the one terminal node that has one, and checks it against the workflow's ``output_schema``.

    Args:
        terminals: The names of the workflow's terminal nodes; ``exits`` names their tasks.
    """

    custom_operator_name = "ADK workflow output"

    def __init__(self, *, terminals: Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.terminals = list(terminals)

    def execute(self, context: Any) -> Any:
        """Returns the workflow's plain output.

        Raises:
            WorkflowConfigurationError: Several terminal nodes have an output, as in ADK.
        """
        from adk_airflow.runtime.adk import graph
        from adk_airflow.runtime.adk.runner import RunResult
        from adk_airflow.runtime.inbox import merge

        source = self.load()
        envelopes: dict[str, Envelope] = {}
        reader = self.reader(context, self.states_of(context, self.exits.values()))
        for task_id in dict.fromkeys(self.exits[name] for name in (self.terminals or self.exits)):
            text = reader(task_id)
            if text is not None:
                envelopes[task_id] = Envelope.loads(text, task=task_id)
        outputs: dict[str, Any] = {}
        for name in self.terminals:
            if self.exits[name] in envelopes:
                has, output = envelopes[self.exits[name]].last_output(name)
                if has:
                    outputs[name] = output
        inbox = merge(envelopes.values())
        result = RunResult(state=inbox.plain_state())
        try:
            output = graph.workflow_output(source.workflow, outputs)
        except Exception as error:
            result.error = error
            output = None
        result.firings = [Firing(self.node, output)]
        self.leave(context, source, inbox, result)
        return None if output is None else json_form.for_xcom(output)
