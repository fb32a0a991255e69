"""Why google-adk refuses a workflow, an agent or an App, in a sentence.

Without pydantic's frame, and with one fault where that lists each of the forms which an edge could have had.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from google.adk.apps.app import App
from google.adk.tools.base_tool import BaseTool
from google.adk.workflow import BaseNode, Edge
from pydantic import ValidationError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_FORMS = "such as ('START', a, b), a fan-out ('START', (a, b)), or routes (a, {'yes': b, 'no': (c, d)})"


def reason(error: BaseException) -> str:
    """What a user reads after the name of what could not be made: ``is refused by google-adk: ...`` or ``fails: ...``."""
    if isinstance(error, ValidationError) and error.title in _titles():
        details = error.errors(include_url=False)
        given = details[0]["input"] if details else None
        name = f" (it is named {given['name']!r})" if isinstance(given, dict) and "name" in given else ""
        return f"is refused by google-adk{name}: {'; '.join(dict.fromkeys(_faults(error.title, details)))}"
    if isinstance(error, SyntaxError):
        return f"fails: {type(error).__name__}: {error.msg}"
    of_adk = type(error).__module__.startswith("google.adk")
    return f"{'is refused by google-adk' if of_adk else 'fails'}: {type(error).__name__}: {error}"


def is_refusal(error: BaseException) -> bool:
    """Whether it is a ``ValidationError`` of one of google-adk's own classes."""
    return isinstance(error, ValidationError) and error.title in _titles()


def _titles() -> set[str]:
    def below(kind: type[Any]) -> Iterator[str]:
        yield kind.__name__
        for sub in kind.__subclasses__():
            yield from below(sub)

    return {App.__name__, Edge.__name__, "Graph", *below(BaseNode)}


def _faults(title: str, details: Sequence[ErrorDetails]) -> Iterator[str]:
    """One sentence for each field, or each edge, that is wrong."""
    found: dict[tuple[Any, ...], list[ErrorDetails]] = {}
    for detail in details:
        loc = detail["loc"]
        found.setdefault(loc[:2] if loc[:1] == ("edges",) else loc[:1], []).append(detail)
    for loc, of_field in found.items():
        if loc[:1] == ("edges",) and loc[1:]:
            edge = min(of_field, key=lambda detail: len(detail["loc"]))["input"]
            yield f"edges[{loc[1]}] is {shown(edge)}: {_edge_fault(edge)}"
            continue
        given, words = of_field[0]["input"], [detail["msg"].removeprefix("Value error, ") for detail in of_field]
        if loc == ("edges",):
            yield f"edges is {shown(given)}: it must be a list of edges, {_FORMS}"
        elif title == "Edge" and loc in (("from_node",), ("to_node",)) and of_field[0]["type"] != "missing":
            yield f"{loc[0]} of an Edge is {_a(given)}: an Edge takes nodes alone; make one with node(...), or write a tuple"
        elif title == "Edge" and loc == ("route",):
            yield f"route of an Edge is {_a(given)}: {_ROUTE}"
        elif of_field[0]["type"] == "value_error":
            yield words[0] + (_identifier(given) if "identifier" in words[0] else "")
        elif loc and str(loc[0]).endswith("_schema"):
            yield f"{loc[0]} is {_a(given)}: give a type itself, such as a BaseModel class or list[str]"
        else:
            is_what = "" if of_field[0]["type"] in ("missing", "extra_forbidden") else f" is {shown(given)}"
            yield "".join(map(str, loc)) + is_what + f": {' or '.join(dict.fromkeys(words))}"


def _identifier(name: Any) -> str:
    """What a name has to be, and the nearest one that is."""
    near = re.sub(r"\W+", "_", str(name)).strip("_") or "node"
    near = near if near.isidentifier() else f"n_{near}"
    return f" That is letters, digits and underscores, with no digit first, such as {near!r}."


_ROUTE = "a route is text, an integer, True or False"


def _edge_fault(edge: Any) -> str:
    """What is wrong with an item of ``edges``, and the form that google-adk wants."""
    if not isinstance(edge, (tuple, list)):
        return f"an edge is a tuple, {_FORMS}"
    for at, item in enumerate(edge):
        if isinstance(item, str) and item != "START":
            if item.strip("_").upper() == "START":
                return f"{item!r} is text, not a node. The start is written 'START', or START of google.adk.workflow"
            return (
                f"{item!r} is text, not a node. A route stands in a dict: {_route_form(edge, at)}; a node stands there itself,"
                " without quotes"
            )
        if fault := _element_fault(item):
            return fault
    return f"an edge is a tuple, {_FORMS}"


def _route_form(edge: Sequence[Any], at: int) -> str:
    """How google-adk wants what an edge says with the text at this place as a route: before, between or after two nodes."""
    before = [item for item in edge[:at] if _is_node(item) and shown(item) != "'START'"]  # START has no routes
    nodes = [shown(item) for item in before][-2:] if at + 1 == len(edge) else []
    if len(nodes) < 2:
        nodes = [shown(edge[at - 1]) if at else "router", shown(edge[at + 1]) if at + 1 < len(edge) else "..."]
    return f"({nodes[0]}, {{{edge[at]!r}: {nodes[1]}}})"


def _element_fault(item: Any) -> str:
    """What is wrong with an element of a chain: a node, a tuple of nodes, or a dict of routes. Empty: nothing."""
    if isinstance(item, dict):
        for route, target in item.items():
            if not isinstance(route, (str, int)):
                return f"{_a(route)} is no route: {_ROUTE}"
            if fault := _targets_fault(target, f", to which route {route!r} leads,"):
                return fault
        return ""
    return _targets_fault(item)


def _targets_fault(item: Any, where: str = "") -> str:
    if _is_node(item):
        return ""
    if not isinstance(item, (tuple, list, set, frozenset)):
        return f"{_a(item)}{where} is no node: a node is a function, an agent, a tool, a workflow, node(...) or 'START'"
    for inner in item:
        if isinstance(inner, (tuple, list, dict)):
            kind = "routes" if isinstance(inner, dict) else "a fan-out"
            return f"{shown(inner)}{where} stands inside a fan-out, which takes nodes alone: give {kind} an edge of its own"
        if fault := _targets_fault(inner, where):
            return fault
    return ""


def _is_node(item: Any) -> bool:
    return isinstance(item, (BaseNode, BaseTool)) or callable(item) or item == "START"


def _a(given: Any) -> str:
    """``None``, or the value with its type."""
    return "None" if given is None else f"{shown(given)} ({'a function' if callable(given) else type(given).__name__})"


def shown(given: Any) -> str:
    """A value as it stands in the user's code, nodes by their names; long ones are cut."""
    if isinstance(given, (tuple, list)):
        inner = ", ".join(map(shown, given))
        text = f"[{inner}]" if isinstance(given, list) else f"({inner}{',' if len(given) == 1 else ''})"
    elif isinstance(given, (set, frozenset)):
        text = "{" + ", ".join(map(shown, given)) + "}"
    elif isinstance(given, dict):
        text = "{" + ", ".join(f"{key!r}: {shown(value)}" for key, value in given.items()) + "}"
    elif isinstance(given, (BaseNode, BaseTool)):
        return "'START'" if given.name == "__START__" else given.name
    else:
        text = getattr(given, "__name__", None) or repr(given)
    return text if len(text) <= 200 else f"{text[:199]}…"
