"""An ADK workflow with a loop: it shortens a text until it fits, and a second one that sorts texts by length."""

from __future__ import annotations

from google.adk import Context, Event
from google.adk.workflow import DEFAULT_ROUTE, START, Workflow, node


def take(ctx: Context, node_input: str) -> str:
    """The text that is to be shortened, without needless space."""
    ctx.state["rounds"] = 0
    return " ".join(node_input.split())


def check(node_input: str, longest: int = 60) -> Event:
    """Long texts go round again; ``longest`` is a param of the run."""
    return Event(output=node_input, route="too_long" if len(node_input) > longest else "fits")


def shorten(ctx: Context, node_input: str) -> str:
    """Leaves the last word out."""
    ctx.state["rounds"] += 1
    return node_input.rpartition(" ")[0] or node_input[:-1]


def done(node_input: str, rounds: int) -> dict[str, str | int]:
    """The text, and how often it went round."""
    return {"text": node_input, "rounds": rounds}


shorten_text = Workflow(
    name="shorten_text",
    description="Shortens a text word by word until it fits.",
    edges=[(START, take, check, {"too_long": shorten, DEFAULT_ROUTE: done}), (shorten, check)],
)


@node(parallel_worker=True)
def measure(node_input: str) -> dict[str, str | int]:
    """The length of one word."""
    return {"word": node_input, "length": len(node_input)}


def words(node_input: str) -> list[str]:
    """The words of the text."""
    return node_input.split()


def longest_word(node_input: list[dict[str, str | int]]) -> str:
    """The longest of them; of several the first."""
    return str(max(node_input, key=lambda row: int(row["length"]))["word"])


find_longest = Workflow(name="find_longest", edges=[(START, words, measure, longest_word)])
