"""Seed 000, section 1: agents that choose from a list whom to transfer to."""

from __future__ import annotations

from typing import Any

from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.transfer_to_agent_tool import TransferToAgentTool, transfer_to_agent

MODEL = "gemini-2.5-flash"


def specialist(name: str, **settings: Any) -> LlmAgent:
    """In mode ``single_turn``, so that the agent above gets no transfer tool by itself beside the one it declares."""
    return LlmAgent(name=name, model=MODEL, mode="single_turn", instruction=f"You are the {name} specialist.", **settings)


def orchestrator() -> LlmAgent:
    names = ["billing", "support", "sales"]
    return LlmAgent(
        name="orchestrator",
        model=MODEL,
        instruction="You are a triage agent. Transfer the user to the right specialist.",
        tools=[TransferToAgentTool(agent_names=names)],
        sub_agents=[specialist(name) for name in names],
    )


def build_router(enabled: list[str]) -> LlmAgent:
    return LlmAgent(
        name="router",
        model=MODEL,
        instruction=f"Route the user. Available specialists: {', '.join(enabled)}.",
        tools=[TransferToAgentTool(agent_names=enabled)],
        sub_agents=[specialist(name) for name in enabled],
    )


# The seed's two agents have no sub-agents at all: no transfer of theirs can succeed.
bad_router = LlmAgent(name="bad_router", model=MODEL, instruction="Route to billing or support.", tools=[transfer_to_agent])
good_router = LlmAgent(
    name="good_router",
    model=MODEL,
    instruction="Route to billing or support.",
    tools=[TransferToAgentTool(agent_names=["billing", "support"])],
)


def top_router() -> LlmAgent:
    """As the seed has it. ADK 2.13 lets only an agent in chat mode transfer to its sub-agents."""
    billing = specialist(
        "billing",
        tools=[TransferToAgentTool(agent_names=["billing_invoice", "billing_payment"])],
        sub_agents=[specialist("billing_invoice"), specialist("billing_payment")],
    )
    return LlmAgent(
        name="top_router",
        model=MODEL,
        instruction="Billing concerns go to billing, technical issues go to support.",
        tools=[TransferToAgentTool(agent_names=["billing", "support"])],
        sub_agents=[billing, specialist("support")],
    )


def _chat(name: str, sub_agents: list[Any] | None = None) -> LlmAgent:
    return LlmAgent(
        name=name,
        model=MODEL,
        description=f"Knows {name}.",
        instruction=f"You are the {name} specialist.",
        sub_agents=sub_agents or [],
    )


def automatic_router() -> LlmAgent:
    """How ADK does it without being told: chat sub-agents, and the tool is made of them, on every level."""
    billing = _chat("billing", [_chat("billing_invoice"), _chat("billing_payment")])
    return LlmAgent(
        name="automatic_router",
        model=MODEL,
        instruction="You are a triage agent.",
        sub_agents=[billing, _chat("support")],
    )
