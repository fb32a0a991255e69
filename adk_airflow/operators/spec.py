"""What a task stands for in the graph of its workflow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class TaskSpec:
    """What the translator tells an operator about its place; none of it is a user's to give.

    Attributes:
        workflow: Reference to the workflow: ``package.module:attribute``, or what ``runtime.source.register`` returned.
        app_name: Name of the ADK App where the user gave none: artifacts and memory are kept under it.
        node: Name of the node that the task runs or serves; of a region its first; of the workflow's output the workflow's.
        kind: ADK's kind of the node, shown as the operator's name in the UI.
        scope: For a node of a nested workflow: the names of the workflows on the way to it, without the outermost.
        starts: START has an edge to the node, so the run's input and initial state enter here.
        nested: For an output task: the workflow is a nested one, and the task has a place in the graph around it.
        nodes: The nodes that run in the task, in ADK's order; of an output task the terminal nodes of its workflow.
        output_tasks: For each node of the same workflow the full id of the task that leaves its output; of a nested one START
            included. One mapping for all its tasks.
        skips: For each node that only this task triggers, the full id of its first task: skipped when it is not triggered.
        first_tasks: Of a task that START and other nodes trigger: the full ids of the first tasks of the nodes that only START
            triggers.
        inner_tasks: Of an output task: as ``output_tasks``, for the nodes of its workflow.
        items_task: Of the tasks of a parallel worker: full id of the one that makes the list.
        run_task: Of the last task of a parallel worker: full id of the mapped one.
        shares: For each budget of the task, by the path of the node that has it, the full ids of the tasks that spend it, too;
            of the empty path the run's.
        ends_run: The task leaves the workflow's output.
        fingerprint: Of the workflow's graph, if the DAG was made without importing the workflow.
    """

    workflow: str
    app_name: str
    node: str
    kind: str = ""
    scope: tuple[str, ...] = ()
    starts: bool = False
    nested: bool = False
    nodes: tuple[str, ...] = ()
    output_tasks: Mapping[str, str] = field(default_factory=dict)
    skips: Mapping[str, str] = field(default_factory=dict)
    first_tasks: tuple[str, ...] = ()
    inner_tasks: Mapping[str, str] = field(default_factory=dict)
    items_task: str = ""
    run_task: str = ""
    shares: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ends_run: bool = False
    fingerprint: str = ""
