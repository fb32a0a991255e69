"""A workflow without a model: counts the words of a text and names the most frequent one."""

from google.adk import Workflow

from .tools import words_of


def split(node_input: str) -> list[str]:
    """The words of the message; of a sentence of ours when there is none."""
    return words_of(node_input or "one fish, two fish, red fish, blue fish")


def count(node_input: list[str]) -> dict[str, int]:
    """How often each word is there."""
    return {word: node_input.count(word) for word in dict.fromkeys(node_input)}


def report(node_input: dict[str, int]) -> str:
    """The result in one line."""
    word = max(node_input, key=lambda word: node_input[word])
    return f"{sum(node_input.values())} words, most often {word!r} ({node_input[word]} times)"


root_agent = Workflow(name="word_count", description="Counts words.", edges=[("START", split, count, report)])
