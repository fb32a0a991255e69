"""What makes a node of a workflow run, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.adk.workflow import Workflow


@dataclass(frozen=True)
class Trigger:
    """One reason to run a node: its input, and ADK's branch for the run.

    Attributes:
        input: The node's input.
        branch: The branch of the predecessor's run, or None for the workflow's own.
        sub_branch: True when the predecessor triggered several nodes at once.
    """

    input: Any
    branch: str | None = None
    sub_branch: bool = False


@dataclass(frozen=True)
class Arrival:
    """A trigger on its way to a node of the part.

    Attributes:
        target: The node it reaches.
        trigger: What it brings.
        source: For a join that waits for several predecessors: the one that arrives. None: the node runs for it at once.
    """

    target: str
    trigger: Trigger
    source: str | None = None


@dataclass(frozen=True)
class Item:
    """One item of a parallel worker's list: its place in the list, and its value."""

    index: int
    value: Any


@dataclass(frozen=True)
class Parent:
    """A workflow around a nested one, and the trigger that its node was run for."""

    workflow: Workflow
    trigger: Trigger
