"""Seed 000, section 2: SetModelResponseTool, as DAG runs."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.set_model_response_tool import SetModelResponseTool
from google.adk.workflow import START, Workflow

from tests.seeds import set_model_response as seed
from tests.seeds.as_dag import Script, StartServer, built_in_tools, parameters_of, run_both
from tests.servers.gemini import GeminiRequest, call

SUMMARY = {"title": "Tides", "key_findings": ["the moon", "the sun"], "confidence": 0.8}
ARTICLES = [{"url": "https://example.com/1", "title": "One", "snippet": "first"}]


def answer_with(args: dict[str, Any]) -> Script:
    return lambda request: call("set_model_response", args)


@pytest.mark.parametrize(
    ("agent", "parameters", "args", "output"),
    [
        (seed.research_agent, ["title", "key_findings", "confidence"], SUMMARY, SUMMARY),
        (seed.article_collector, ["items"], {"items": ARTICLES}, ARTICLES),
        (seed.tag_extractor, ["response"], {"response": ["tides", "moon"]}, ["tides", "moon"]),
        (seed.search_agent, ["summary", "sources"], {"summary": "s", "sources": []}, {"summary": "s", "sources": []}),
        (seed.raw_schema_agent, ["response"], {"response": {"summary": "s"}}, {"summary": "s"}),
    ],
    ids=["example_1_model", "example_2_list_of_models", "example_3_list_of_texts", "example_5_model", "example_5_raw_dict"],
)
def test_an_agent_with_a_search_answers_through_set_model_response(
    gemini: StartServer, agent: LlmAgent, parameters: list[str], args: dict[str, Any], output: Any
) -> None:
    both = run_both(gemini(answer_with(args)), agent, "tides")

    (request,) = both.requests
    assert built_in_tools(request) == [{"googleSearch": {}}]
    assert list(parameters_of(request, "set_model_response")) == parameters
    assert request.response_schema is None
    assert "set_model_response" in request.system
    assert both.run.output == output
    both.assert_same()


def test_example_1_as_a_node_the_validated_data_is_its_output_and_its_output_key(gemini: StartServer) -> None:
    workflow = Workflow(name="research", edges=[(START, seed.research_agent)])

    both = run_both(gemini(answer_with(SUMMARY)), workflow, "tides")

    assert both.run.output == SUMMARY
    assert both.run.session_state == {"research": SUMMARY}
    both.assert_same()


def test_example_4_wrong_arguments_come_back_to_the_model_which_repairs_them(gemini: StartServer) -> None:
    def script(request: GeminiRequest) -> Any:
        answers = {answer["name"]: answer["response"] for answer in request.function_responses}
        if "set_model_response" in answers:
            return call("set_model_response", {"label": "positive", "score": 0.92})
        if "count_exclamations" in answers:
            return call("set_model_response", {"label": "positive", "score": "very"})
        return call("count_exclamations", {"text": request.last_text})

    both = run_both(gemini(script), seed.sentiment_agent, "What a day!!")

    counted, refused = both.requests[1].function_responses, both.requests[2].function_responses
    assert counted[0]["response"] == {"result": 2}
    assert "score" in refused[0]["response"]["error"]
    assert both.run.output == {"label": "positive", "score": 0.92}
    both.assert_same()


@pytest.mark.parametrize("schema", [seed.Sentiment, list[seed.Sentiment], list[str]], ids=["model", "models", "texts"])
def test_example_4_the_tool_has_one_name_whatever_the_schema(schema: Any) -> None:
    assert SetModelResponseTool(output_schema=schema).name == "set_model_response"
