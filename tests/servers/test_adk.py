"""ADK's own Runner against the local servers: what the model classes of ADK make of their answers."""

from __future__ import annotations

import asyncio

import pytest
from google.adk.agents import LlmAgent, RunConfig
from google.adk.agents.run_config import StreamingMode
from google.adk.events import Event
from google.adk.models import BaseLlm
from google.adk.runners import InMemoryRunner
from google.genai import errors, types
from pydantic import BaseModel

from tests.servers.anthropic import AnthropicRequest
from tests.servers.gemini import GeminiRequest, Reply, call, cut, error, structured, text

MODEL = "gemini-2.5-flash"
CLAUDE = "claude-sonnet-4-20250514"
NEEDED = "needs the package anthropic: pip install 'adk-airflow[test]'"


class City(BaseModel):
    name: str
    inhabitants: int


def stock(item: str) -> int:
    """Tells how many of an item are there."""
    return len(item)


def run(agent: LlmAgent, words: str, *, streaming: bool = False) -> list[Event]:
    async def events() -> list[Event]:
        async with InMemoryRunner(agent=agent, app_name="test") as runner:
            session = await runner.session_service.create_session(app_name="test", user_id="user")
            mode = StreamingMode.SSE if streaming else StreamingMode.NONE
            answers = runner.run_async(
                user_id="user",
                session_id=session.id,
                new_message=types.UserContent(words),
                run_config=RunConfig(streaming_mode=mode),
            )
            return [event async for event in answers]

    return asyncio.run(events())


def texts(events: list[Event], *, partial: bool = False) -> list[str]:
    said: list[str] = []
    for event in events:
        parts = event.content.parts or [] if event.content and bool(event.partial) is partial else []
        said.extend(part.text for part in parts if part.text)
    return said


def test_an_agent_answers(gemini):
    server = gemini(lambda request: f"{request.system.splitlines()[0]} {request.last_text}")

    events = run(LlmAgent(name="bot", model=MODEL, instruction="You said:"), "hello")
    assert texts(events) == ["You said: hello"]
    assert [request.method for request in server.requests] == ["generateContent"]


@pytest.mark.parametrize("streaming", [False, True])
def test_an_agent_calls_a_tool(gemini, streaming):
    def script(request: GeminiRequest) -> Reply:
        if request.function_responses:
            return text(f"There are {request.function_responses[0]['response']['result']}.")
        return call("stock", {"item": request.last_text})

    server = gemini(script)

    events = run(LlmAgent(name="clerk", model=MODEL, tools=[stock]), "abcd", streaming=streaming)
    assert texts(events) == ["There are 4."]
    first, second = server.requests
    assert first.tools["stock"]["description"] == "Tells how many of an item are there."
    assert second.function_responses == [{"name": "stock", "response": {"result": 4}, "id": None}]


def test_an_agent_keeps_its_output_schema(gemini):
    server = gemini(lambda request: structured({"name": request.last_text, "inhabitants": 7}))

    events = run(LlmAgent(name="bot", model=MODEL, output_schema=City, output_key="city"), "Bern")
    assert {key: value for event in events for key, value in event.actions.state_delta.items()} == {
        "city": {"name": "Bern", "inhabitants": 7}
    }
    schema = server.requests[0].response_schema
    assert schema is not None
    assert set(schema["properties"]) == {"name", "inhabitants"}


def test_a_stream_comes_in_parts_and_as_a_whole(gemini):
    server = gemini(lambda request: "one two three four")

    events = run(LlmAgent(name="bot", model=MODEL), "count", streaming=True)
    assert texts(events, partial=True) == ["one ", "two ", "three ", "four"]
    assert texts(events) == ["one two three four"]
    assert [request.method for request in server.requests] == ["streamGenerateContent"]


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(("kind", "codes"), [(errors.ClientError, (400, 401, 403, 429)), (errors.ServerError, (500, 503))])
def test_errors_are_raised_with_their_codes(gemini, kind, codes, streaming):
    server = gemini(lambda request: error(int(request.last_text), message="not now", retry_delay=2.0))
    agent = LlmAgent(name="bot", model=MODEL)

    for code in codes:
        with pytest.raises(kind, match="not now") as raised:
            run(agent, str(code), streaming=streaming)
        assert raised.value.code == code
    assert len(server.requests) == len(codes)


@pytest.mark.parametrize("streaming", [False, True])
def test_a_cut_answer_fails_the_run(gemini, streaming):
    gemini(lambda request: cut("one two three four"))

    with pytest.raises(Exception, match=r"peer closed connection|payload is not completed"):
        run(LlmAgent(name="bot", model=MODEL), "count", streaming=streaming)


def claude() -> BaseLlm:
    models = pytest.importorskip("google.adk.models.anthropic_llm", reason=NEEDED, exc_type=ImportError)
    model: BaseLlm = models.AnthropicLlm(model=CLAUDE)
    return model


@pytest.mark.parametrize("streaming", [False, True])
def test_the_second_vendors_agent_answers(anthropic, streaming):
    server = anthropic(lambda request: f"{request.system.splitlines()[0]} {request.last_text}")

    events = run(LlmAgent(name="bot", model=claude(), instruction="You said:"), "good morning", streaming=streaming)
    assert texts(events) == ["You said: good morning"]
    assert texts(events, partial=True) == (["You ", "said: ", "good ", "morning"] if streaming else [])
    assert [request.model for request in server.requests] == [CLAUDE]


@pytest.mark.parametrize("streaming", [False, True])
def test_the_second_vendors_agent_calls_a_tool(anthropic, streaming):
    def script(request: AnthropicRequest) -> Reply:
        if request.function_responses:
            return text(f"There are {request.function_responses[0]['response']['result']}.")
        return call("stock", {"item": request.last_text})

    server = anthropic(script)

    events = run(LlmAgent(name="clerk", model=claude(), tools=[stock]), "abcd", streaming=streaming)
    assert texts(events) == ["There are 4."]
    assert [answer["name"] for answer in server.requests[1].function_responses] == ["stock"]


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(("schema", "value"), [(City, {"name": "Bern", "inhabitants": 7}), (list[int], [1, 2])])
def test_the_second_vendors_agent_keeps_its_output_schema(anthropic, schema, value, streaming):
    server = anthropic(lambda request: structured(value))

    events = run(LlmAgent(name="bot", model=claude(), output_schema=schema, output_key="kept"), "x", streaming=streaming)
    assert {key: kept for event in events for key, kept in event.actions.state_delta.items()} == {"kept": value}
    assert server.requests[0].forced_tool is not None


def test_the_second_vendors_model_on_vertex_ai(anthropic):
    pytest.importorskip("anthropic", reason=NEEDED)
    from anthropic import AsyncAnthropicVertex
    from google.adk.models.anthropic_llm import Claude

    server = anthropic(lambda request: request.last_text)
    client = AsyncAnthropicVertex(region="l", project_id="p", access_token="a-token", base_url=f"{server.url}/v1")

    assert texts(run(LlmAgent(name="bot", model=Claude(model=CLAUDE, client=client)), "hello")) == ["hello"]
    assert server.requests[0].path == f"/v1/projects/p/locations/l/publishers/anthropic/models/{CLAUDE}:rawPredict"
