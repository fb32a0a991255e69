"""The arguments that a user gives per node: checked against the graph, and gathered for the task that runs the node."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from adk_airflow.errors import NodeOverrideError
from adk_airflow.runtime.record import budget
from adk_airflow.runtime.record.paths import is_below
from adk_airflow.translator import options
from adk_airflow.translator.graph import Graph, Node

_INTEGERS = {"batch_size", "max_iterations", "max_active_tis_per_dag", "max_active_tis_per_dagrun"}
# What also counts for a node inside a nested workflow that runs in one task.
_INSIDE = {"mode", "llm_conn_id", "max_iterations", "durable", *budget.LIMITS}


def check(graph: Graph, nodes: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuses what cannot be meant.

    Raises:
        NodeOverrideError: An unknown node (with the nearest right name), or an argument that does not fit the node.
    """
    where = f"workflow {graph.workflow!r}"
    if not isinstance(nodes, Mapping):
        raise NodeOverrideError(f"{where}: nodes takes a dict of arguments by node name, not {nodes!r}")
    found = dict(_by_path(graph, ""))
    for path, arguments in nodes.items():
        _refuse_unknown(path, found, where)
        problem = _problem(*found[path], arguments)
        if problem:
            raise NodeOverrideError(f"{where}, node {path!r}: {problem}")


def _by_path(graph: Graph, inside: str) -> Iterator[tuple[str, tuple[Graph, Node]]]:
    for node in graph.nodes:
        yield inside + node.name, (graph, node)
        if node.inner is not None:
            yield from _by_path(node.inner, f"{inside}{node.name}/")


