"""Anthropic's own client against the local server: answers, tools, streams, errors."""

from __future__ import annotations

from typing import Any

import pytest

from tests.servers.anthropic import AnthropicRequest, AnthropicServer
from tests.servers.gemini import Reply, call, calls, cut, error, raw, slow, structured, text

anthropic_sdk: Any = pytest.importorskip("anthropic", reason="needs the package anthropic: pip install 'adk-airflow[test]'")

MODEL = "claude-sonnet-4-20250514"
STOCK = {"name": "stock", "description": "Counts.", "input_schema": {"type": "object", "properties": {}}}


def ask(words: str = "hello", *, stream: bool = False, **more: Any) -> Any:
    """The message that a new client gets; if streaming, put together by the client."""
    client = anthropic_sdk.Anthropic(max_retries=0)
    arguments = {"model": MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": words}], **more}
    if not stream:
        return client.messages.create(**arguments)
    with client.messages.stream(**arguments) as chunks:
        return chunks.get_final_message()


streamed = pytest.mark.parametrize("stream", [False, True])


@streamed
def test_a_text(anthropic, stream):
    server = anthropic(lambda request: f"{request.system} {request.last_text}")

    message = ask("good morning to you", system="You said:", stream=stream)
    assert [block.text for block in message.content] == ["You said: good morning to you"]
    assert message.stop_reason == "end_turn"
    assert (message.usage.input_tokens, message.usage.output_tokens) == (6, 6)
    (request,) = server.requests
    assert (request.model, request.api_key, request.path) == (MODEL, "test-key", "/v1/messages")
    assert request.method == ("streamGenerateContent" if stream else "generateContent")


@streamed
def test_tool_calls_and_their_results(anthropic, stream):
    def script(request: AnthropicRequest) -> Reply:
        if request.function_responses:
            return text(" ".join(str(answer["response"]["result"]) for answer in request.function_responses))
        return calls([("stock", {"item": "tea"}), ("stock", {"item": "rye"})])

    server = anthropic(script)

    asked = ask("how much?", tools=[STOCK], stream=stream)
    assert asked.stop_reason == "tool_use"
    assert [(block.name, block.input) for block in asked.content] == [("stock", {"item": "tea"}), ("stock", {"item": "rye"})]
    assert len({block.id for block in asked.content}) == 2

    results = [{"type": "tool_result", "tool_use_id": block.id, "content": str(n)} for n, block in enumerate(asked.content)]
    history = [
        {"role": "user", "content": "how much?"},
        {
            "role": "assistant",
            "content": [block.model_dump(include={"type", "id", "name", "input"}) for block in asked.content],
        },
        {"role": "user", "content": results},
    ]
    assert ask(tools=[STOCK], messages=history, stream=stream).content[0].text == "0 1"
    assert server.requests[0].tools == {"stock": STOCK}
    assert server.requests[1].last_text == ""
    assert server.requests[1].function_responses[1] == {
        "name": "stock",
        "response": {"result": 1},
        "id": asked.content[1].id,
    }


@streamed
@pytest.mark.parametrize(
    ("value", "sent"), [({"city": "Zürich"}, {"city": "Zürich"}), ([1, 2], {"response": [1, 2]})], ids=["object", "list"]
)
def test_a_forced_tool_is_called_with_the_structured_answer(anthropic, stream, value, sent):
    server = anthropic(lambda request: structured(value))
    schema = {"type": "object", "properties": {name: {} for name in sent}}
    tool = {"name": "answer", "input_schema": schema}

    message = ask(tools=[tool], tool_choice={"type": "tool", "name": "answer"}, stream=stream)
    assert [(block.name, block.input) for block in message.content] == [("answer", sent)]
    assert server.requests[0].response_schema == schema


ERRORS = {
    400: ("BadRequestError", "invalid_request_error"),
    401: ("AuthenticationError", "authentication_error"),
    403: ("PermissionDeniedError", "permission_error"),
    429: ("RateLimitError", "rate_limit_error"),
    500: ("InternalServerError", "api_error"),
    529: ("APIStatusError", "overloaded_error"),
}


@streamed
def test_errors_arrive_as_the_clients_own(anthropic, stream):
    anthropic(lambda request: error(int(request.last_text), message="not like this", retry_delay=2.0))

    for code, (kind, named) in ERRORS.items():
        with pytest.raises(getattr(anthropic_sdk, kind), match="not like this") as raised:
            ask(str(code), stream=stream)
        assert raised.value.status_code == code
        assert raised.value.body["error"]["type"] == named
        assert raised.value.response.headers["retry-after"] == "2"


@streamed
def test_a_cut_answer_is_no_answer(anthropic, stream):
    anthropic(lambda request: cut("one two three four"))

    # A connection error of the client, or in a stream its transport's own.
    with pytest.raises(Exception, match=r"Connection error|peer closed connection") as raised:
        ask(stream=stream)
    assert not isinstance(raised.value, anthropic_sdk.APIStatusError)


def test_a_slow_answer_meets_the_clients_timeout(anthropic):
    anthropic(lambda request: slow("late", 60))

    with pytest.raises(anthropic_sdk.APITimeoutError):
        ask(timeout=0.2)


def test_a_raw_message_is_sent_as_it_is(anthropic):
    body = {
        "id": "msg_x",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [{"type": "text", "text": "that was"}],
        "stop_reason": "max_tokens",
        "usage": {"input_tokens": 1, "output_tokens": 2},
    }
    anthropic(lambda request: raw(body))

    assert ask().stop_reason == "max_tokens"


def test_vertex_ai_serves_the_same_api():
    with AnthropicServer(lambda request: call("stock", {"model": request.model}, id="toolu_x")) as server:
        client = anthropic_sdk.AnthropicVertex(region="l", project_id="p", access_token="a-token", base_url=f"{server.url}/v1")
        arguments: dict[str, Any] = {"max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
        message = client.messages.create(model=MODEL, **arguments)
    assert (message.content[0].id, message.content[0].input) == ("toolu_x", {"model": MODEL})
    assert server.requests[0].api_key == "a-token"


def test_unknown_paths_are_not_found(anthropic):
    server = anthropic(lambda request: "never")

    with pytest.raises(anthropic_sdk.NotFoundError):
        anthropic_sdk.Anthropic(max_retries=0).models.list()
    assert server.requests == []
