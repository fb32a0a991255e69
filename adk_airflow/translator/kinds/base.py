"""What every kind of node has: how it is known, what tasks it becomes, how they are built, and how they are spoken of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from adk_airflow.translator import overrides
from adk_airflow.translator.graph import START, Graph, Node
from adk_airflow.translator.plan import NodeKind, PlannedTask, TaskKind, Upstream, path_of
from adk_airflow.translator.regions import is_loop

if TYPE_CHECKING:
    from google.adk.workflow import BaseNode

    from adk_airflow.translator.build import Builder


@dataclass(frozen=True)
class Place:
    """A region of a graph on its way to its tasks.

    Attributes:
        graph: The workflow's graph.
        nodes: The nodes of the region, in ADK's order.
        task_id: Id of its task, or of the group of its tasks.
        scope: The names of the nested workflows on the way to it.
        defaults: Options for all nodes of the graph.
        options: What the user gave, with the defaults, by the names of the graph's nodes.
    """

    graph: Graph
    nodes: tuple[Node, ...]
    task_id: str
    scope: tuple[str, ...]
    defaults: Mapping[str, Any]
    options: Mapping[str, Mapping[str, Any]]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the nodes."""
        return tuple(node.name for node in self.nodes)

    @property
    def first(self) -> Node:
        """The first node: of most regions the only one."""
        return self.nodes[0]

    @property
    def is_loop(self) -> bool:
        """Whether edges between the nodes lead in a circle."""
        return is_loop(self.graph, self.names)

    @property
    def embedded(self) -> bool:
        """Whether the user wants the first node in one task."""
        return self.options[self.first.name].get("mode") == "embedded"

    def path(self, name: str) -> str:
        """The path of a node of this graph."""
        return path_of(self.scope, name)

    def starts(self) -> bool:
        """Whether the run's input enters here."""
        return not self.scope and any(START in self.graph.predecessors(name) for name in self.names)


