"""Reads an ADK Workflow into a Graph: names, kinds and edges, with no ADK object left in it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.adk.workflow import BaseNode, Workflow

    from adk_airflow.runtime.source import Source
    from adk_airflow.translator.concurrency import Concurrency
    from adk_airflow.translator.plan import NodeKind

START = "__START__"

Route = bool | int | str


@dataclass(frozen=True)
class Edge:
    """An edge of the workflow.

    Attributes:
        source: Name of the node it leaves, or ``__START__``.
        target: Name of the node it enters.
        routes: The routes that it stands for, typed; empty for a plain edge, which always fires.
        default: True for ADK's ``DEFAULT_ROUTE``.
    """

    source: str
    target: str
    routes: tuple[Route, ...] = ()
    default: bool = False

    @property
    def label(self) -> str:
        """What the UI writes on the edge: its routes, or nothing."""
        return "default" if self.default else ", ".join(str(route) for route in self.routes)

    @property
    def plain(self) -> bool:
        """Whether it always fires."""
        return not (self.routes or self.default)

    def fires_with(self, other: Edge) -> bool:
        """Whether one route fires it and another edge of the same node.

        A node may emit several routes in a list, which nobody knows before it runs: that is left out.
        """
        if self.plain or other.plain:
            return True
        return (self.default and other.default) or not set(self.routes).isdisjoint(other.routes)


@dataclass(frozen=True)
class Node:
    """A node of the workflow.

    Attributes:
        name: Its name, unique in the workflow.
        kind: Its kind; ``other`` for a class of the user's own.
        label: The word for its kind: the kind, or the name of that class.
        description: Its description or the first line of its function's docstring.
        doc: What its task's page says of it, as Markdown.
        join: It waits for all its predecessors.
        item_label: For a parallel worker: the word for the kind of the node that runs for each item.
        max_parallel_workers: For a parallel worker: how many items run at once at most, None for no limit.
        policy_covers_list: For a parallel worker: its own retry or timeout covers the whole list, not an item. (A node that is
            made with ``parallel_worker=True`` carries them itself *and* on the copy that runs per item.)
        reads_history: An agent that reads what earlier nodes said: one that is no LlmAgent, or is in chat mode.
        inner: For a nested workflow: its graph.
        questions: What it declares that may ask a person, a phrase each.
    """

    name: str
    kind: NodeKind
    label: str
    description: str = ""
    join: bool = False
    item_label: str = ""
    max_parallel_workers: int | None = None
    policy_covers_list: bool = False
    reads_history: bool = False
    inner: Graph | None = None
    questions: tuple[str, ...] = ()
    doc: str = ""


@dataclass(frozen=True)
class Graph:
    """A workflow as names and edges, in ADK's own order.

    Attributes:
        max_concurrency: How many nodes run at once at most, None for no limit.
        checks_output: It has an ``output_schema``.
        one_task_reason: Why it can only run as a whole, in one task; empty where its nodes can be tasks.
        plugins: The names of its App's plugins.
        fingerprint: Another text for other nodes or edges; see ``runtime.adk.graph.fingerprint``.
    """

    workflow: str
    description: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    max_concurrency: int | None = None
    checks_output: bool = False
    one_task_reason: str = ""
    plugins: tuple[str, ...] = ()
    fingerprint: str = ""

    def __getitem__(self, name: str) -> Node:
        return self.by_name[name]

    @cached_property
    def by_name(self) -> dict[str, Node]:
        """The nodes by their names."""
        return {node.name: node for node in self.nodes}

    @cached_property
    def _edges_into(self) -> dict[str, list[tuple[int, Edge]]]:
        found: dict[str, list[tuple[int, Edge]]] = {}
        for number, edge in enumerate(self.edges):
            found.setdefault(edge.target, []).append((number, edge))
        return found

    @cached_property
    def _edges_from(self) -> dict[str, list[Edge]]:
        found: dict[str, list[Edge]] = {}
        for edge in self.edges:
            found.setdefault(edge.source, []).append(edge)
        return found

    @cached_property
    def concurrency(self) -> Concurrency:
        """Which of its nodes may run at once."""
        from adk_airflow.translator.concurrency import Concurrency

        return Concurrency(self)

    @cached_property
    def in_loops(self) -> frozenset[str]:
        """The names of the nodes that edges lead back to."""
        from adk_airflow.translator.regions import find_regions, is_loop

        return frozenset(name for region in find_regions(self) if is_loop(self, region) for name in region)

    def inside(self, scope: Sequence[str]) -> Graph:
        """The graph of the workflow that is nested at ``scope``."""
        found = self
        for name in scope:
            found = found[name].inner or found
        return found

    def edges_into(self, names: Collection[str]) -> list[Edge]:
        """The edges that enter one of ``names``, in ADK's order."""
        found = [numbered for name in names for numbered in self._edges_into.get(name, ())]
        return [edge for _, edge in (sorted(found, key=itemgetter(0)) if len(names) > 1 else found)]

    def edges_from(self, name: str) -> Sequence[Edge]:
        """The edges that leave ``name``, in ADK's order."""
        return self._edges_from.get(name, ())

    def terminals(self) -> list[str]:
        """The nodes without outgoing edges, in ADK's order."""
        return [node.name for node in self.nodes if not self.edges_from(node.name)]

    def predecessors(self, name: str) -> tuple[str, ...]:
        """The nodes with an edge to ``name``, START included, each once, in ADK's order of edges."""
        return tuple(dict.fromkeys(edge.source for edge in self.edges_into([name])))

    def successors(self, name: str) -> tuple[str, ...]:
        """The nodes that an edge of ``name`` enters, each once, in ADK's order of edges."""
        return tuple(dict.fromkeys(edge.target for edge in self.edges_from(name)))


