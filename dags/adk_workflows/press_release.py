"""Two agents, plain ADK: one drafts a press release, a larger model edits it. Neither knows where its key comes from."""

from __future__ import annotations

from google.adk.agents import LlmAgent
from google.adk.workflow import START, Workflow
from pydantic import BaseModel


class PressRelease(BaseModel):
    """What the editor gives."""

    headline: str
    text: str


writer = LlmAgent(
    name="writer",
    model="gemini-2.5-flash",
    instruction="Write a press release of at most 150 words about what the user tells you. Invent no facts.",
)

editor = LlmAgent(
    name="editor",
    model="gemini-2.5-pro",
    instruction="Shorten the press release you are given to its half, in plain words, and give it a headline.",
    output_schema=PressRelease,
)

root_agent = Workflow(name="press_release", edges=[(START, writer), (writer, editor)])
