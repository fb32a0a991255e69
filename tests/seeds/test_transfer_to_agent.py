"""Seed 000, section 1: TransferToAgentTool, as DAG runs."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.tools.transfer_to_agent_tool import TransferToAgentTool

from tests.seeds import transfer_to_agent as seed
from tests.seeds.as_dag import Script, StartServer, parameters_of, run_both
from tests.servers.gemini import GeminiRequest, call


def go_to(*names: str) -> Script:
    """A model that transfers to each of these that it may, and answers where it cannot go on."""

    def script(request: GeminiRequest) -> Any:
        offered = parameters_of(request, "transfer_to_agent")["agent_name"].get("enum", names)
        specialist = request.system.startswith("You are the")
        for name in names:
            if name in offered and not (specialist and f"the {names[-1]} " in request.system):
                return call("transfer_to_agent", {"agent_name": name})
        return f"answered by {request.system.split('.')[0].removeprefix('You are ')}"

    return script


def test_example_1_the_model_may_only_name_the_listed_agents_and_the_chosen_one_answers(gemini: StartServer) -> None:
    both = run_both(gemini(go_to("billing")), seed.orchestrator(), "My invoice is wrong")

    asked, answered = both.requests
    assert parameters_of(asked, "transfer_to_agent")["agent_name"]["enum"] == ["billing", "support", "sales"]
    assert answered.system.startswith("You are the billing specialist")
    assert both.run.output == "answered by the billing specialist"
    both.assert_same()


@pytest.mark.parametrize("enabled", [["billing", "support", "sales"], ["support", "sales"]], ids=["prod", "staging"])
def test_example_2_the_list_is_the_one_the_agent_was_built_with(gemini: StartServer, enabled: list[str]) -> None:
    both = run_both(gemini(go_to("sales")), seed.build_router(enabled), "A new plan, please")

    assert parameters_of(both.requests[0], "transfer_to_agent")["agent_name"]["enum"] == enabled
    assert both.run.output == "answered by the sales specialist"


def test_example_3_without_the_list_a_made_up_name_fails_the_task(gemini: StartServer) -> None:
    both = run_both(gemini(go_to("refunds")), seed.bad_router, "I want my money back")

    assert "enum" not in parameters_of(both.requests[0], "transfer_to_agent")["agent_name"]
    assert both.run.state == "failed"
    assert both.run.error is not None
    assert "'refunds'" in both.run.error[1]
    both.assert_same()


def test_example_3_with_the_list_the_request_says_which_names_there_are(gemini: StartServer) -> None:
    both = run_both(gemini(lambda request: "I can answer that myself."), seed.good_router, "Hello")

    assert parameters_of(both.requests[0], "transfer_to_agent")["agent_name"]["enum"] == ["billing", "support"]
    assert both.run.output == "I can answer that myself."
    both.assert_same()


def test_example_3_a_listed_name_without_such_an_agent_fails_too(gemini: StartServer) -> None:
    both = run_both(gemini(go_to("billing")), seed.good_router, "My invoice is wrong")

    assert both.run.error == ("ValueError", "Transfer target agent 'billing' not found.")
    both.assert_same()


def test_example_4_the_declaration_holds_the_list() -> None:
    declaration = TransferToAgentTool(agent_names=["alpha", "beta", "gamma"])._get_declaration()

    assert declaration is not None
    assert declaration.parameters_json_schema["properties"]["agent_name"]["enum"] == ["alpha", "beta", "gamma"]


def test_example_5_a_level_in_single_turn_mode_may_not_transfer_further(gemini: StartServer) -> None:
    both = run_both(gemini(go_to("billing", "billing_invoice")), seed.top_router(), "Where is my invoice?")

    offered = [parameters_of(request, "transfer_to_agent")["agent_name"]["enum"] for request in both.requests]
    assert offered == [["billing", "support"], ["billing_invoice", "billing_payment"]]
    assert both.run.state == "failed"
    assert both.run.error == ("ValueError", "Agent billing is not allowed to transfer to agent billing_invoice.")
    both.assert_same()


def test_example_5_in_chat_mode_a_transfer_goes_on_from_level_to_level(gemini: StartServer) -> None:
    both = run_both(gemini(go_to("billing", "billing_invoice")), seed.automatic_router(), "Where is my invoice?")

    offered = [parameters_of(request, "transfer_to_agent")["agent_name"]["enum"] for request in both.requests]
    assert offered == [
        ["billing", "support"],
        ["billing_invoice", "billing_payment", "automatic_router", "support"],
        ["billing", "billing_payment"],
    ]
    assert "Knows support." in both.requests[0].system
    assert both.run.output == "answered by the billing_invoice specialist"
    both.assert_same()
