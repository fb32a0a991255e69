"""Paths of nodes: in a workflow ``inner/triage``, of their runs in ADK ``wf@1/inner@1/triage@2``."""

from __future__ import annotations


def node_of(path: str) -> str:
    """The path of a node in its workflow by ADK's of a run of it."""
    return "/".join(part.partition("@")[0] for part in path.split("/")[1:])


def is_below(path: str, node: str) -> bool:
    """Whether a path is that of a node, or of what it runs; all are below the empty path."""
    return not node or path == node or path.startswith(f"{node}/")
