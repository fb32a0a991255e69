"""Seed 000, section 3: agents that find in their prompt what was said in earlier sessions."""

from __future__ import annotations

from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.preload_memory_tool import preload_memory_tool

MODEL = "gemini-2.5-flash"

memory_agent = LlmAgent(
    name="memory_agent",
    model=MODEL,
    instruction="You are helpful, and know the past conversations.",
    tools=[preload_memory_tool],
)


async def save_memory_after_turn(callback_context: CallbackContext) -> None:
    """Keeps the session for later ones."""
    await callback_context.add_session_to_memory()


persistent_agent = LlmAgent(
    name="persistent_agent",
    model=MODEL,
    instruction="You remember the user across sessions.",
    tools=[preload_memory_tool],
    after_agent_callback=save_memory_after_turn,
)