def _refuse_unknown(path: Any, found: Collection[str], where: str) -> None:
    if path not in found:
        inside = [other for other in found if other.endswith(f"/{path}")]
        near = inside or difflib.get_close_matches(str(path), found, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else f" It has: {', '.join(sorted(found))}."
        raise NodeOverrideError(f"{where} has no node {path!r}.{hint}")


def _problem(graph: Graph, node: Node, arguments: Any) -> str:
    from adk_airflow.translator import kinds

    if not isinstance(arguments, Mapping):
        return f"takes a dict of arguments, not {arguments!r}"
    kind = kinds.of_name(node.kind)
    for key, value in arguments.items():
        if not isinstance(key, str):
            return f"{key!r} is not the name of an argument"
        if key not in options.NAMES:
            return options.refusal(key)
        for other in kinds.KINDS:
            if key in other.options and other is not kind:
                return f"{key} is for {other.plural}, this is a {node.label}"
        if key in budget.LIMITS and (problem := budget.problem(key, value)):
            return problem
        if key in _INTEGERS and (problem := _no_integer(key, value)):
            return problem
    if "mode" in arguments and arguments["mode"] not in kind.modes:
        return f"mode {arguments['mode']!r} is none of {', '.join(kind.modes)} (this is a {node.label})"
    if not isinstance(arguments.get("llm_conn_id", ""), str):
        return f"llm_conn_id {arguments['llm_conn_id']!r} is not the id of a connection"
    if not isinstance(arguments.get("durable", True), bool):
        return f"durable {arguments['durable']!r} is neither True nor False"
    most, given = node.max_parallel_workers, arguments.get("max_active_tis_per_dagrun", 0)
    if most is not None and given > most:
        return f"max_active_tis_per_dagrun={given} is more than the workflow allows: max_parallel_workers={most}"
    if "max_iterations" in arguments and node.name not in graph.in_loops:
        return "max_iterations is for nodes of a loop, and this one is in none"
    return ""


def _no_integer(key: str, value: Any) -> str:
    return "" if type(value) is int and value >= 1 else f"{key} {value!r} is not an integer of 1 or more"


def of_region(graph: Graph, region: Collection[str], nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The operator arguments for the task that runs the nodes of ``region`` (without ``mode`` and ``max_iterations``).

    Raises:
        NodeOverrideError: Two of its nodes were given different values for one argument.
    """
    found: dict[str, Any] = {}
    for name in region:
        for key, value in nodes.get(name, {}).items():
            if key in ("mode", "max_iterations", *budget.LIMITS) or (key in ("llm_conn_id", "durable") and len(region) > 1):
                continue  # see limits(), budgets(), connections() and durable()
            if key in found and found[key] != value:
                raise NodeOverrideError(
                    f"workflow {graph.workflow!r}: {', '.join(region)} run in one task, but {key!r} was given as"
                    f" {found[key]!r} and, for {name!r}, as {value!r}. Give one value."
                )
            else:
                found[key] = value
    return found


def check_unmapped(graph: Graph, region: Collection[str], given: Mapping[str, Mapping[str, Any]], why: str) -> None:
    """Refuses what is for items in tasks of their own, for nodes that all run in one task.

    Raises:
        NodeOverrideError: A node of ``region`` was given ``batch_size``, ``map_index_template`` or ``mode="mapped"``.
    """
    for name in region:
        asked = next((key for key in ("batch_size", "map_index_template") if key in given[name]), "")
        asked = asked or ("mode='mapped'" if given[name].get("mode") == "mapped" else "")
        if asked:
            raise NodeOverrideError(
                f"workflow {graph.workflow!r}, node {name!r}: {asked} is for items in tasks of their own, and here all items"
                f" run in one task ({why})"
            )


def check_inside(workflow: str, nodes: Mapping[str, Mapping[str, Any]], around: str) -> None:
    """Refuses arguments of nodes that have no task of their own, because the workflow ``around`` them runs in one task.

    Args:
        workflow: The outermost workflow's name.
        nodes: What the user gave, by path.
        around: The path of the nested workflow; empty for the outermost.

    Raises:
        NodeOverrideError: A node inside it was given an argument of a task.
    """
    for path, arguments in nodes.items():
        wrong = [key for key in arguments if key not in _INSIDE or (key == "mode" and arguments[key] != "embedded")]
        if path.startswith(f"{around}/") and wrong:
            raise NodeOverrideError(
                f"workflow {workflow!r}, node {path!r}: {', '.join(wrong)} is for a task, and all of {around!r} runs in one."
                f" Give it for {around!r}."
            )


def limits(nodes: Mapping[str, Mapping[str, Any]], paths: Collection[str], scope: str) -> dict[str, Any]:
    """The ``max_iterations`` of a task: a limit by path from the workflow that it belongs to; nothing when there is none.

    Args:
        nodes: What the user gave, by path.
        paths: The nodes that run in the task, with all that is inside them. Empty: all nodes.
        scope: The path of that workflow, with a slash at the end; empty for the outermost.
    """
    found = {
        path.removeprefix(scope): arguments["max_iterations"]
        for path, arguments in nodes.items()
        if arguments.get("max_iterations") is not None and (not paths or _is_of(path, paths))
    }
    return {"max_iterations": found} if found else {}


def budgets(nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The limits of what a task may spend, each by the path of the node that has it; nothing when there are none.

    Args:
        nodes: What the user gave for the nodes of the task and those around them, by path; under the empty one what the run may
            spend.
    """
    found = {name: {path: given[name] for path, given in nodes.items() if name in given} for name in budget.LIMITS}
    return {name: limits for name, limits in found.items() if limits}


def durable(nodes: Mapping[str, Mapping[str, Any]], paths: Collection[str]) -> dict[str, Any]:
    """The ``durable`` of a task in which a node is told to be done afresh; nothing when there is none.

    Args:
        nodes: As for ``limits``.
        paths: See there.
    """
    of_task = {path: given for path, given in nodes.items() if not paths or _is_of(path, paths)}
    afresh = [path for path, given in of_task.items() if not given.get("durable", True)]
    if not afresh:
        return {}
    whole = bool(paths) and set(paths) <= set(afresh)
    return {"durable": False if whole else dict.fromkeys(afresh, False)}


def _is_of(path: str, paths: Collection[str]) -> bool:
    """Whether the node is one of them, or inside one of them."""
    return any(is_below(path, own) for own in paths)


def connections(nodes: Mapping[str, Mapping[str, Any]], paths: Collection[str], default: str | None) -> dict[str, Any]:
    """The ``llm_conn_id`` of a task that runs several agents; nothing when there is none.

    Args:
        nodes: What the user gave, by path.
        paths: The nodes that run in the task, with all that is inside them. Empty: all nodes.
        default: For every node that is given none.

    Returns:
        One id where all have the same, else a dict by path with ``""`` for what has none of its own.
    """
    found = {"": default} if default else {}
    for path, arguments in nodes.items():
        if "llm_conn_id" in arguments and (not paths or _is_of(path, paths)):
            found[path] = arguments["llm_conn_id"]
    if paths and all(path in found for path in paths):
        found.pop("", None)
    if not found:
        return {}
    # One that only a node inside a nested workflow was given is not for the workflow's other agents.
    for_all = list(found) == [""] or (len(paths) == 1 and list(found) == list(paths))
    return {"llm_conn_id": next(iter(found.values())) if for_all else found}
