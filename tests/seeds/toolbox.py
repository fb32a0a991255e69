"""Seed 000, section 6: agents whose tools come from an MCP Toolbox server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.toolbox_toolset import ToolboxToolset


def _agent(name: str, toolset: ToolboxToolset) -> LlmAgent:
    return LlmAgent(name=name, model="gemini-2.5-flash", instruction="Answer with the tools.", tools=[toolset])


def toolbox_agent(url: str) -> LlmAgent:
    """With every tool of the server."""
    return _agent("toolbox_agent", ToolboxToolset(url))


def reading_agent(url: str) -> LlmAgent:
    """With the tools of one toolset."""
    return _agent("reading_agent", ToolboxToolset(url, toolset_name="reading"))


def scoped_agent(url: str) -> LlmAgent:
    """With two tools by name."""
    return _agent("scoped_agent", ToolboxToolset(url, tool_names=["orders_of_customer", "count_orders"]))


def writing_agent(url: str) -> LlmAgent:
    """With a toolset and one tool more."""
    return _agent("writing_agent", ToolboxToolset(url, toolset_name="writing", tool_names=["count_orders"]))


def authed_agent(url: str, get_api_token: Callable[[], str]) -> LlmAgent:
    """With a token that is asked for when a tool is called that needs it."""
    toolset = ToolboxToolset(url, toolset_name="private", auth_token_getters={"staff": get_api_token})
    return _agent("authed_agent", toolset)


def tenanted_agent(url: str, get_customer: Callable[[], str]) -> LlmAgent:
    """With parameters that the model neither sees nor sets."""
    bound: dict[str, Any] = {"customer": get_customer, "amount": 10.0}
    return _agent("tenanted_agent", ToolboxToolset(url, tool_names=["orders_above"], bound_params=bound))
