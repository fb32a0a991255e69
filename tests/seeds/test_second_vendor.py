"""Agents made for Gemini run on Airflow against another vendor's API, unchanged but for their model class.

One script answers for both vendors: what differs is how the agents' requests and the answers are written on the wire.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm
from google.adk.workflow import Workflow
from pydantic import BaseModel

from adk_airflow.testing import WorkflowRun, run_workflow
from tests.servers.gemini import Reply, call, error, structured

pytest.importorskip("anthropic", reason="needs the package anthropic: pip install 'adk-airflow[test]'")

GEMINI = "gemini-2.5-flash"
CLAUDE = "claude-sonnet-4-20250514"


class Verdict(BaseModel):
    label: str
    score: int


def stock(item: str) -> dict[str, Any]:
    """Tells how many of an item are there."""
    return {"item": item, "count": len(item)}


def writer(model: str | BaseLlm) -> LlmAgent:
    return LlmAgent(name="writer", model=model, instruction="Write about the {topic}.", output_key="draft")


def clerk(model: str | BaseLlm) -> LlmAgent:
    return LlmAgent(name="clerk", model=model, tools=[stock])


def judge(model: str | BaseLlm) -> LlmAgent:
    return LlmAgent(name="judge", model=model, output_schema=Verdict)


def judging_clerk(model: str | BaseLlm) -> LlmAgent:
    """A tool and a schema: for models that cannot have both at once, ADK adds a tool that sets the response."""
    return LlmAgent(name="judging_clerk", model=model, tools=[stock], output_schema=Verdict)


def answer(request: Any) -> Reply | str:
    if request.function_responses:
        (response,) = request.function_responses
        if response["name"] == "set_model_response":
            return "done"
        count = response["response"]["count"]
        if "set_model_response" in request.tools:
            return call("set_model_response", {"label": "counted", "score": count})
        return structured({"label": "counted", "score": count}) if request.response_schema else f"{count} left"
    if "stock" in request.tools:
        return call("stock", {"item": request.last_text})
    if request.response_schema:
        return structured({"label": "good", "score": len(request.last_text)})
    (instruction,) = [line for line in request.system.splitlines() if "Write about" in line]
    return f"{instruction} {request.last_text}!"


def run(agent: LlmAgent) -> WorkflowRun:
    return run_workflow(Workflow(name="second_vendor", edges=[("START", agent)]), input="tea", state={"topic": "sea"})


AGENTS = [
    pytest.param(writer, "Write about the sea. tea!", 1, id="text"),
    pytest.param(clerk, "3 left", 2, id="tool"),
    pytest.param(judge, {"label": "good", "score": 3}, 1, id="schema"),
    pytest.param(judging_clerk, {"label": "counted", "score": 3}, 2, id="tool_and_schema"),
]


@pytest.mark.parametrize(("make", "output", "requests"), AGENTS)
def test_the_same_agent_gives_the_same_output(
    gemini: Any, anthropic: Any, make: Callable[[str | BaseLlm], LlmAgent], output: Any, requests: int
):
    from google.adk.models.anthropic_llm import AnthropicLlm

    first, second = gemini(answer), anthropic(answer)

    of_gemini = run(make(GEMINI))
    of_claude = run(make(AnthropicLlm(model=CLAUDE)))

    assert (of_gemini.state, of_gemini.output) == ("success", output)
    assert (of_claude.state, of_claude.output) == ("success", output)
    assert of_claude.session_state == of_gemini.session_state
    assert [request.model for request in first.requests] == [GEMINI] * requests
    assert [request.model for request in second.requests] == [CLAUDE] * requests


def test_a_refusal_of_the_second_vendor_fails_the_task(anthropic):
    from google.adk.models.anthropic_llm import AnthropicLlm

    server = anthropic(lambda request: error(401, message="invalid key"))

    refused = run(writer(AnthropicLlm(model=CLAUDE)))
    assert refused.state == "failed"
    assert refused.error is not None
    kind, message = refused.error
    assert kind == "AuthenticationError"
    assert "invalid key" in message
    assert "test-key" not in message
    assert len(server.requests) == 1
