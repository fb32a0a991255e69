"""Seed 003: work handed to sub-agents in the modes ``chat``, ``task`` and ``single_turn``, and such agents as graph nodes."""

from __future__ import annotations

from typing import Any

from google.adk import Agent
from google.adk.workflow import START, Workflow, node
from pydantic import BaseModel

MODEL = "gemini-2.5-flash"


class ResearchInput(BaseModel):
    topic: str
    depth: str = "standard"


class ResearchOutput(BaseModel):
    summary: str
    key_findings: str
    confidence: str


def search_web(query: str) -> str:
    """Search the web for information."""
    return f'Results for "{query}": three pages'


def researcher(**settings: Any) -> Agent:
    return Agent(
        name="researcher",
        mode="task",
        input_schema=ResearchInput,
        output_schema=ResearchOutput,
        description="Researches topics using web search and analysis.",
        instruction="Research the given topic with search_web, then call finish_task.",
        tools=[search_web],
        **settings,
    )


def research_coordinator() -> Agent:
    return Agent(
        name="coordinator",
        model=MODEL,
        sub_agents=[researcher()],
        instruction="When the user asks for research, call the researcher tool. Summarize its result.",
    )


class SummaryOutput(BaseModel):
    summary: str
    word_count: int


def extract_text(document: str) -> str:
    """Get the text of a document."""
    return f"The text of {document}."


def summarizer(**settings: Any) -> Agent:
    return Agent(
        name="summarizer",
        mode="single_turn",
        output_schema=SummaryOutput,
        description="Summarizes documents autonomously.",
        instruction="Summarize the document with extract_text.",
        tools=[extract_text],
        **settings,
    )


def summary_coordinator() -> Agent:
    return Agent(
        name="coordinator",
        model=MODEL,
        sub_agents=[summarizer()],
        instruction="Delegate summarization to the summarizer tool.",
    )


def plain(mode: str, **settings: Any) -> Agent:
    """A worker without schemas."""
    return Agent(
        name="worker",
        mode=mode,
        description="Does what it is told.",
        instruction="Do the work that you are given.",
        **settings,
    )


def plain_coordinator(mode: str) -> Agent:
    return Agent(name="coordinator", model=MODEL, sub_agents=[plain(mode)], instruction="Give the work to the worker.")


class FlightSearchInput(BaseModel):
    origin: str
    destination: str


class FlightSearchOutput(BaseModel):
    flight: str
    price: float


class WeatherOutput(BaseModel):
    destination: str
    forecast: str


def search_flights(origin: str, destination: str) -> list[dict[str, Any]]:
    """Find flights."""
    return [{"flight": "XY 12", "price": 120.5}]


def book_flight(flight: str) -> str:
    """Book a flight."""
    return f"booked {flight}"


def get_weather(destination: str) -> str:
    """Say what the weather is like."""
    return f"sunny in {destination}"


def travel_planner() -> Agent:
    flights = Agent(
        name="flight_searcher",
        mode="task",
        input_schema=FlightSearchInput,
        output_schema=FlightSearchOutput,
        description="Searches and books flights interactively.",
        instruction="Search flights, discuss with the user, then finish_task.",
        tools=[search_flights, book_flight],
    )
    weather = Agent(
        name="weather_checker",
        mode="single_turn",
        output_schema=WeatherOutput,
        description="Checks weather for a destination.",
        instruction="Check the weather.",
        tools=[get_weather],
    )
    guide = Agent(name="guide", description="Talks about sights.", instruction="Talk about the sights.")
    return Agent(
        name="travel_planner",
        model=MODEL,
        sub_agents=[flights, weather, guide],
        instruction="Plan trips. Use weather_checker for weather and flight_searcher for booking.",
    )


def show(node_input: Any) -> str:
    return f"got {node_input!r}"


def as_graph_node(agent: Any) -> Workflow:
    """The agent as the first node of a workflow, and one after it that shows what it gave."""
    return Workflow(name="delegation", edges=[(START, agent, node(show, name="show"))])