@dataclass
class Making(ABC):
    """A plan in the making: the tasks so far, and which of them begin and end each node.

    Attributes:
        workflow: The outermost workflow's name.
        options: What the user gave, by the paths of nodes.
    """

    workflow: str
    options: Mapping[str, Mapping[str, Any]]
    tasks: list[PlannedTask] = field(default_factory=list)
    output_tasks: dict[str, str] = field(default_factory=dict)
    first_tasks: dict[str, str] = field(default_factory=dict)
    predecessors: dict[str, tuple[str, ...]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def upstream(self, place: Place) -> tuple[Upstream, ...]:
        """The tasks before a region, in ADK's order of edges, with the routes of the edges between them as labels."""
        labels: dict[str, list[str]] = {}
        inside = set(place.names)
        for edge in place.graph.edges_into(place.names):
            task_id = self.output_tasks.get(place.path(edge.source))
            if edge.source not in inside and task_id is not None:
                labels.setdefault(task_id, []).extend([edge.label] if edge.label else [])
        return tuple(Upstream(task_id, ", ".join(dict.fromkeys(texts))) for task_id, texts in labels.items())

    def options_inside(self, paths: Collection[str]) -> dict[str, Mapping[str, Any]]:
        """What the user gave for nodes at these paths, and for those inside them."""
        return {path: self.options[path] for around in paths for path in self._given_inside.get(around, ())}

    def budgets(self, paths: Collection[str]) -> dict[str, Any]:
        """The limits of what nodes at these paths may spend: their own, those of nodes inside them, and of what is around."""
        around = [path.rsplit("/", count)[0] for path in paths for count in range(1, path.count("/") + 1)]
        given = {path: self.options[path] for path in ("", *around) if path in self.options}
        return overrides.budgets({**given, **self.options_inside(paths)})

    @cached_property
    def _given_inside(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in self.options:
            around, _, _ = path.rpartition("/")
            found.setdefault(path, []).append(path)
            while around:
                found.setdefault(around, []).append(path)
                around, _, _ = around.rpartition("/")
        return found

    @abstractmethod
    def add_workflow(self, graph: Graph, scope: tuple[str, ...], defaults: Mapping[str, Any]) -> None:
        """Adds the tasks of a workflow's nodes; for a nested one its input's task is there already."""


class Kind:
    """One kind of node. The names, colours and words of all others are in their own modules.

    Attributes:
        name: The word for it in a plan.
        plural: For several of them, where it takes options of its own.
        colors: Fill and border of its boxes in a drawing.
        modes: What ``mode`` may be for a node of this kind.
        options: Of ``NodeOptions`` those that only nodes of this kind take.
        task_kinds: The kinds of task that it becomes and no other kind of node does.
    """

    name: ClassVar[NodeKind]
    plural: ClassVar[str] = ""
    colors: ClassVar[tuple[str, str]]
    modes: ClassVar[tuple[str, ...]] = ("embedded",)
    task_kinds: ClassVar[tuple[TaskKind, ...]] = ()
    options: ClassVar[frozenset[str]] = frozenset()

    def matches(self, node: BaseNode) -> bool:
        """Whether an ADK node is of this kind."""
        return False

    # -- planning ----------------------------------------------------------------------------------------

    def ends(self, place: Place) -> tuple[str, str] | None:
        """The names of the first and the last task of its group; None where it becomes one task."""
        return None

    def plan(self, place: Place, making: Making) -> None:
        """Adds its tasks."""
        making.tasks.append(self.one_task(place, making))

    def why(self, place: Place) -> str:
        """Why its task is as it is, where a reader would ask."""
        return ""

    def one_task(self, place: Place, making: Making, **more: Any) -> PlannedTask:
        """The task in which all its nodes run.

        Raises:
            NodeOverrideError: A node of it was given what is for several tasks.
        """
        paths = [place.path(name) for name in place.names]
        options = making.options_inside(paths)
        for path in paths:
            overrides.check_inside(making.workflow, options, path)
        why = self.why(place)
        overrides.check_unmapped(place.graph, place.names, place.options, why)
        upstream = making.upstream(place)
        arguments = {
            **overrides.of_region(place.graph, place.names, place.options),
            **overrides.connections(options, paths, place.defaults.get("llm_conn_id")),
            **overrides.limits(options, paths, place.path("")),
            **overrides.durable(options, paths),
            **making.budgets(paths),
        }
        planned = PlannedTask(
            task_id=place.task_id,
            node=place.first.name,
            kind="node",
            node_kind=place.first.label,
            trigger_rule=trigger_rule(place, upstream),
            upstream=upstream,
            scope=place.scope,
            starts=place.starts(),
            arguments=arguments,
            why=why,
            description=place.first.description,
            doc=place.first.doc,
        )
        return PlannedTask(**{**vars(planned), **more})

    # -- building ----------------------------------------------------------------------------------------

    def operator(self, task: PlannedTask) -> type:
        """The class of the task's operator."""
        from adk_airflow.operators.graph import AdkNodeOperator

        return AdkNodeOperator

    def build(self, builder: Builder, task: PlannedTask, arguments: Mapping[str, Any], made: Mapping[str, Any]) -> Any:
        """Makes the task.

        Args:
            builder: Knows the plan.
            task: The planned task.
            arguments: The operator's arguments that do not depend on the kind.
            made: The tasks before it, by the ids of the plan.
        """
        return self.operator(task)(spec=builder.spec(task), **{**arguments, **task.arguments})

    # -- words -------------------------------------------------------------------------------------------

    def runs_several(self, task: PlannedTask) -> bool:
        """Whether ADK's own engine runs more than one node run in the task."""
        return False

    def notes(self, task: PlannedTask) -> list[str]:
        """What is special about the task, a line each."""
        if not task.why:
            return []
        return [f"embedded: {task.why}" if self.runs_several(task) else task.why]

    def subtitle(self, task: PlannedTask) -> str:
        """The second line of the task's box in a drawing."""
        return task.node_kind + (", embedded" if self.runs_several(task) else "")

    def tooltip(self, task: PlannedTask) -> str:
        """What the UI says of the group that the task belongs to; nothing from tasks that say nothing of it."""
        return ""


def trigger_rule(place: Place, upstream: tuple[Upstream, ...]) -> str:
    """With several tasks before it, a task finds out in its own process whether anything reached it; see ``runtime.inbox``.

    A join with several tasks before it must not be ``all_success``: Airflow would skip it as soon as one of them is
    skipped, and a failure of another one, which comes later, would be lost behind the skip.
    """
    started = not place.scope and any(START in place.graph.predecessors(node.name) for node in place.nodes if not node.join)
    if upstream and started:
        return "none_failed"
    return "all_success" if len(upstream) < 2 else "none_failed_min_one_success"


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, with underscores behind it as long as it is taken."""
    while name in taken:
        name += "_"
    return name
