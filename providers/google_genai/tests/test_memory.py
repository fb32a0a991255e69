"""The memory bank by connection: the requests as they go out, and that none is lost when the task ends."""

from __future__ import annotations

import asyncio

import pytest
from adk_airflow_google_genai import GoogleGenAIConnectionError, memory_service
from google.adk.agents import LlmAgent
from google.adk.events.event import Event
from google.adk.memory import VertexAiMemoryBankService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService, Session
from google.adk.tools.preload_memory_tool import PreloadMemoryTool
from google.genai import types

ENGINE = "projects/other-project/locations/us-central1/reasoningEngines/456"
FOUND = {"retrievedMemories": [{"memory": {"fact": "Ada likes tea.", "updateTime": "2026-01-02T03:04:05Z"}}]}

pytest.importorskip("agentplatform", reason="google-cloud-agentplatform is not installed: the extra `memory` brings it")


def user_says(text: str) -> Event:
    return Event(author="user", content=types.Content(role="user", parts=[types.Part(text=text)]))


def session(*texts: str) -> Session:
    return Session(id="s1", app_name="app", user_id="ada", events=[user_says(text) for text in texts])


def test_a_search_is_sent_to_the_agent_engine_with_a_token_of_the_connection(cloud, vertex_connection):
    service = memory_service(vertex_connection(agent_engine="456"))
    assert isinstance(service, VertexAiMemoryBankService)
    cloud.answer = FOUND
    found = asyncio.run(service.search_memory(app_name="app", user_id="ada", query="What does Ada drink?"))
    assert [entry.content.parts[0].text for entry in found.memories] == ["Ada likes tea."]

    (request,) = cloud.requests
    assert request.method == "POST"
    assert request.path == "/v1beta1/projects/my-project/locations/europe-west1/reasoningEngines/456/memories:retrieve"
    assert request.headers["authorization"] == f"Bearer {cloud.token}"
    assert request.body["scope"] == {"app_name": "app", "user_id": "ada"}
    assert request.body["similaritySearchParams"] == {"search_query": "What does Ada drink?"}


def test_a_full_name_says_project_and_location_itself(cloud, vertex_connection):
    service = memory_service(vertex_connection(agent_engine=ENGINE, location="global"))
    cloud.answer = {}
    asyncio.run(service.search_memory(app_name="app", user_id="ada", query="tea"))
    assert cloud.requests[0].path == f"/v1beta1/{ENGINE}/memories:retrieve"


def test_an_api_key_of_the_environment_is_not_used(cloud, vertex_connection, monkeypatch):
    monkeypatch.setenv("GOOGLE_GENAI_USE_ENTERPRISE", "true")
    service = memory_service(vertex_connection(agent_engine="456"))
    cloud.answer = {}
    asyncio.run(service.search_memory(app_name="app", user_id="ada", query="tea"))
    assert "x-goog-api-key" not in cloud.requests[0].headers
    assert cloud.requests[0].headers["authorization"] == f"Bearer {cloud.token}"


def test_a_session_is_written_before_the_call_returns(cloud, vertex_connection):
    service = memory_service(vertex_connection(agent_engine="456"))
    cloud.answer = {"name": "operations/1", "done": True}
    asyncio.run(service.add_session_to_memory(session("I like tea.")))  # the loop ends at once, as a task's does
    (request,) = cloud.requests
    assert request.path.endswith("/reasoningEngines/456/memories:ingestEvents")
    assert request.body["scope"] == {"app_name": "app", "user_id": "ada"}
    (event,) = request.body["directContentsSource"]["events"]
    assert event["content"]["parts"] == [{"text": "I like tea."}]


def test_sessions_that_are_written_side_by_side_are_each_written_once(cloud, vertex_connection):
    service = memory_service(vertex_connection(agent_engine="456"))
    cloud.answer = {"name": "operations/1", "done": True}

    async def write() -> None:
        await asyncio.gather(
            service.add_session_to_memory(session("I like tea.")),
            service.add_events_to_memory(app_name="app", user_id="bob", events=[user_says("I like milk.")]),
        )

    asyncio.run(write())
    assert sorted(request.body["scope"]["user_id"] for request in cloud.requests) == ["ada", "bob"]


def test_memories_are_added_with_the_users_metadata(cloud, vertex_connection):
    service = memory_service(vertex_connection(agent_engine="456"))
    cloud.answer = {"name": "operations/1", "done": True}
    entry = MemoryEntry(content=types.Content(parts=[types.Part(text="Ada likes tea.")]))
    asyncio.run(service.add_memory(app_name="app", user_id="ada", memories=[entry], custom_metadata={"ttl": "60s"}))
    (request,) = cloud.requests
    assert request.path.endswith("/reasoningEngines/456/memories")
    assert (request.body["fact"], request.body["ttl"]) == ("Ada likes tea.", "60s")


def test_an_agent_that_preloads_memory_gets_it(cloud, vertex_connection):
    asked = []

    class Listener(BaseLlm):
        async def generate_content_async(self, llm_request, stream=False):
            asked.append("\n".join(part.text or "" for content in llm_request.contents for part in content.parts))
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="tea")]))

    agent = LlmAgent(name="waiter", model=Listener(model="listener"), tools=[PreloadMemoryTool()])
    cloud.answer = FOUND
    runner = Runner(
        app_name="app",
        agent=agent,
        session_service=InMemorySessionService(),
        memory_service=memory_service(vertex_connection(agent_engine="456")),
    )
    asyncio.run(runner.run_debug("What do I drink?", user_id="ada", quiet=True))
    assert "Ada likes tea." in asked[0]
    assert cloud.requests[0].body["similaritySearchParams"] == {"search_query": "What do I drink?"}


@pytest.mark.parametrize("call", ["search", "session", "memory"])
def test_a_refusal_is_one_error_that_names_the_connection(call, cloud, vertex_connection):
    service = memory_service(vertex_connection("my_memory", agent_engine="456"))
    cloud.refuse(403, "PERMISSION_DENIED", "Permission 'aiplatform.memories.retrieve' denied.", "IAM_PERMISSION_DENIED")
    entry = MemoryEntry(content=types.Content(parts=[types.Part(text="Ada likes tea.")]))
    calls = {
        "search": lambda: service.search_memory(app_name="app", user_id="ada", query="tea"),
        "session": lambda: service.add_session_to_memory(session("I like tea.")),
        "memory": lambda: service.add_memory(app_name="app", user_id="ada", memories=[entry]),
    }

    async def run() -> None:
        await calls[call]()

    with pytest.raises(GoogleGenAIConnectionError, match=r"^Connection 'my_memory': .*403 PERMISSION_DENIED") as caught:
        asyncio.run(run())
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        ({}, "names no agent engine.*field Agent engine"),
        ({"agent_engine": "reasoningEngines/456"}, "'reasoningEngines/456' is no agent engine"),
        ({"agent_engine": "456", "location": "global"}, "its location is global.*full name"),
    ],
)
def test_a_connection_without_an_agent_engine_is_told_what_to_fill_in(extra, says, vertex_connection):
    with pytest.raises(GoogleGenAIConnectionError, match=f"^Connection 'vertex': .*{says}"):
        memory_service(vertex_connection(**extra))


def test_the_gemini_api_has_no_memory_bank(gemini_connection):
    with pytest.raises(GoogleGenAIConnectionError, match="'google_genai_vertex'"):
        memory_service(gemini_connection())
