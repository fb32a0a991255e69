"""Workflows: a nested one as a task group, or in one task; the outermost one in one task; its output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from adk_airflow.translator import overrides
from adk_airflow.translator.graph import START, Graph
from adk_airflow.translator.kinds.base import Kind, Making, Place, free_name, trigger_rule
from adk_airflow.translator.plan import PlannedTask, Upstream, path_of

if TYPE_CHECKING:
    from google.adk.workflow import BaseNode

    from adk_airflow.translator.build import Builder

RESULT = "workflow_result"


class NestedWorkflow(Kind):
    """A workflow as a node of another: ``input``, its nodes, ``output``; or all of it in one task."""

    name = "workflow"
    colors = ("#cffafe", "#0e7490")
    task_kinds = ("input", "output", "workflow")

    def matches(self, node: BaseNode) -> bool:
        """Whether an ADK node is of this kind."""
        from google.adk.workflow import Workflow

        return isinstance(node, Workflow)

    def ends(self, place: Place) -> tuple[str, str] | None:
        """The names of the first and the last task of its group; None where it runs in one task."""
        inner = place.first.inner
        if place.embedded or inner is None or self.why_in_one_task(place):
            return None
        taken = {node.name for node in inner.nodes}
        return free_name("input", taken), free_name("output", taken)

    def why_in_one_task(self, place: Place) -> str:
        """Why it runs in one task whatever the user wants, or nothing."""
        inner = place.first.inner
        if inner is None:
            return "has no graph"
        if inner.one_task_reason:
            return inner.one_task_reason
        if inner.max_concurrency is not None:
            return "has a max_concurrency of its own"
        return "may run several times" if place.first.name in place.graph.concurrency.repeating() else ""

    def why(self, place: Place) -> str:
        """Why it runs in one task."""
        reason = self.why_in_one_task(place) or "is marked embedded"
        return f"a nested workflow that {reason}: ADK's own engine runs it in this task"

    def plan(self, place: Place, making: Making) -> None:
        """Adds its tasks."""
        node, inner, ends = place.first, place.first.inner, self.ends(place)
        if ends is None or inner is None:
            making.tasks.append(self.one_task(place, making))
            return
        path, upstream, inside = place.path(node.name), making.upstream(place), (*place.scope, node.name)
        making.tasks.append(
            PlannedTask(
                task_id=making.first_tasks[path],
                node=node.name,
                kind="input",
                node_kind=self.name,
                trigger_rule=trigger_rule(place, upstream),
                upstream=upstream,
                scope=place.scope,
                starts=place.starts(),
                why="Takes the nested workflow's input.",
                description=node.description,
                doc=node.doc,
            )
        )
        making.output_tasks[path_of(inside, START)] = making.first_tasks[path]
        making.add_workflow(inner, inside, overrides.of_region(place.graph, place.names, place.options))
        terminals = inner.terminals()
        last = [making.output_tasks[path_of(inside, name)] for name in (terminals or [other.name for other in inner.nodes])]
        making.tasks.append(
            PlannedTask(
                task_id=making.output_tasks[path],
                node=node.name,
                kind="output",
                node_kind=self.name,
                # The input ran, so this runs too, also when routes inside led nowhere: its output is then None, as in ADK.
                trigger_rule="none_failed_min_one_success",
                upstream=tuple(Upstream(task_id) for task_id in dict.fromkeys([making.first_tasks[path], *last])),
                nodes=tuple(terminals),
                scope=place.scope,
                why="Gives the nested workflow's output.",
            )
        )

    def whole(self, graph: Graph, arguments: Mapping[str, Any]) -> PlannedTask:
        """The task in which the outermost workflow runs as a whole."""
        return PlannedTask(
            task_id=graph.workflow,
            node=graph.workflow,
            kind="workflow",
            node_kind=self.name,
            starts=True,
            arguments=arguments,
            why="mode='embedded': ADK's own engine runs the whole workflow in this task",
            description=graph.description,
            doc="\n\n".join([graph.description, *(f"### {node.name}\n\n{node.doc}".strip() for node in graph.nodes)]).strip(),
        )

    def operator(self, task: PlannedTask) -> type:
        """The class of the task's operator."""
        from adk_airflow.operators.nested import AdkNestedInputOperator, AdkOutputOperator
        from adk_airflow.operators.workflow import AdkWorkflowOperator

        own: dict[str, type] = {"input": AdkNestedInputOperator, "output": AdkOutputOperator, "workflow": AdkWorkflowOperator}
        return own.get(task.kind) or super().operator(task)

    def build(self, builder: Builder, task: PlannedTask, arguments: Mapping[str, Any], made: Mapping[str, Any]) -> Any:
        """Makes the task."""
        if task.kind != "workflow":
            return super().build(builder, task, arguments, made)
        operator: Any = self.operator(task)(workflow=builder.reference, **{**arguments, **task.arguments})
        operator.app_name, operator.ends_run = builder.app_name, True
        return operator

    def runs_several(self, task: PlannedTask) -> bool:
        """Where it runs in one task."""
        return task.kind in ("node", "workflow")

    def tooltip(self, task: PlannedTask) -> str:
        """What the UI says of the group."""
        return f"Nested workflow {task.node}" if task.kind == "input" else ""


class Result(Kind):
    """The workflow's output, where ADK checks or compares outputs at the end: a task of its own."""

    name = "result"
    colors = ("#ffffff", "#111827")
    task_kinds = ("result",)

    def add(self, graph: Graph, making: Making) -> str:
        """Adds its task if one is needed; gives the id of the task whose output is the workflow's."""
        terminals = graph.terminals()
        regions = {task.task_id for task in making.tasks if task.kind == "region"}
        if len(terminals) == 1 and not graph.checks_output and making.output_tasks[terminals[0]] not in regions:
            return making.output_tasks[terminals[0]]
        if not terminals:
            why = "no node is terminal, so the workflow has no output"
        elif len(terminals) == 1:
            why = "checks the workflow's output_schema"
        else:
            why = "picks the one output of several last nodes"
        task_id = free_name(RESULT, {task.task_id.partition(".")[0] for task in making.tasks})
        last = dict.fromkeys(making.output_tasks[name] for name in (terminals or [node.name for node in graph.nodes]))
        making.tasks.append(
            PlannedTask(
                task_id=task_id,
                node=graph.workflow,
                kind="result",
                node_kind="workflow",
                trigger_rule="none_failed_min_one_success",
                upstream=tuple(Upstream(before) for before in last),
                nodes=tuple(terminals),
                why=why,
            )
        )
        return task_id

    def operator(self, task: PlannedTask) -> type:
        """The class of the task's operator."""
        from adk_airflow.operators.nested import AdkOutputOperator

        return AdkOutputOperator

    def subtitle(self, task: PlannedTask) -> str:
        """The second line of the task's box in a drawing."""
        return self.name
