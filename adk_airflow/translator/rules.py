"""The rules: what each node of a Graph becomes in Airflow. ``docs/translation.md`` gives them as a table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from adk_airflow.errors import NodeOverrideError, UnsupportedWorkflowError
from adk_airflow.translator import overrides
from adk_airflow.translator.graph import START, Graph, Node
from adk_airflow.translator.plan import Plan, PlannedTask, Upstream, path_of
from adk_airflow.translator.regions import find_parts, is_loop
from adk_airflow.translator.warn import may_repeat, warnings_for

RESULT = "workflow_result"
_ENDS = {"worker": ("items", "collect"), "nested": ("input", "output")}
MODES = ("tasks", "embedded")


def make_plan(graph: Graph, *, mode: str, nodes: Mapping[str, Mapping[str, Any]], llm_conn_id: str | None = None) -> Plan:
    """Decides what the workflow becomes.

    Args:
        graph: The workflow's graph.
        mode: ``tasks`` or ``embedded``.
        nodes: Per node, by name or path (``inner/a``): operator arguments; ``mode="embedded"`` to run the node together
            with its embedded neighbours in one task; for a parallel worker also ``mode="mapped"`` and ``batch_size`` (items a
            mapped task runs, at least 1); for a node of a loop ``max_iterations``.
        llm_conn_id: For every node that is given none.
    """
    if mode not in MODES:
        raise NodeOverrideError(f"workflow {graph.workflow!r}: mode {mode!r} is none of {', '.join(MODES)}")
    overrides.check(graph, nodes)
    if mode == "embedded":
        if wrong := [path for path, arguments in nodes.items() if set(arguments) - {"llm_conn_id", "max_iterations"}]:
            raise NodeOverrideError(
                f"workflow {graph.workflow!r}: mode='embedded' runs all nodes in one task, so there is nothing for nodes= to"
                f" change ({', '.join(wrong)}). Use default_args."
            )
        arguments = {**overrides.connections(nodes, (), llm_conn_id), **overrides.limits(nodes, (), "")}
        return _embedded(graph, arguments)
    if graph.own_run:
        raise UnsupportedWorkflowError(
            f"workflow {graph.workflow!r} {graph.own_run}, so it can only run as a whole. Use mode='embedded'."
        )
    making = _Making(graph.workflow, nodes)
    making.add_workflow(graph, (), {"llm_conn_id": llm_conn_id} if llm_conn_id else {})
    result = _add_result(graph, making)
    return Plan(
        workflow=graph.workflow,
        description=graph.description,
        mode=mode,
        tasks=tuple(making.tasks),
        exits=making.exits,
        entries=making.entries,
        predecessors=making.predecessors,
        result=result,
        max_active_tasks=graph.max_concurrency,
        warnings=tuple(making.warnings),
    )


@dataclass
class _Making:
    """A plan in the making: the tasks so far, and where each node's envelope comes from."""

    workflow: str
    nodes: Mapping[str, Mapping[str, Any]]
    tasks: list[PlannedTask] = field(default_factory=list)
    exits: dict[str, str] = field(default_factory=dict)
    entries: dict[str, str] = field(default_factory=dict)
    predecessors: dict[str, tuple[str, ...]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def add_workflow(self, graph: Graph, scope: tuple[str, ...], defaults: Mapping[str, Any]) -> None:
        """Adds the tasks of a workflow's nodes; for a nested one, ``input`` is there already."""
        given = {node.name: {**defaults, **self.nodes.get(path_of(scope, node.name), {})} for node in graph.nodes}
        parts = find_parts(graph, embedded=[name for name, arguments in given.items() if arguments.get("mode") == "embedded"])
        ids = [".".join((*scope, task_id)) for task_id in _task_ids(graph, parts)]
        by_name = {node.name: node for node in graph.nodes}
        kinds = [_kind_of(graph, [by_name[name] for name in part], given) for part in parts]
        for part, task_id, kind in zip(parts, ids, kinds, strict=True):
            first, last = _ENDS.get(kind, ("", ""))
            taken = {node.name for node in (by_name[part[0]].inner or graph).nodes} if kind == "nested" else set()
            for name in part:
                path = path_of(scope, name)
                self.entries[path] = f"{task_id}.{_free(first, taken)}" if first else task_id
                self.exits[path] = f"{task_id}.{_free(last, taken)}" if last else task_id
                self.predecessors[path] = tuple(
                    source for source in graph.predecessors(name) if source != START or path_of(scope, START) in self.exits
                )
        for part, task_id, kind in zip(parts, ids, kinds, strict=True):
            arguments = overrides.of_part(graph, part, given)
            members = [by_name[name] for name in part]
            if kind == "part":
                paths = [path_of(scope, name) for name in part]
                for path in paths:
                    overrides.check_inside(self.workflow, self.nodes, path)
                arguments |= overrides.connections(self.nodes, paths, defaults.get("llm_conn_id"))
                arguments |= overrides.limits(self.nodes, paths, path_of(scope, ""))
            if kind == "worker":
                self.tasks += _worker_tasks(graph, members[0], task_id, self._upstream(graph, part, scope), scope, arguments)
            elif kind == "nested":
                self._add_nested(graph, members[0], scope, arguments)
            else:
                upstream = self._upstream(graph, part, scope)
                task = _part_task(graph, members, task_id, upstream, scope, arguments)
                overrides.check_unmapped(graph, part, given, task.why)
                self.tasks.append(task)
        for text in warnings_for(graph, parts, nested=bool(scope)):
            self.warnings += [text] if text not in self.warnings else []

    def _add_nested(self, graph: Graph, node: Node, scope: tuple[str, ...], arguments: dict[str, Any]) -> None:
        inner, inside, path = node.inner, (*scope, node.name), path_of(scope, node.name)
        assert inner is not None
        upstream = self._upstream(graph, (node.name,), scope)
        self.tasks.append(
            PlannedTask(
                task_id=self.entries[path],
                node=node.name,
                kind="input",
                node_kind="workflow",
                trigger_rule=_trigger_rule(graph, (node.name,), upstream),
                upstream=upstream,
                scope=scope,
                starts=not scope and START in graph.predecessors(node.name),
                why="Takes the nested workflow's input.",
                description=node.description,
            )
        )
        self.exits[path_of(inside, START)] = self.entries[path]
        self.add_workflow(inner, inside, arguments)
        terminals = inner.terminals()
        last = [self.exits[path_of(inside, name)] for name in (terminals or [node.name for node in inner.nodes])]
        self.tasks.append(
            PlannedTask(
                task_id=self.exits[path],
                node=node.name,
                kind="output",
                node_kind="workflow",
                # The input ran, so this runs too, also when routes inside led nowhere: its output is then None, as in ADK.
                trigger_rule="none_failed_min_one_success",
                upstream=tuple(Upstream(task_id) for task_id in dict.fromkeys([self.entries[path], *last])),
                nodes=tuple(terminals),
                scope=scope,
                why="Gives the nested workflow's output.",
            )
        )

    def _upstream(self, graph: Graph, part: Collection[str], scope: tuple[str, ...]) -> tuple[Upstream, ...]:
        """The tasks before a part, in ADK's order of edges, with the routes of the edges between them as labels."""
        labels: dict[str, list[str]] = {}
        for edge in graph.edges:
            task_id = self.exits.get(path_of(scope, edge.source))
            if edge.target in part and edge.source not in part and task_id is not None:
                labels.setdefault(task_id, []).extend([edge.label] if edge.label else [])
        return tuple(Upstream(task_id, ", ".join(dict.fromkeys(texts))) for task_id, texts in labels.items())


def _kind_of(graph: Graph, part: list[Node], given: Mapping[str, Mapping[str, Any]]) -> str:
    """``worker`` (three tasks), ``nested`` (a task group) or ``part`` (one task)."""
    node = part[0]
    if len(part) > 1 or is_loop(graph, [node.name]) or given[node.name].get("mode") == "embedded":
        return "part"
    if node.kind == "parallel_worker" and not node.list_wide:
        return "worker"
    return "nested" if node.kind == "workflow" and not why_whole(graph, node) else "part"


def why_whole(graph: Graph, node: Node) -> str:
    """Why a nested workflow runs in one task, or nothing when it becomes a task group."""
    if node.inner is None:
        return "has no graph"
    if node.inner.own_run:
        return node.inner.own_run
    if node.inner.max_concurrency is not None:
        return "has a max_concurrency of its own"
    return "may run several times" if may_repeat(graph, node.name) else ""


def _embedded(graph: Graph, arguments: dict[str, Any]) -> Plan:
    name = graph.workflow
    task = PlannedTask(
        task_id=name,
        node=name,
        kind="workflow",
        node_kind="workflow",
        starts=True,
        arguments=arguments,
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


def _free(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _trigger_rule(graph: Graph, part: Collection[str], upstream: tuple[Upstream, ...], nested: bool = False) -> str:
    """With several tasks before it, a task finds out in its own process whether anything reached it; see ``runtime.inbox``.

    A join with several tasks before it must not be ``all_success``: Airflow would skip it as soon as one of them is
    skipped, and a failure of another one, which comes later, would be lost behind the skip.
    """
    joins = {node.name for node in graph.nodes if node.join}
    started = not nested and any(START in graph.predecessors(name) for name in part if name not in joins)
    if upstream and started:
        return "none_failed"
    return "all_success" if len(upstream) < 2 else "none_failed_min_one_success"


def _part_task(
    graph: Graph,
    part: list[Node],
    task_id: str,
    upstream: tuple[Upstream, ...],
    scope: tuple[str, ...],
    arguments: dict[str, Any],
) -> PlannedTask:
    names = [node.name for node in part]
    region = len(part) > 1 or is_loop(graph, names)
    first = part[0]
    if region:
        what = "a loop" if is_loop(graph, names) else "marked embedded"
        why = f"{what}: ADK's own engine runs {', '.join(names)} together in this task"
    elif first.kind == "workflow":
        reason = why_whole(graph, first) or "is marked embedded"
        why = f"a nested workflow that {reason}: ADK's own engine runs it in this task"
    elif first.kind == "parallel_worker":
        why = "its retry_config or timeout covers the whole list" if first.list_wide else "marked embedded"
        why += ": ADK's own parallel worker runs all items in this task"
    else:
        why = ""
    return PlannedTask(
        task_id=task_id,
        node=first.name,
        kind="region" if region else "node",
        node_kind="region" if region else first.kind,
        trigger_rule=_trigger_rule(graph, names, upstream, bool(scope)),
        upstream=upstream,
        nodes=tuple(names) if region else (),
        scope=scope,
        starts=not scope and any(START in graph.predecessors(name) for name in names),
        arguments=arguments,
        why=why,
        description=_describe(graph, first) if not region else "",
    )


def _describe(graph: Graph, node: Node) -> str:
    if node.description or not node.join:
        return node.description
    return f"Waits for {', '.join(name for name in graph.predecessors(node.name) if name != START)}."


def _worker_tasks(
    graph: Graph,
    node: Node,
    task_id: str,
    upstream: tuple[Upstream, ...],
    scope: tuple[str, ...],
    arguments: dict[str, Any],
) -> list[PlannedTask]:
    """``items`` makes the list, ``run`` is mapped over it, ``collect`` puts the results in order (and gives [] for [])."""
    size = arguments.pop("batch_size", None)
    items, run, collect = (f"{task_id}.{part}" for part in ("items", "run", "collect"))
    return [
        PlannedTask(
            task_id=items,
            node=node.name,
            kind="items",
            node_kind=node.kind,
            trigger_rule=_trigger_rule(graph, [node.name], upstream, bool(scope)),
            upstream=upstream,
            scope=scope,
            starts=not scope and START in graph.predecessors(node.name),
            batch_size=size,
            why="Makes the list that the next task is mapped over: the list it is given, or one item if it is given no list.",
        ),
        PlannedTask(
            task_id=run,
            node=node.name,
            kind="item",
            node_kind=node.inner_kind,
            upstream=(Upstream(items),),
            scope=scope,
            max_active=node.max_parallel_workers,
            arguments=arguments,
            why=f"Runs once per item{f', at most {node.max_parallel_workers} at once' if node.max_parallel_workers else ''}.",
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
            scope=scope,
            why="Puts the results in the order of the list; an empty list, which skips the task before, gives an empty one.",
        ),
    ]


def _add_result(graph: Graph, making: _Making) -> str:
    """The task whose output is the workflow's; one of its own where ADK checks or compares outputs at the end."""
    terminals = graph.terminals()
    regions = {task.task_id for task in making.tasks if task.kind == "region"}
    if len(terminals) == 1 and not graph.checks_output and making.exits[terminals[0]] not in regions:
        return making.exits[terminals[0]]
    if not terminals:
        why = "no node is terminal, so the workflow has no output"
    else:
        why = "checks the workflow's output_schema" if len(terminals) == 1 else "picks the one output of several last nodes"
    task_id = _free(RESULT, {task.task_id.partition(".")[0] for task in making.tasks})
    last = dict.fromkeys(making.exits[name] for name in (terminals or [node.name for node in graph.nodes]))
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
