"""Seed 000, section 7: workflows that meet in a JoinNode."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents.llm_agent import LlmAgent
from google.adk.workflow import START, JoinNode, Workflow
from pydantic import BaseModel

MODEL = "gemini-2.5-flash"


async def summarise(ctx: Any, node_input: dict[str, str]) -> AsyncGenerator[str, None]:
    """One line per branch, under the name of the branch."""
    yield "\n".join(f"{name}: {text}" for name, text in node_input.items())


translate_fr = LlmAgent(name="translate_fr", model=MODEL, instruction="Translate the text to French.")
translate_de = LlmAgent(name="translate_de", model=MODEL, instruction="Translate the text to German.")
join_translations = JoinNode(name="join_translations")

parallel_translate = Workflow(
    name="parallel_translate",
    edges=[
        (START, (translate_fr, translate_de)),
        (translate_fr, join_translations),
        (translate_de, join_translations),
        (join_translations, summarise),
    ],
)


async def branch_a(ctx: Any, node_input: Any) -> AsyncGenerator[dict[str, Any], None]:
    yield {"score": 0.9, "label": "positive"}


async def branch_b(ctx: Any, node_input: Any) -> AsyncGenerator[dict[str, Any], None]:
    yield {"score": 0.3, "label": "negative"}


async def aggregate(ctx: Any, node_input: dict[str, Any]) -> AsyncGenerator[dict[str, float], None]:
    scores = [found["score"] for found in node_input.values()]
    yield {"average_score": sum(scores) / len(scores)}


join = JoinNode(name="join")

score_aggregator = Workflow(
    name="score_aggregator",
    edges=[(START, (branch_a, branch_b)), (branch_a, join), (branch_b, join), (join, aggregate)],
)


class SearchResult(BaseModel):
    query: str
    hits: int
    top_result: str


SOURCES = ("web", "wiki", "news")
searches = tuple(
    LlmAgent(
        name=f"search_{source}",
        model=MODEL,
        instruction=f"Search the {source} and give the best result.",
        output_schema=SearchResult,
    )
    for source in SOURCES
)


async def synthesise(ctx: Any, node_input: dict[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
    yield {"total_hits": sum(found["hits"] for found in node_input.values()), "sources": list(node_input)}


def _meeting(name: str, meeting_point: JoinNode) -> Workflow:
    return Workflow(
        name=name,
        edges=[(START, searches), *((search, meeting_point) for search in searches), (meeting_point, synthesise)],
    )


multi_search = _meeting("multi_search", JoinNode(name="join_search"))
# The seed's text: the join's input_schema is checked for each value on its own.
checked_search = _meeting("checked_search", JoinNode(name="join_search", input_schema=SearchResult))
