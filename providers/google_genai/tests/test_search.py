"""Vertex AI Search: the tool of the request as it goes out, with the names from code and from the connection."""

from __future__ import annotations

import asyncio

import pytest
from adk_airflow_google_genai import GoogleGenAIConnectionError, VertexAiSearchConnectionTool, make_llm
from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.adk.tools import VertexAiSearchTool

STORE = "projects/p/locations/global/collections/default_collection/dataStores/manuals"
ENGINE = "projects/p/locations/global/collections/default_collection/engines/manuals"


@pytest.fixture
def run(cloud, vertex_connection, monkeypatch):
    """Runs an agent with a tool on a Vertex AI connection, and gives the `tools` of the request."""

    def run_agent(tool, **extra):
        connection = vertex_connection("vertex", **extra)
        monkeypatch.setenv("AIRFLOW_CONN_VERTEX", connection.get_uri())
        agent = LlmAgent(name="librarian", model=make_llm("gemini-2.5-flash", connection), tools=[tool])
        events = asyncio.run(InMemoryRunner(agent=agent, app_name="library").run_debug("Where is it?", quiet=True))
        assert events[-1].content.parts[0].text == "hello"
        (request,) = cloud.requests
        assert request.headers["authorization"] == f"Bearer {cloud.token}"
        return request.body["tools"]

    return run_agent


def test_adks_own_tool_searches_with_the_connection_of_the_model(run):
    tools = run(VertexAiSearchTool(data_store_id=STORE, filter="lang = 'en'", max_results=3))
    assert tools == [{"retrieval": {"vertex_ai_search": {"datastore": STORE, "filter": "lang = 'en'", "max_results": 3}}}]


@pytest.mark.parametrize(("field", "sent", "name"), [("data_store", "datastore", STORE), ("search_engine", "engine", ENGINE)])
def test_the_connection_names_what_is_searched(field, sent, name, run):
    tools = run(VertexAiSearchConnectionTool(conn_id="vertex", max_results=5), **{field: name})
    assert tools == [{"retrieval": {"vertex_ai_search": {sent: name, "max_results": 5}}}]


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        ({}, "a data store or a search engine"),
        ({"data_store": STORE, "search_engine": ENGINE}, "not both"),
        ({"data_store": "manuals"}, "'manuals' is no full name"),
    ],
)
def test_a_connection_that_does_not_name_one_is_told_what_to_fill_in(extra, says, run):
    tool = VertexAiSearchConnectionTool(conn_id="vertex")
    with pytest.raises(GoogleGenAIConnectionError, match=f"^Connection 'vertex': .*{says}"):
        run(tool, **extra)


def test_a_connection_that_is_not_there_is_named(run):
    with pytest.raises(GoogleGenAIConnectionError, match=r"^Connection 'nowhere': Airflow has no such connection\. Add one"):
        run(VertexAiSearchConnectionTool(conn_id="nowhere"))


def test_the_tool_is_one_that_lives_in_the_model_call():
    tool = VertexAiSearchConnectionTool(conn_id="not_there")
    assert isinstance(tool, VertexAiSearchTool)
    assert (tool.name, tool.data_store_id, tool.search_engine_id) == ("vertex_ai_search", None, None)
