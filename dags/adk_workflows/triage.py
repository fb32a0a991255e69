"""An ADK agent that sorts support tickets; nothing in it knows of Airflow."""

from __future__ import annotations

from typing import Literal

from google.adk.agents.llm_agent import LlmAgent
from pydantic import BaseModel


class Triage(BaseModel):
    """What the agent answers for a ticket."""

    team: Literal["billing", "delivery", "technology"]
    urgent: bool
    summary: str


root_agent = LlmAgent(
    name="triage",
    model="gemini-2.5-flash",
    description="Sorts support tickets.",
    instruction="Decide which team takes the customer's ticket and whether it is urgent. Summarise it in one sentence.",
    output_schema=Triage,
)
