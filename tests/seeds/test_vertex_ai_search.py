"""Seed 000, section 4: VertexAiSearchTool, as DAG runs: what is sent to Vertex AI."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.vertex_ai_search_tool import VertexAiSearchTool
from google.adk.workflow import START, Workflow
from google.genai import types

from tests.seeds import vertex_ai_search as seed
from tests.seeds.as_dag import Script, StartServer, built_in_tools, run_agent, run_both
from tests.servers.gemini import GeminiRequest, GeminiServer, call


@pytest.fixture
def vertex(gemini: StartServer, monkeypatch: pytest.MonkeyPatch) -> StartServer:
    """As ``gemini``, for clients of Vertex AI with an API key (express mode)."""

    def start(script: Script) -> GeminiServer:
        server = gemini(script)
        monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
        monkeypatch.setenv("GOOGLE_VERTEX_BASE_URL", server.url)
        monkeypatch.delenv("GOOGLE_CLOUD_PROJECT", raising=False)
        monkeypatch.delenv("GOOGLE_CLOUD_LOCATION", raising=False)
        return server

    return start


def grounded(request: GeminiRequest) -> str:
    return "As the documents say."


EXAMPLES = pytest.mark.parametrize(
    ("agent", "search"),
    [
        (seed.doc_search_agent, {"datastore": seed.store("my-docs-store")}),
        (
            seed.multi_store_agent,
            {
                "engine": seed.ENGINE,
                "dataStoreSpecs": [{"dataStore": seed.store("store-a")}, {"dataStore": seed.store("store-b")}],
                "maxResults": 10,
            },
        ),
        (
            seed.filtered_search_agent,
            {
                "datastore": seed.store("articles-store"),
                "filter": 'category: "public" AND publish_year >= 2025',
                "maxResults": 5,
            },
        ),
    ],
    ids=["example_1_data_store", "example_2_engine", "example_3_filter"],
)


@EXAMPLES
def test_the_search_is_in_the_request(vertex: StartServer, agent: LlmAgent, search: dict[str, Any]) -> None:
    both = run_both(vertex(grounded), agent, "How do I start?")

    (request,) = both.requests
    assert built_in_tools(request) == [{"retrieval": {"vertexAiSearch": search}}]
    assert "/publishers/google/models/gemini-2.5-flash" in request.path
    assert both.run.output == "As the documents say."
    both.assert_same()


@pytest.mark.parametrize(("state", "owner"), [({"user_id": "u-7"}, "u-7"), ({}, "anonymous")], ids=["known", "unknown"])
def test_example_4_a_subclass_reads_the_filter_from_the_state_of_the_run(
    vertex: StartServer, state: dict[str, Any], owner: str
) -> None:
    workflow = Workflow(name="personal", edges=[(START, seed.personal_doc_agent)])

    both = run_both(vertex(grounded), workflow, "My contract?", state)

    (tool,) = built_in_tools(both.requests[0])
    assert tool["retrieval"]["vertexAiSearch"] == {
        "datastore": seed.store("user-docs"),
        "filter": f'owner_id = "{owner}"',
        "maxResults": 5,
    }
    both.assert_same()


@pytest.mark.parametrize("model", ["gemini-1.5-pro", "gemini-2.5-flash"])
def test_example_5_the_search_goes_beside_other_tools(vertex: StartServer, model: str) -> None:
    def script(request: GeminiRequest) -> Any:
        if request.function_responses:
            return f"Written by {request.function_responses[0]['response']['author']}."
        return call("lookup_metadata", {"doc_id": "d1"})

    both = run_both(vertex(script), seed.hybrid_agent(model, bypass=False), "Who wrote d1?")

    assert len(built_in_tools(both.requests[0])) == 1
    assert list(both.requests[0].tools) == ["lookup_metadata"]
    assert both.run.output == "Written by Alice."
    both.assert_same()


def test_example_5_bypassing_makes_it_a_function_that_needs_discovery_engine(vertex: StartServer) -> None:
    server = vertex(grounded)

    run = run_agent(seed.hybrid_agent(seed.MODEL, bypass=True), "Who wrote d1?")

    assert run.state == "failed"
    assert run.error is not None
    if importlib.util.find_spec("google.cloud.discoveryengine") is None:
        assert run.error[0] == "ImportError"
        assert "google-adk[gcp]" in run.error[1]
    else:
        assert run.error[0] == "DefaultCredentialsError"
    assert server.requests == []


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"data_store_id": "d", "search_engine_id": "e"},
        {"data_store_id": "d", "data_store_specs": [types.VertexAISearchDataStoreSpec(data_store="d")]},
    ],
    ids=["neither", "both", "specs_without_engine"],
)
def test_arguments_that_exclude_each_other_are_refused_when_the_tool_is_made(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be specified"):
        VertexAiSearchTool(**arguments)


def test_the_gemini_api_itself_has_no_such_tool_and_the_error_says_so(gemini: StartServer) -> None:
    server = gemini(grounded)

    run = run_agent(seed.doc_search_agent, "How do I start?")

    assert run.error is not None
    assert run.error[0] == "ValueError"
    assert "retrieval" in run.error[1]
    assert server.requests == []
