"""The rules: what each node of a Graph becomes in Airflow. ``docs/translation.md`` gives them as a table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from adk_airflow.errors import NodeOverrideError, UnsupportedWorkflowError
from adk_airflow.translator import overrides
from adk_airflow.translator.graph import START, Graph, Node
from adk_airflow.translator.parts import find_parts, is_loop
from adk_airflow.translator.plan import Plan, PlannedTask, Upstream
from adk_airflow.translator.warn import warnings_for

RESULT = "workflow_result"
MODES = ("tasks", "embedded")


def make_plan(graph: Graph, *, mode: str, nodes: Mapping[str, Mapping[str, Any]]) -> Plan:
    """Decides what the workflow becomes.

    Args:
        graph: The workflow's graph.
        mode: ``tasks`` or ``embedded``.
        nodes: Per node name: operator arguments; ``mode="embedded"`` to run the node together with its embedded
            neighbours in one task; for a parallel worker also ``mode="mapped"`` and ``batch_size`` (items a mapped task
            runs, at least 1); for a node of a loop ``max_iterations``.
    """
    if mode not in MODES:
        raise NodeOverrideError(f"workflow {graph.workflow!r}: mode {mode!r} is none of {', '.join(MODES)}")
    overrides.check(graph, nodes)
    if mode == "embedded":
        return _embedded(graph)
    if graph.own_run:
        raise UnsupportedWorkflowError(
            f"workflow {graph.workflow!r} {graph.own_run}, so it can only run as a whole. Use mode='embedded'."
        )
    parts = find_parts(graph, embedded=[name for name, given in nodes.items() if given.get("mode") == "embedded"])
    by_name = {node.name: node for node in graph.nodes}
    ids = _task_ids(graph, parts)
    exits: dict[str, str] = {}
    entries: dict[str, str] = {}
    for part, task_id in zip(parts, ids, strict=True):
        mapped = len(part) == 1 and _mapped(by_name[part[0]], nodes.get(part[0], {}))
        for name in part:
            exits[name] = f"{task_id}.collect" if mapped else task_id
            entries[name] = f"{task_id}.items" if mapped else task_id
    tasks: list[PlannedTask] = []
    for part, task_id in zip(parts, ids, strict=True):
        arguments = overrides.of_part(graph, part, nodes)
        if exits[part[0]] != task_id:
            tasks += _worker_tasks(graph, by_name[part[0]], exits, arguments)
        else:
            tasks.append(_part_task(graph, [by_name[name] for name in part], task_id, exits, arguments))
    result = _add_result(graph, tasks, exits)
    return Plan(
        workflow=graph.workflow,
        description=graph.description,
        mode=mode,
        tasks=tuple(tasks),
        exits=exits,
        entries=entries,
        predecessors={node.name: _before(graph, node.name) for node in graph.nodes},
        result=result,
        max_active_tasks=graph.max_concurrency,
        warnings=tuple(warnings_for(graph, parts)),
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


def _task_ids(graph: Graph, parts: list[tuple[str, ...]]) -> list[str]:
    """A node's task has its name; a region that of its first node with a suffix."""
    taken = {node.name for node in graph.nodes}
    ids = []
    for part in parts:
        task_id = part[0]
        if len(part) > 1 or is_loop(graph, part):
            task_id += "_loop" if is_loop(graph, part) else "_region"
            while task_id in taken:
                task_id += "_"
        ids.append(task_id)
    return ids


def _before(graph: Graph, name: str) -> tuple[str, ...]:
    return tuple(source for source in graph.predecessors(name) if source != START)


def _mapped(node: Node, arguments: Mapping[str, Any]) -> bool:
    return node.kind == "parallel_worker" and not node.list_wide and arguments.get("mode", "mapped") == "mapped"


def _upstream(graph: Graph, part: Collection[str], exits: Mapping[str, str]) -> tuple[Upstream, ...]:
    """The tasks before a part, in ADK's order of edges, with the routes of the edges between them as labels."""
    labels: dict[str, list[str]] = {}
    for edge in graph.edges:
        if edge.target in part and edge.source not in part and edge.source != START:
            labels.setdefault(exits[edge.source], []).extend([edge.label] if edge.label else [])
    return tuple(Upstream(task_id, ", ".join(dict.fromkeys(texts))) for task_id, texts in labels.items())


def _trigger_rule(graph: Graph, part: Collection[str], upstream: tuple[Upstream, ...]) -> str:
    """With several tasks before it, a task finds out in its own process whether anything reached it; see ``runtime.inbox``."""
    started = [name for name in part if START in graph.predecessors(name)]
    joins = {node.name for node in graph.nodes if node.join}
    if not upstream or joins >= set(part):
        return "all_success"
    if set(started) - joins:
        return "none_failed"
    return "all_success" if len(upstream) == 1 else "none_failed_min_one_success"


def _part_task(
    graph: Graph, part: list[Node], task_id: str, exits: Mapping[str, str], arguments: dict[str, Any]
) -> PlannedTask:
    names = [node.name for node in part]
    upstream = _upstream(graph, names, exits)
    region = len(part) > 1 or is_loop(graph, names)
    first = part[0]
    if region:
        what = "a loop" if is_loop(graph, names) else "marked embedded"
        why = f"{what}: ADK's own engine runs {', '.join(names)} together in this task"
    elif first.kind == "workflow":
        why = "a nested workflow: ADK's own engine runs it in this task"
    elif first.kind == "parallel_worker":
        why = "its retry_config or timeout covers the whole list" if first.list_wide else "mode='embedded' for this node"
        why += ": ADK's own parallel worker runs all items in this task"
    else:
        why = ""
    return PlannedTask(
        task_id=task_id,
        node=first.name,
        kind="region" if region else "node",
        node_kind="region" if region else first.kind,
        trigger_rule=_trigger_rule(graph, names, upstream),
        upstream=upstream,
        nodes=tuple(names) if region else (),
        starts=any(START in graph.predecessors(name) for name in names),
        arguments=arguments,
        why=why,
        description=first.description if not region else "",
    )


def _worker_tasks(graph: Graph, node: Node, exits: Mapping[str, str], arguments: dict[str, Any]) -> list[PlannedTask]:
    """``items`` makes the list, ``run`` is mapped over it, ``collect`` puts the results in order (and gives [] for [])."""
    size = arguments.pop("batch_size", None)
    items, run, collect = (f"{node.name}.{part}" for part in ("items", "run", "collect"))
    upstream = _upstream(graph, [node.name], exits)
    return [
        PlannedTask(
            task_id=items,
            node=node.name,
            kind="items",
            node_kind=node.kind,
            trigger_rule=_trigger_rule(graph, [node.name], upstream),
            upstream=upstream,
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
    """The task whose output is the workflow's; one of its own where ADK checks or compares outputs at the end."""
    terminals = [node.name for node in graph.nodes if not graph.successors(node.name)]
    regions = {task.task_id for task in tasks if task.kind == "region"}
    if len(terminals) == 1 and not graph.checks_output and exits[terminals[0]] not in regions:
        return exits[terminals[0]]
    task_id = RESULT
    while task_id in exits or task_id in exits.values():
        task_id += "_"
    if not terminals:
        why = "no node is terminal, so the workflow has no output"
    else:
        why = "checks the workflow's output_schema" if len(terminals) == 1 else "picks the one output of several last nodes"
    last = dict.fromkeys(exits[name] for name in (terminals or [node.name for node in graph.nodes]))
    tasks.append(
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
