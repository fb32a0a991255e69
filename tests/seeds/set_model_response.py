"""Seed 000, section 2: agents with tools and an output schema."""

from __future__ import annotations

from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.google_search_tool import google_search
from pydantic import BaseModel

MODEL = "gemini-2.5-flash"


class ResearchSummary(BaseModel):
    title: str
    key_findings: list[str]
    confidence: float


research_agent = LlmAgent(
    name="researcher",
    model=MODEL,
    instruction="Research the topic, then call set_model_response.",
    tools=[google_search],
    output_schema=ResearchSummary,
    output_key="research",
)


class Article(BaseModel):
    url: str
    title: str
    snippet: str


article_collector = LlmAgent(
    name="article_collector",
    model=MODEL,
    instruction="Search for articles and call set_model_response with them.",
    tools=[google_search],
    output_schema=list[Article],
)

tag_extractor = LlmAgent(
    name="tag_extractor",
    model=MODEL,
    instruction="Search for the topic and call set_model_response with keywords.",
    tools=[google_search],
    output_schema=list[str],
)


class Sentiment(BaseModel):
    label: str
    score: float


def count_exclamations(text: str) -> int:
    """Count the exclamation marks of a text."""
    return text.count("!")


sentiment_agent = LlmAgent(
    name="sentiment_agent",
    model=MODEL,
    instruction="Say what the text feels like.",
    tools=[count_exclamations],
    output_schema=Sentiment,
)


class SearchSummary(BaseModel):
    summary: str
    sources: list[str]


search_agent = LlmAgent(
    name="search_agent",
    model=MODEL,
    instruction="Search, and call set_model_response with a summary and its sources.",
    tools=[google_search],
    output_schema=SearchSummary,
)

# The seed warns of this one: a raw dict failed when the declaration was built. Since then ADK can.
raw_schema_agent = LlmAgent(
    name="raw_schema_agent",
    model=MODEL,
    instruction="Search, and call set_model_response.",
    tools=[google_search],
    output_schema={"type": "object", "properties": {"summary": {"type": "string"}}},
)
