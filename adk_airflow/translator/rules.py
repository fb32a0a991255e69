"""The rules: from a Graph to a Plan. Those for one kind of node are in ``kinds``; ``docs/translation.md`` has a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

from adk_airflow.errors import NodeOverrideError, UnsupportedWorkflowError
from adk_airflow.runtime.record import budget
from adk_airflow.translator import kinds, overrides
from adk_airflow.translator.graph import START, Graph
from adk_airflow.translator.kinds.base import free_name
from adk_airflow.translator.kinds.workflow import NestedWorkflow, Result
from adk_airflow.translator.plan import Mode, Plan, path_of
from adk_airflow.translator.regions import find_regions
from adk_airflow.translator.warn import human_input_warnings, warnings_for

_IN_ONE_TASK = {"llm_conn_id", "max_iterations", "durable", *budget.LIMITS}


def make_plan(
    graph: Graph,
    *,
    mode: Mode,
    nodes: Mapping[str, Mapping[str, Any]],
    llm_conn_id: str | None = None,
    limits: Mapping[str, Any] | None = None,
) -> Plan:
    """Decides what the workflow becomes.

    Args:
        graph: The workflow's graph.
        mode: ``tasks`` or ``embedded``.
        nodes: Per node, by name or path (``inner/a``): operator arguments; ``mode="embedded"`` to run the node together
            with its embedded neighbours in one task; for a parallel worker also ``mode="mapped"`` and ``batch_size`` (items a
            mapped task runs, at least 1); for a node of a loop ``max_iterations``.
        llm_conn_id: For every node that is given none.
        limits: What a run may spend: ``max_llm_calls``, ``max_tokens``, ``max_cost``.
    """
    if mode not in get_args(Mode):
        raise NodeOverrideError(f"workflow {graph.workflow!r}: mode {mode!r} is none of {', '.join(get_args(Mode))}")
    overrides.check(graph, nodes)
    limits = {name: limit for name, limit in (limits or {}).items() if limit is not None}
    if wrong := next(filter(None, (budget.problem(name, limit) for name, limit in limits.items())), ""):
        raise NodeOverrideError(f"workflow {graph.workflow!r}: {wrong}")
    nodes = {**nodes, **({"": limits} if limits else {})}
    if mode == "embedded":
        return _embedded(graph, nodes, llm_conn_id)
    if graph.one_task_reason:
        raise UnsupportedWorkflowError(
            f"workflow {graph.workflow!r} {graph.one_task_reason}, so it can only run as a whole. Use mode='embedded'."
        )
    making = _Making(graph.workflow, nodes)
    making.add_workflow(graph, (), {"llm_conn_id": llm_conn_id} if llm_conn_id else {})
    result = Result().add(graph, making)
    return Plan(
        workflow=graph.workflow,
        description=graph.description,
        mode=mode,
        tasks=tuple(making.tasks),
        output_tasks=making.output_tasks,
        first_tasks=making.first_tasks,
        predecessors=making.predecessors,
        result=result,
        max_active_tasks=graph.max_concurrency,
        warnings=(*making.warnings, *human_input_warnings(graph)),
    )


def _embedded(graph: Graph, nodes: Mapping[str, Mapping[str, Any]], llm_conn_id: str | None) -> Plan:
    """The whole workflow in one task."""
    if wrong := [path for path, arguments in nodes.items() if set(arguments) - _IN_ONE_TASK]:
        raise NodeOverrideError(
            f"workflow {graph.workflow!r}: mode='embedded' runs all nodes in one task, so there is nothing for nodes= to"
            f" change ({', '.join(wrong)}). Use default_args."
        )
    arguments = {
        **overrides.connections(nodes, (), llm_conn_id),
        **overrides.limits(nodes, (), ""),
        **overrides.durable(nodes, ()),
        **overrides.budgets(nodes),
    }
    name, task = graph.workflow, NestedWorkflow().whole(graph, arguments)
    return Plan(
        workflow=name,
        description=graph.description,
        mode="embedded",
        tasks=(task,),
        output_tasks={name: name},
        first_tasks={name: name},
        predecessors={name: ()},
        result=name,
        warnings=tuple(human_input_warnings(graph)),
    )


class _Making(kinds.Making):
    def add_workflow(self, graph: Graph, scope: tuple[str, ...], defaults: Mapping[str, Any]) -> None:
        """Adds the tasks of a workflow's nodes; for a nested one its input's task is there already."""
        options = {node.name: {**defaults, **self.options.get(path_of(scope, node.name), {})} for node in graph.nodes}
        embedded = [name for name, arguments in options.items() if arguments.get("mode") == "embedded"]
        regions = find_regions(graph, embedded=embedded)
        by_name = {node.name: node for node in graph.nodes}
        places = []
        for names in regions:
            nodes = tuple(by_name[name] for name in names)
            place = kinds.Place(graph, nodes, "", scope, defaults, options)
            places.append(replace(place, task_id=".".join((*scope, _task_id(place)))))
        for place in places:
            first, last = kinds.of_place(place).ends(place) or ("", "")
            for name in place.names:
                path = place.path(name)
                self.first_tasks[path] = f"{place.task_id}.{first}" if first else place.task_id
                self.output_tasks[path] = f"{place.task_id}.{last}" if last else place.task_id
                self.predecessors[path] = tuple(
                    source
                    for source in graph.predecessors(name)
                    if source != START or path_of(scope, START) in self.output_tasks
                )
        for place in places:
            kinds.of_place(place).plan(place, self)
        for text in warnings_for(graph, regions):
            self.warnings += [text] if text not in self.warnings else []


def _task_id(place: kinds.Place) -> str:
    """A node's task has its name; a region that of its first node with a suffix."""
    name = place.first.name
    if len(place.nodes) == 1 and not place.is_loop:
        return name
    return free_name(name + ("_loop" if place.is_loop else "_region"), {node.name for node in place.graph.nodes})