def read_graph(source: Source) -> Graph:
    """Reads the graph of a loaded workflow, and of those nested in it."""
    return _read_workflow(source.workflow, tuple(plugin.name for plugin in source.app.plugins))


def _read_workflow(workflow: Workflow, plugins: tuple[str, ...] = ()) -> Graph:
    from adk_airflow.runtime.adk.graph import fingerprint

    assert workflow.graph is not None
    _refuse_model_side_tools(workflow)
    return Graph(
        workflow=workflow.name,
        description=workflow.description,
        nodes=tuple(_read_node(node) for node in workflow.graph.nodes if node.name != START),
        edges=tuple(_read_edge(edge) for edge in workflow.graph.edges),
        max_concurrency=workflow.max_concurrency if (workflow.max_concurrency or 0) > 0 else None,
        checks_output=workflow.output_schema is not None,
        one_task_reason=_one_task_reason(workflow),
        plugins=plugins,
        fingerprint=fingerprint(workflow),
    )


def _refuse_model_side_tools(workflow: Workflow) -> None:
    """Refuses what would only fail when its task runs.

    Raises:
        UnsupportedToolError: A node is a tool that works only inside a model call.
    """
    from adk_airflow.runtime.adk.graph import body_of
    from adk_airflow.runtime.adk.tool_node import refuse_model_side

    assert workflow.graph is not None
    for node in workflow.graph.nodes:
        refuse_model_side(getattr(body_of(node), "tool", None), f"workflow {workflow.name!r}, node {node.name!r}")


def _one_task_reason(workflow: Workflow) -> str:
    """Why the workflow cannot be taken apart, or nothing."""
    from adk_airflow.runtime.adk.graph import has_own_run

    if workflow.retry_config is not None or workflow.timeout is not None:
        return "has a retry_config or timeout of its own, which covers the whole run"
    if has_own_run(workflow):
        return f"is of the class {type(workflow).__name__}, which runs its graph in its own way"
    return ""


def _read_edge(edge: Any) -> Edge:
    from google.adk.workflow import DEFAULT_ROUTE

    route = edge.route
    if route == DEFAULT_ROUTE:
        return Edge(edge.from_node.name, edge.to_node.name, default=True)
    routes = () if route is None else tuple(route) if isinstance(route, list) else (route,)
    return Edge(edge.from_node.name, edge.to_node.name, routes)


def _read_node(node: BaseNode) -> Node:
    from google.adk.workflow import Workflow

    from adk_airflow.runtime.adk.graph import body_of, parallel_worker_of, waits_for_all
    from adk_airflow.runtime.adk.may_ask import questions_of
    from adk_airflow.translator.kinds import kind_label, match
    from adk_airflow.translator.node_doc import doc_of

    worker, inner = parallel_worker_of(node), body_of(node)
    return Node(
        name=node.name,
        kind=match(node),
        label=kind_label(node),
        description=_description(inner),
        join=waits_for_all(node),
        item_label="" if worker is None else kind_label(inner),
        max_parallel_workers=None if worker is None else worker.max_parallel_workers,
        policy_covers_list=worker is not None and (node.retry_config is not None or node.timeout is not None),
        reads_history=match(inner) == "agent" and getattr(inner, "mode", None) not in ("single_turn", "task"),
        inner=_read_workflow(node) if isinstance(node, Workflow) and node.graph is not None else None,
        questions=tuple(questions_of(node)),
        doc=doc_of(node),
    )


def _description(node: BaseNode) -> str:
    from adk_airflow.runtime.adk.graph import function_of

    if node.description:
        return node.description
    tool: Any = getattr(node, "tool", None)
    if tool is not None and tool.description:
        return str(tool.description)
    function = function_of(node)
    doc = (function.__doc__ if function is not None else None) or ""
    return doc.strip().splitlines()[0] if doc.strip() else ""
