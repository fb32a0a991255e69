"""What the tasks ask of ADK's own graph and nodes: who comes next, what a schema accepts, how a branch is named."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from google.adk.workflow import DEFAULT_ROUTE, START, BaseNode, Workflow
from google.adk.workflow._workflow import get_common_branch_prefix

from adk_airflow.runtime.wire.envelope import Firing


def find_node(workflow: Workflow, name: str) -> BaseNode:
    """The node ``name`` of ``workflow``. Raises KeyError when there is none."""
    assert workflow.graph is not None
    for node in workflow.graph.nodes:
        if node.name == name:
            return node
    raise KeyError(name)


def parallel_worker_of(node: BaseNode) -> Any:
    """ADK's parallel worker inside ``node`` (``node(..., parallel_worker=True)`` in any spelling), or None."""
    from google.adk.workflow._parallel_worker import _ParallelWorker

    if isinstance(node, _ParallelWorker):
        return node
    inner = getattr(node, "_inner_node", None)
    return inner if isinstance(inner, _ParallelWorker) else None


def body_of(node: BaseNode) -> BaseNode:
    """What a parallel worker runs for each item; any other node itself."""
    worker = parallel_worker_of(node)
    body: BaseNode = node if worker is None else worker._node
    return body


def function_of(node: BaseNode) -> Callable[..., Any] | None:
    """The function of a function node; None of any other."""
    function: Callable[..., Any] | None = getattr(node, "_func", None)
    return function


def fingerprint(workflow: Workflow) -> str:
    """A text that is another when the workflow's own nodes or edges are: their names, classes and routes."""
    assert workflow.graph is not None
    nodes = [(node.name, type(node).__name__, waits_for_all(node), runs_others(node)) for node in workflow.graph.nodes]
    edges = [(edge.from_node.name, edge.to_node.name, edge.route) for edge in workflow.graph.edges]
    return hashlib.sha256(repr((nodes, edges)).encode()).hexdigest()[:16]


def has_own_run(workflow: Workflow) -> bool:
    """Whether the workflow is of a class that runs its graph in its own way."""
    return type(workflow)._run_impl is not Workflow._run_impl


def runs_others(node: BaseNode) -> bool:
    """Whether the node is there to run other nodes: a nested workflow, or a parallel worker."""
    return isinstance(node, Workflow) or parallel_worker_of(node) is not None


def without_wrapper(error: Exception) -> Exception:
    """The error that a node failed with, without ADK's wrapper in its context: a log would end with that, not the cause."""
    from google.adk.workflow._errors import DynamicNodeFailError

    if isinstance(error.__context__, DynamicNodeFailError):
        error.__context__ = None
    return error


def waits_for_all(node: BaseNode) -> bool:
    """Whether the node is a join: it runs when all its predecessors have."""
    return bool(node._requires_all_predecessors)


def static_node(root: BaseNode, path: str) -> tuple[str, BaseNode]:
    """The node of the graph that a node run belongs to: its own, or the one that made it at run time.

    Args:
        root: The outermost workflow, or an agent.
        path: ADK's path of the run, such as ``wf@1/inner@1/ask@2``.

    Returns:
        The path of that node's run, which is ``path`` or a beginning of it, and the node.
    """
    segments = path.split("/")
    found, node = segments[:1], root
    for segment in segments[1:]:
        name = segment.rpartition("@")[0]
        worker = parallel_worker_of(node)
        graph = getattr(node, "graph", None)
        inside = [worker._node] if worker is not None else graph.nodes if graph is not None else []
        inner = next((child for child in inside if child.name == name), None)
        if inner is None:
            break
        found, node = [*found, segment], inner
    return "/".join(found), node


def unroutable(workflow: Workflow, name: str, route: Any) -> str:
    """What to say of a node after which nothing runs, although it has edges: the route that it emitted is that of none.

    ADK ends that way without an error.

    Args:
        workflow: The workflow.
        name: The node.
        route: The route, or a list of them; None for none, of which nothing is said.

    Returns:
        A sentence; empty where a node follows, or none could.
    """
    assert workflow.graph is not None
    edges = [edge for edge in workflow.graph.edges if edge.from_node.name == name]
    if route is None or not edges or any(edge.route in (None, DEFAULT_ROUTE) for edge in edges):
        return ""
    routes = [one for edge in edges for one in (edge.route if isinstance(edge.route, list) else [edge.route])]
    if any(one in routes for one in (route if isinstance(route, list) else [route])):
        return ""
    known = ", ".join(map(repr, dict.fromkeys(routes)))
    return (
        f"workflow {workflow.name!r}, node {name!r} emitted route {route!r}, and its edges have the routes {known}: nothing"
        " runs after it. Correct the route, or add an edge for DEFAULT_ROUTE."
    )


