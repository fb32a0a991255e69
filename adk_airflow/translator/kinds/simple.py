"""Functions, tools, agents, joins and nodes of other classes: one node, one task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_airflow.translator.graph import START
from adk_airflow.translator.kinds.base import Kind, Making, Place

if TYPE_CHECKING:
    from google.adk.workflow import BaseNode


class Function(Kind):
    """A Python function."""

    name = "function"
    colors = ("#dbeafe", "#2563eb")

    def matches(self, node: BaseNode) -> bool:
        """Whether an ADK node is of this kind."""
        from google.adk.workflow import FunctionNode

        return isinstance(node, FunctionNode)


class Tool(Kind):
    """A tool as a fixed step."""

    name = "tool"
    colors = ("#dcfce7", "#15803d")

    def matches(self, node: BaseNode) -> bool:
        """Whether an ADK node is of this kind."""
        return hasattr(node, "tool")


class Agent(Kind):
    """An agent: ``LlmAgent``, ``SequentialAgent``, ..."""

    name = "agent"
    colors = ("#f3e8ff", "#9333ea")

    def matches(self, node: BaseNode) -> bool:
        """Whether an ADK node is of this kind."""
        from google.adk.agents.base_agent import BaseAgent

        return isinstance(node, BaseAgent)


class Join(Kind):
    """A ``JoinNode``, which waits for all its predecessors."""

    name = "join"
    colors = ("#e2e8f0", "#475569")

    def matches(self, node: BaseNode) -> bool:
        """Whether an ADK node is of this kind."""
        from google.adk.workflow import JoinNode

        return isinstance(node, JoinNode)

    def plan(self, place: Place, making: Making) -> None:
        """Adds its task."""
        before = ", ".join(name for name in place.graph.predecessors(place.first.name) if name != START)
        making.tasks.append(self.one_task(place, making, description=place.first.description or f"Waits for {before}."))


class Other(Kind):
    """A node of a class of its own; a plan calls it by the class's name."""

    name = "other"
    colors = ("#f5f5f4", "#78716c")
