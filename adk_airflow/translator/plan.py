"""The Plan: what a workflow becomes in Airflow, as plain data that can be printed, drawn, compared and cached."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

VERSION = 1

Mode = Literal["tasks", "embedded"]
NodeKind = Literal["function", "tool", "agent", "join", "parallel_worker", "workflow", "region", "result", "other"]
TaskKind = Literal["node", "region", "items", "item", "collect", "input", "output", "result", "workflow"]


# The arguments of operators that name something of Airflow's, and how it comes there.
_NEEDED = {
    "pool": "the pool {value!r}, without which tasks stay `scheduled`: airflow pools set {quoted} SLOTS DESCRIPTION",
    "queue": "a worker that listens to the queue {value!r}",
    "llm_conn_id": "the connection {value!r}",
}


def path_of(scope: tuple[str, ...], name: str) -> str:
    """The path of a node: the names of the nested workflows on the way to it, and its own."""
    return "/".join((*scope, name))


def argument_text(value: Any) -> str:
    """How an operator argument is shown: the same text in every process."""
    name = getattr(value, "__qualname__", None)
    return str(name) if name else re.sub(r" at 0x[0-9a-f]+", "", str(value))


def shorten(text: str, length: int) -> str:
    """The text on one line, cut to ``length`` characters."""
    text = " ".join(text.split())
    return text if len(text) <= length else f"{text[: length - 1]}…"


@dataclass(frozen=True)
class Upstream:
    """An Airflow dependency: the task before, and the label that the UI writes on the arrow."""

    task_id: str
    label: str = ""


@dataclass(frozen=True)
class PlannedTask:
    """One Airflow task.

    Attributes:
        task_id: Its id inside the DAG or task group.
        node: The ADK node that it runs or serves; the workflow's name for ``result`` and ``workflow``; the first of ``nodes``
            for a ``region``.
        kind: ``node`` (one node), ``region`` (several nodes that run together, such as a loop), ``items``, ``item``,
            ``collect`` (the three of a parallel worker), ``input``, ``output`` (around a nested workflow), ``result`` (picks
            the workflow's output) or ``workflow`` (all of it).
        node_kind: The word for the kind of the node: that of ``NodeKind``, or the name of a class of the user's.
        trigger_rule: Airflow's trigger rule.
        upstream: The tasks it waits for, in ADK's order of edges.
        nodes: For a region: the nodes that run in it. For ``output`` and ``result``: the terminal nodes. In ADK's order.
        scope: For a task of a nested workflow: the names of the workflows on the way to its node, without the outermost.
        starts: START has an edge to it: it reads the run's input itself.
        max_active: At most so many mapped instances at once, None for no limit.
        batch_size: For ``items`` and ``item``: how many items one mapped task runs; None for one, or as many as Airflow's
            limit asks.
        arguments: Operator arguments that the user gave for the node.
        why: Why it is so, where a reader would ask.
        description: What the node is for, in its own words, on a line.
        doc: What the task's page says of its node or nodes, as Markdown.
    """

    task_id: str
    node: str
    kind: TaskKind
    node_kind: str
    trigger_rule: str = "all_success"
    upstream: tuple[Upstream, ...] = ()
    nodes: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()
    starts: bool = False
    max_active: int | None = None
    batch_size: int | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""
    description: str = ""
    doc: str = ""

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the nodes that it runs."""
        return tuple(path_of(self.scope, name) for name in (self.nodes if self.kind == "region" else (self.node,)))


@dataclass(frozen=True)
class Plan:
    """What a workflow becomes.

    Attributes:
        workflow: The workflow's name.
        description: The workflow's description.
        mode: ``tasks`` or ``embedded``.
        tasks: In topological order.
        output_tasks: For each node, by its path (``inner/a`` in a nested workflow), the task that leaves its output. A nested
            workflow's START has one too.
        first_tasks: For each node, by its path, its first task.
        predecessors: For each node, by its path, the names of the nodes with an edge to it, in ADK's order; the outermost
            START is left out.
        result: The task whose ``return_value`` is the workflow's output.
        max_active_tasks: At most so many tasks of a run at once (``Workflow.max_concurrency``), None for no limit.
        warnings: What can differ from one ADK process for this graph.
    """

    workflow: str
    description: str
    mode: Mode
    tasks: tuple[PlannedTask, ...]
    output_tasks: Mapping[str, str]
    first_tasks: Mapping[str, str]
    predecessors: Mapping[str, tuple[str, ...]]
    result: str
    max_active_tasks: int | None = None
    warnings: tuple[str, ...] = ()

    @property
    def needs(self) -> tuple[str, ...]:
        """What has to be in Airflow before the tasks can run, a line each: pools, queues, connections that ``nodes`` names."""
        found: dict[tuple[str, str], list[str]] = {}
        for task in self.tasks:
            for name in _NEEDED:
                given = task.arguments.get(name)
                for value in given.values() if isinstance(given, Mapping) else [given]:
                    if isinstance(value, str) and value not in ("", "default_pool"):
                        found.setdefault((name, value), []).append(task.task_id)
        return tuple(
            f"{_NEEDED[name].format(value=value, quoted=shlex.quote(value))} (for {', '.join(tasks)})"
            for (name, value), tasks in found.items()
        )

    @property
    def result_node(self) -> str:
        """The node (or workflow) whose output is the workflow's."""
        return next(task.node for task in self.tasks if task.task_id == self.result)

    def to_json(self) -> str:
        """The plan as JSON text. Of an argument that JSON does not know, such as a callback, it holds the name."""
        tasks = [{**vars(task), "upstream": [vars(before) for before in task.upstream]} for task in self.tasks]
        data = {"plan": VERSION, **vars(self), "tasks": tasks, "needs": self.needs}
        return json.dumps(data, indent=2, ensure_ascii=False, default=argument_text)