def unroutable_run(root: Workflow, path: str, route: Any) -> str:
    """``unroutable`` of a node run.

    Args:
        root: The outermost workflow.
        path: ADK's path of the run, such as ``wf@1/inner@1/ask@2``.
        route: The route that it emitted.
    """
    around, _, segment = path.rpartition("/")
    found, workflow = static_node(root, around)
    if found != around or not isinstance(workflow, Workflow) or workflow.graph is None:
        return ""  # a node that another one made at run time
    return unroutable(workflow, segment.rpartition("@")[0], route)


def worker_items(node: BaseNode, node_input: Any) -> list[Any]:
    """The list that ADK's parallel worker ``node`` makes of its input: a list as it is, anything else as one item."""
    from google.adk.workflow._parallel_worker import _unwrap_content_input
    from google.genai import types

    worker = parallel_worker_of(node)
    node_input = node._validate_input_data(node_input)
    if isinstance(node_input, types.Content):
        node_input = _unwrap_content_input(node_input, worker._node)
    return node_input if isinstance(node_input, list) else [node_input]


def start_input(workflow: Workflow, given: Any) -> Any:
    """What START hands to its successors: what the workflow was given, validated by its ``input_schema``."""
    return workflow._validate_input_data(given)


def read_structured(schema: Any, text: str) -> Any:
    """The data that an agent's answer holds, as ADK puts it into state: a model as a dict, without what is None.

    Raises:
        ValidationError: The text does not fit the schema.
    """
    from google.adk.utils._schema_utils import validate_schema

    return validate_schema(schema, text)


def start_triggers_sub_branches(workflow: Workflow) -> bool:
    """Whether ADK gives START's successors a branch of their own (it has several edges)."""
    return len(start_successors(workflow)) > 1


def common_branch(branches: Sequence[str | None]) -> str:
    """ADK's branch of a join over ``branches``."""
    return get_common_branch_prefix([branch or "" for branch in branches])


def branch_segments(branch: str | None) -> tuple[str, ...]:
    """The parts of ADK's branch, from the outermost on; none for the branch of a root."""
    from google.adk.events._branch_path import _BranchPath

    return tuple(_BranchPath.from_string(branch).segments)


def is_terminal(workflow: Workflow, name: str) -> bool:
    """Whether no edge leads on from the node ``name``."""
    assert workflow.graph is not None
    return all(edge.from_node.name != name for edge in workflow.graph.edges)


def start_successors(workflow: Workflow) -> tuple[str, ...]:
    """Whom START triggers, in ADK's order."""
    assert workflow.graph is not None
    return tuple(edge.to_node.name for edge in workflow.graph.edges if edge.from_node.name == START.name)


def branch_of_run(branch: str | None, sub_branch: bool, name: str, firing: int) -> str | None:
    """ADK's branch of the ``firing``-th run (from 0) of node ``name``, given the branch and kind of its trigger."""
    from google.adk.events._branch_path import _BranchPath

    if not sub_branch:
        return branch
    return str(_BranchPath.create_sub_branch(branch, name=name, run_id=str(firing + 1)))


def make_firing(workflow: Workflow, node: str, output: Any, branch: str | None) -> Firing:
    """The firing of a node that ran in several tasks and emits no route: whom ADK's own graph triggers next."""
    assert workflow.graph is not None
    following = workflow.graph.get_next_pending_nodes(node_name=node, routes_to_match=None)
    return Firing(node, output, None, branch, tuple(following))


def validate_worker_output(node: BaseNode, outputs: list[Any]) -> Any:
    """The parallel worker's output as ADK would accept it."""
    return node._validate_output_data(outputs)


def workflow_output(workflow: Workflow, outputs: dict[str, Any], *, ends_run: bool) -> Any:
    """The workflow's output from the outputs of its terminal nodes (only those that have one).

    Args:
        workflow: The workflow.
        outputs: By node name.
        ends_run: No node comes after it: the output is what ADK's last event holds, as the node gave it, only checked. Else
            it is what the next nodes find, as the ``output_schema`` makes it.

    Raises:
        WorkflowConfigurationError: More than one terminal node has an output, as in ADK.
        ValidationError: The output does not fit the ``output_schema``.
    """
    from google.adk.workflow._errors import WorkflowConfigurationError

    if len(outputs) > 1:
        raise WorkflowConfigurationError(
            f"Workflow {workflow.name}: multiple terminal nodes produced output ({', '.join(sorted(outputs))})."
            " A workflow must have at most one terminal output."
        )
    output = next(iter(outputs.values()), None)
    validated = workflow._validate_output_data(output)
    return output if ends_run else validated
