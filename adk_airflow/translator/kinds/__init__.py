"""The kinds of node, each in one place: how it is known, what tasks it becomes, how they are built, shown and spoken of.

Another kind is a subclass of ``Kind`` and an entry of ``KINDS``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_airflow.translator.kinds.base import Kind, Making, Place
from adk_airflow.translator.kinds.region import Region
from adk_airflow.translator.kinds.simple import Agent, Function, Join, Other, Tool
from adk_airflow.translator.kinds.worker import ParallelWorker
from adk_airflow.translator.kinds.workflow import NestedWorkflow, Result

if TYPE_CHECKING:
    from google.adk.workflow import BaseNode

    from adk_airflow.translator.plan import NodeKind, PlannedTask

__all__ = ["KINDS", "Kind", "Making", "Place", "kind_label", "match", "of_name", "of_place", "of_task"]

KINDS: tuple[Kind, ...] = (
    Function(), Tool(), Agent(), Join(), ParallelWorker(), NestedWorkflow(), Region(), Result(), Other(),
)  # fmt: skip
"""In the order of a drawing's legend."""

# A parallel worker may be of a class of another kind; whatever has a tool is asked last.
_ORDER: tuple[NodeKind, ...] = ("parallel_worker", "join", "workflow", "agent", "function", "tool")
_BY_NAME: dict[str, Kind] = {kind.name: kind for kind in KINDS}
_BY_TASK_KIND = {name: kind for kind in KINDS for name in kind.task_kinds}


def match(node: BaseNode) -> NodeKind:
    """The kind of an ADK node."""
    return next((name for name in _ORDER if _BY_NAME[name].matches(node)), "other")


def kind_label(node: BaseNode) -> str:
    """The word for the kind of an ADK node: the kind, or the name of its class."""
    kind = match(node)
    return type(node).__name__ if kind == "other" else kind


def of_name(name: str) -> Kind:
    """The kind with this name."""
    return _BY_NAME.get(name, _BY_NAME["other"])


def of_place(place: Place) -> Kind:
    """The kind that a region becomes tasks of."""
    return _BY_NAME["region"] if len(place.nodes) > 1 or place.is_loop else of_name(place.first.kind)


def of_task(task: PlannedTask) -> Kind:
    """The kind that planned a task, and builds it."""
    return _BY_TASK_KIND.get(task.kind) or of_name(task.node_kind)
