"""The rules: what each node of a Graph becomes in Airflow. ``docs/translation.md`` gives them as a table."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from adk_airflow.errors import NodeOverrideError, UnsupportedWorkflowError
from adk_airflow.translator.graph import START, Graph, Node
from adk_airflow.translator.plan import Plan, PlannedTask, Upstream

RESULT = "workflow_result"
MODES = ("tasks", "embedded")
WORKER_MODES = ("mapped", "embedded")


def make_plan(graph: Graph, *, mode: str, nodes: Mapping[str, Mapping[str, Any]]) -> Plan:
    """Decides what the workflow becomes.

    Args:
        graph: The workflow's graph.
        mode: ``tasks`` or ``embedded``.
        nodes: Per node name: operator arguments, and for a parallel worker ``mode`` (``mapped`` or ``embedded``) and
            ``batch_size`` (items a mapped task runs, at least 1).
    """
    if mode not in MODES:
        raise NodeOverrideError(f"workflow {graph.workflow!r}: mode {mode!r} is none of {', '.join(MODES)}")
    _check_overrides(graph, nodes)
    if mode == "embedded":
        return _embedded(graph)
    if graph.own_retry_or_timeout:
        raise UnsupportedWorkflowError(
            f"workflow {graph.workflow!r} has a retry_config or timeout of its own, which covers the whole run in one"
            " process. Use mode='embedded', or move them to its nodes."
        )
    order = _topological(graph)
    by_name = {node.name: node for node in graph.nodes}
    workers = {node.name for node in graph.nodes if _mapped(node, nodes.get(node.name, {}))}
    exits = {name: f"{name}.collect" if name in workers else name for name in order}
    entries = {name: f"{name}.items" if name in workers else name for name in order}
    tasks: list[PlannedTask] = []
    for name in order:
        make = _worker_tasks if name in workers else _node_task
        tasks += make(graph, by_name[name], exits, dict(nodes.get(name, {})))
    result = _add_result(graph, tasks, exits)
    return Plan(
        workflow=graph.workflow,
        description=graph.description,
        mode=mode,
        tasks=tuple(tasks),
        exits=exits,
        entries=entries,
        predecessors={name: _before(graph, name) for name in order},
        result=result,
        max_active_tasks=graph.max_concurrency,
        warnings=tuple(_warnings(graph)),
    )


def _embedded(graph: Graph) -> Plan:
    name = graph.workflow
    task = PlannedTask(
        task_id=name,
        node=name,
        kind="workflow",
        node_kind="workflow",
        starts=True,
        why="mode='embedded': ADK's own engine runs the whole workflow in this task",
        description=graph.description,
    )
    return Plan(name, graph.description, "embedded", (task,), {name: name}, {name: name}, {name: ()}, result=name)


def _check_overrides(graph: Graph, nodes: Mapping[str, Mapping[str, Any]]) -> None:
    names = {node.name: node for node in graph.nodes}
    for name, arguments in nodes.items():
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else f" It has: {', '.join(sorted(names))}."
            raise NodeOverrideError(f"workflow {graph.workflow!r} has no node {name!r}.{hint}")
        worker = names[name].kind == "parallel_worker"
        for key in {"mode", "batch_size"} & arguments.keys():
            if not worker:
                raise NodeOverrideError(
                    f"workflow {graph.workflow!r}, node {name!r}: {key!r} is for parallel workers, this is a {names[name].kind}"
                )
        if arguments.get("mode", "mapped") not in WORKER_MODES:
            raise NodeOverrideError(
                f"workflow {graph.workflow!r}, node {name!r}: mode {arguments['mode']!r} is none of {', '.join(WORKER_MODES)}"
            )
        size = arguments.get("batch_size")
        if size is not None and (type(size) is not int or size < 1):
            raise NodeOverrideError(
                f"workflow {graph.workflow!r}, node {name!r}: batch_size {size!r} is not a whole number of 1 or more"
            )


def _topological(graph: Graph) -> list[str]:
    try:
        return list(TopologicalSorter({node.name: _before(graph, node.name) for node in graph.nodes}).static_order())
    except CycleError as error:
        cycle = " -> ".join(reversed(error.args[1]))
        raise UnsupportedWorkflowError(
            f"workflow {graph.workflow!r} has a loop ({cycle}), and an Airflow DAG cannot have one."
            " Use mode='embedded': ADK's own engine then runs the workflow in one task, exactly."
        ) from None


def _before(graph: Graph, name: str) -> tuple[str, ...]:
    return tuple(source for source in graph.predecessors(name) if source != START)


def _mapped(node: Node, arguments: Mapping[str, Any]) -> bool:
    return node.kind == "parallel_worker" and not node.list_wide and arguments.get("mode", "mapped") == "mapped"


def _upstream(graph: Graph, node: Node, exits: Mapping[str, str]) -> tuple[Upstream, ...]:
    labels = {
        source: ", ".join(
            edge.label for edge in graph.edges if (edge.source, edge.target) == (source, node.name) and edge.label
        )
        for source in _before(graph, node.name)
    }
    return tuple(Upstream(exits[source], label) for source, label in labels.items())


def _trigger_rule(graph: Graph, node: Node) -> str:
    """With several predecessors the task decides in its own process whether anything reached it; see ``runtime.inbox``."""
    before = _before(graph, node.name)
    if node.join or len(before) == 0:
        return "all_success"
    if START in graph.predecessors(node.name):
        return "none_failed"
    return "all_success" if len(before) == 1 else "none_failed_min_one_success"


def _node_task(graph: Graph, node: Node, exits: Mapping[str, str], arguments: dict[str, Any]) -> list[PlannedTask]:
    why = ""
    if node.kind == "workflow":
        why = "a nested workflow: ADK's own engine runs it in this task"
    elif node.kind == "parallel_worker":
        why = "its retry_config or timeout covers the whole list" if node.list_wide else "mode='embedded' for this node"
        why += ": ADK's own parallel worker runs all items in this task"
    arguments.pop("mode", None)
    arguments.pop("batch_size", None)
    return [
        PlannedTask(
            task_id=node.name,
            node=node.name,
            kind="node",
            node_kind=node.kind,
            trigger_rule=_trigger_rule(graph, node),
            upstream=_upstream(graph, node, exits),
            starts=START in graph.predecessors(node.name),
            arguments=arguments,
            why=why,
            description=node.description,
        )
    ]


def _worker_tasks(graph: Graph, node: Node, exits: Mapping[str, str], arguments: dict[str, Any]) -> list[PlannedTask]:
    """``items`` makes the list, ``run`` is mapped over it, ``collect`` puts the results in order (and gives [] for [])."""
    arguments.pop("mode", None)
    size = arguments.pop("batch_size", None)
    items, run, collect = (f"{node.name}.{part}" for part in ("items", "run", "collect"))
    return [
        PlannedTask(
            task_id=items,
            node=node.name,
            kind="items",
            node_kind=node.kind,
            trigger_rule=_trigger_rule(graph, node),
            upstream=_upstream(graph, node, exits),
            starts=START in graph.predecessors(node.name),
            batch_size=size,
            why="makes the list that the next task is mapped over",
        ),
        PlannedTask(
            task_id=run,
            node=node.name,
            kind="item",
            node_kind=node.inner_kind,
            upstream=(Upstream(items),),
            max_active=node.max_parallel_workers,
            arguments=arguments,
            description=node.description,
        ),
        PlannedTask(
            task_id=collect,
            node=node.name,
            kind="collect",
            node_kind=node.kind,
            # An empty list skips the mapped task, and the list of its results is then empty too.
            trigger_rule="none_failed_min_one_success",
            upstream=(Upstream(items), Upstream(run)),
            why="puts the results in the order of the list",
        ),
    ]


def _add_result(graph: Graph, tasks: list[PlannedTask], exits: Mapping[str, str]) -> str:
    """The task whose output is the workflow's; an own one where ADK checks or compares outputs at the end."""
    terminals = [node.name for node in graph.nodes if not graph.successors(node.name)]
    if len(terminals) == 1 and not graph.checks_output:
        return exits[terminals[0]]
    task_id = RESULT
    while task_id in exits:
        task_id += "_"
    why = "checks the workflow's output_schema" if len(terminals) == 1 else "picks the one output of several last nodes"
    tasks.append(
        PlannedTask(
            task_id=task_id,
            node=graph.workflow,
            kind="result",
            node_kind="workflow",
            trigger_rule="none_failed_min_one_success",
            upstream=tuple(Upstream(exits[name]) for name in terminals),
            why=why,
        )
    )
    return task_id


def _warnings(graph: Graph) -> list[str]:
    found = []
    if any(len(graph.successors(name)) > 1 for name in (START, *(node.name for node in graph.nodes))):
        found.append(
            "state-between-branches: parallel branches run in processes of their own: one does not see what the other"
            " writes to state until they join, and of two writes to one key the later predecessor's stays (reported)."
        )
        found.append("no-cancel-on-failure: when a branch fails, tasks of other branches that already run are not cancelled.")
    for node in graph.nodes:
        if node.join and any(len(_before(graph, name)) > 1 for name in _before(graph, node.name)):
            found.append(f"join-pairing: node {node.name!r} joins nodes that may run several times; they are paired in order.")
        if node.sees_history:
            found.append(f"agent-history: agent {node.name!r} sees the events of its own task only, not of earlier nodes.")
        if node.asks_people:
            found.append(f"human-input: node {node.name!r} asks a person, which fails in an Airflow task for now.")
    if graph.plugins:
        found.append(
            f"plugins-per-task: run callbacks of {', '.join(graph.plugins)} are called once per task, not once per run."
        )
    return found
