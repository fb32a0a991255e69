"""An agent that keeps a diary: it finds in its memory what it was told on the days before."""

from google.adk import Agent
from google.adk.tools.preload_memory_tool import preload_memory_tool


async def remember(callback_context):
    """Puts what was said into the memory, where tomorrow's run finds it."""
    await callback_context.add_session_to_memory()


root_agent = Agent(
    name="diary",
    model="gemini-2.5-flash",
    description="Writes one line a day and knows the lines before.",
    instruction="Write one line about the day. If past conversations are given, refer to them.",
    tools=[preload_memory_tool],
    after_agent_callback=remember,
)
