"""A whole workflow in one task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from adk_airflow.operators.base import AdkInputOperator
from adk_airflow.operators.object_arguments import KEPT_ARGUMENTS, HidingPartial, hide, shown
from adk_airflow.runtime.record import budget

if TYPE_CHECKING:
    from adk_airflow.runtime.adk.runner import RunResult
    from adk_airflow.runtime.source import Source
    from adk_airflow.runtime.task import Task


class AdkWorkflowOperator(AdkInputOperator):
    """Runs a whole ADK workflow in one task, in ADK's own engine: loops and all, exactly as in-process.

    Args:
        workflow: ``"package.module:attribute"`` of a Workflow or App, imported in the task only; or such an object.
        input: The user's input: text or JSON data. None: the run's ``params["input"]``. Templated.
        state: The initial session state. None: the run's other params. Templated.
        session_id: An ADK session kept by ``[adk_airflow] session_service_uri``: a later run that gives the same id goes
            on in it. Templated. Empty: a session of the run's own.
        max_iterations: How often a node may run at most, by its name, or path (``inner/a``) in a nested workflow; one more
            fails with ``LoopLimitError``, which shows the last routes. None: no limit, as in ADK.
        max_llm_calls: As for every operator; a dict gives limits of nodes, by name or path, ``""`` that of the whole. So do
            ``max_tokens`` and ``max_cost``.

    Raises:
        WorkflowLoadError: In the task, of an object at once: there is no such workflow, or google-adk refuses it.
        NodeOverrideError: Likewise: ``max_iterations`` names a node that is not there, or is in no loop.
    """

    template_fields: Sequence[str] = (*AdkInputOperator.template_fields, "session_id")
    custom_operator_name = "ADK workflow"
    has_nodes = True
    adk_objects = ("workflow",)
    partial = HidingPartial()
    shallow_copy_attrs: Sequence[str] = KEPT_ARGUMENTS
    app_name = ""
    """Name of the ADK App where the user gave none. Empty: the DAG's id; ``AdkTaskGroup`` sets another."""

    def __init__(
        self,
        *,
        workflow: Any,
        session_id: str | None = None,
        max_iterations: Mapping[str, int] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.workflow = hide(workflow)
        self.session_id = session_id
        self.max_iterations = max_iterations or {}
        if not isinstance(workflow, str):
            self.load()

    def load(self) -> Source:
        """Imports the workflow, and google-adk with it."""
        from adk_airflow.runtime import source as sources

        workflow, app_name = shown(self.workflow), self.app_name or self.dag_id
        if isinstance(workflow, str):
            found = sources.load(workflow, app_name=app_name)
        else:
            described_as = str(getattr(workflow, "name", workflow))
            found = sources.resolve(workflow, described_as=described_as, app_name=app_name)
        if self.max_iterations:
            from adk_airflow.runtime.adk.max_iterations import check_max_iterations

            check_max_iterations(found.workflow, self.max_iterations, self.where(found))
        limits = {name: given for name in budget.LIMITS if isinstance(given := getattr(self, name), Mapping)}
        if limits:
            from adk_airflow.runtime.adk.max_iterations import node_paths

            budget.check(self.where(found), limits, nodes=node_paths(found.workflow))
        return found

    def name_of(self, source: Source) -> str:
        """The workflow's name."""
        return source.workflow.name

    def where(self, source: Source) -> str:
        """The workflow."""
        return f"workflow {source.workflow.name!r}"

    def run(self, task: Task) -> RunResult:
        """Runs the workflow to its end."""
        from adk_airflow.runtime.adk import engine

        task.session_id = self.session_id or ""
        run = task.adk_run()
        return task.watch(run, lambda run: engine.run_workflow(run, max_iterations=self.max_iterations))
