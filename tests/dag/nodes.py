"""Small nodes, of which the workflows of these tests are made."""

from __future__ import annotations

from typing import Any

from google.adk import Event
from google.adk.workflow import node


def const(name: str, value: Any) -> Any:
    """Gives the value."""
    return node(lambda: value, name=name)


def show(name: str) -> Any:
    """Gives its name and its input's repr."""

    def body(node_input: Any) -> Any:
        return f"{name}:{node_input!r}"

    return node(body, name=name)


def router(name: str, route: Any, output: Any = None) -> Any:
    """Takes the route."""
    return node(lambda: Event(route=route, output=output), name=name)
