"""google-genai's own client against the local Gemini server: each method, each error, each way to end badly."""

from __future__ import annotations

import asyncio
import math
import threading
from typing import Any

import google.auth.credentials
import httpx
import pytest
from google import genai
from google.genai import errors, types

from tests.servers.gemini import (
    GeminiRequest,
    GeminiServer,
    Reply,
    ScriptError,
    call,
    calls,
    cut,
    error,
    raw,
    slow,
    structured,
    text,
)

MODEL = "gemini-2.5-flash"
CLOCK = types.Tool(
    function_declarations=[
        types.FunctionDeclaration(
            name="clock", description="Tells the time.", parameters_json_schema={"type": "object", "properties": {}}
        )
    ]
)


class Token(google.auth.credentials.Credentials):
    """Credentials that have their token already, so that no token server is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.token = "a-token"

    def refresh(self, request: object) -> None:
        raise AssertionError("the token is still good")


def vertex(server: GeminiServer) -> genai.Client:
    return genai.Client(
        vertexai=True, project="p", location="l", credentials=Token(), http_options=types.HttpOptions(base_url=server.url)
    )


def generate(
    stream: bool, is_async: bool, client: genai.Client | None = None, **arguments: Any
) -> list[types.GenerateContentResponse]:
    """What a client (a new one) gets for a prompt: the one response, or all chunks."""
    client = client or genai.Client()

    async def asynchronously() -> list[types.GenerateContentResponse]:
        if stream:
            return [chunk async for chunk in await client.aio.models.generate_content_stream(**arguments)]
        return [await client.aio.models.generate_content(**arguments)]

    if is_async:
        return asyncio.run(asynchronously())
    if stream:
        return list(client.models.generate_content_stream(**arguments))
    return [client.models.generate_content(**arguments)]


ways = pytest.mark.parametrize(
    ("stream", "is_async"),
    [(False, False), (False, True), (True, False), (True, True)],
    ids=["sync", "async", "stream", "async-stream"],
)


@ways
def test_a_text(gemini, stream, is_async):
    server = gemini(lambda request: f"you said {request.last_text}, a few words")

    chunks = generate(stream, is_async, model=MODEL, contents="good morning")

    assert "".join(chunk.text for chunk in chunks) == "you said good morning, a few words"
    assert len(chunks) == (4 if stream else 1)
    assert [chunk.candidates[0].finish_reason for chunk in chunks] == [None] * (len(chunks) - 1) + ["STOP"]
    assert chunks[-1].usage_metadata.total_token_count == 2 + 7
    (request,) = server.requests
    assert (request.method, request.model) == ("streamGenerateContent" if stream else "generateContent", MODEL)
    assert request.api_key == "test-key"


@ways
def test_function_calls_and_their_responses(gemini, stream, is_async):
    def script(request: GeminiRequest) -> Reply:
        if request.function_responses:
            return text(" and ".join(answer["response"]["time"] for answer in request.function_responses))
        return calls([("clock", {"city": "Bern"}), ("clock", {"city": "Oslo"})])

    server = gemini(script)
    config = types.GenerateContentConfig(
        tools=[CLOCK], automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True)
    )

    chunks = generate(stream, is_async, model=MODEL, contents="how late is it?", config=config)
    asked = [part.function_call for chunk in chunks for part in chunk.candidates[0].content.parts]
    assert [(each.name, each.args, each.id) for each in asked] == [
        ("clock", {"city": "Bern"}, None),
        ("clock", {"city": "Oslo"}, None),
    ]

    answers = [types.Part.from_function_response(name=each.name, response={"time": each.args["city"]}) for each in asked]
    contents = [
        types.UserContent("how late is it?"),
        types.ModelContent([types.Part(function_call=each) for each in asked]),
        types.UserContent(answers),
    ]
    chunks = generate(stream, is_async, model=MODEL, contents=contents, config=config)
    assert "".join(chunk.text for chunk in chunks) == "Bern and Oslo"
    first, second = server.requests
    assert list(first.tools) == ["clock"]
    assert first.tools["clock"]["description"] == "Tells the time."
    assert first.function_responses == []
    assert second.function_responses[0] == {"name": "clock", "response": {"time": "Bern"}, "id": None}
    assert (first.last_text, second.last_text) == ("how late is it?", "")


def test_a_call_id_is_sent_when_it_is_given(gemini):
    gemini(lambda request: call("clock", id="call-7"))

    (response,) = generate(False, False, model=MODEL, contents="now?")
    assert response.function_calls[0].id == "call-7"
    assert response.function_calls[0].args == {}


@ways
def test_structured_output_and_a_system_instruction(gemini, stream, is_async):
    server = gemini(lambda request: structured({"city": "Zürich", "inhabitants": 443_037}))
    schema = {"type": "object", "properties": {"city": {"type": "string"}, "inhabitants": {"type": "integer"}}}
    config = types.GenerateContentConfig(
        system_instruction="Be exact.", response_mime_type="application/json", response_json_schema=schema
    )

    chunks = generate(stream, is_async, model=MODEL, contents="which city?", config=config)

    assert "".join(chunk.text for chunk in chunks) == '{"city": "Zürich", "inhabitants": 443037}'
    (request,) = server.requests
    assert request.response_schema == schema
    assert request.system == "Be exact."


ERRORS = {
    400: ("INVALID_ARGUMENT", errors.ClientError),
    401: ("UNAUTHENTICATED", errors.ClientError),
    403: ("PERMISSION_DENIED", errors.ClientError),
    404: ("NOT_FOUND", errors.ClientError),
    429: ("RESOURCE_EXHAUSTED", errors.ClientError),
    500: ("INTERNAL", errors.ServerError),
    503: ("UNAVAILABLE", errors.ServerError),
}


@ways
def test_errors_arrive_as_the_clients_own(gemini, stream, is_async):
    server = gemini(lambda request: error(int(request.last_text), message="not like this"))
    client = genai.Client()

    for code, (status, kind) in ERRORS.items():
        with pytest.raises(kind) as raised:
            generate(stream, is_async, client, model=MODEL, contents=str(code))
        assert (raised.value.code, raised.value.status, raised.value.message) == (code, status, "not like this")
    assert len(server.requests) == len(ERRORS)


def test_an_error_says_when_to_come_again(gemini):
    gemini(lambda request: error(429, "RESOURCE_EXHAUSTED", "too fast", retry_delay=2.5))

    with pytest.raises(errors.ClientError) as raised:
        generate(False, False, model=MODEL, contents="hello")
    assert raised.value.details["error"]["details"] == [
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "2.5s"}
    ]


def test_an_error_says_that_the_key_is_wrong(gemini):
    gemini(lambda request: error(400, message="API key not valid.", reason="API_KEY_INVALID"))

    with pytest.raises(errors.ClientError, match="API_KEY_INVALID") as raised:
        generate(False, False, model=MODEL, contents="hello")
    assert raised.value.details["error"]["details"][0]["@type"] == "type.googleapis.com/google.rpc.ErrorInfo"


@ways
def test_an_answer_may_hold_nothing(gemini, stream, is_async):
    gemini(lambda request: calls([]))

    (response,) = generate(stream, is_async, model=MODEL, contents="hello")
    assert response.text is None
    assert response.candidates[0].finish_reason == "STOP"


def test_requests_at_the_same_time_are_answered_side_by_side(gemini):
    together = threading.Barrier(8, timeout=30)

    def script(request: GeminiRequest) -> str:
        together.wait()  # passes only if all eight are being answered at once
        return request.last_text

    gemini(script)

    async def ask() -> list[str]:
        client = genai.Client()
        asked = [client.aio.models.generate_content(model=MODEL, contents=f"question {n}") for n in range(8)]
        return [response.text for response in await asyncio.gather(*asked)]

    assert asyncio.run(ask()) == [f"question {n}" for n in range(8)]


def test_nothing_listens_after_the_block():
    with GeminiServer(lambda request: "hello") as server:
        assert httpx.post(f"{server.url}/v1beta/models/m:generateContent", json={"contents": []}).status_code == 200
    with pytest.raises(httpx.ConnectError):
        httpx.get(server.url)


def test_no_key_is_in_a_requests_repr(gemini):
    server = gemini(lambda request: "hello")

    generate(False, False, model=MODEL, contents="hello")
    assert server.requests[0].api_key == "test-key"
    assert "test-key" not in repr(server.requests)


def test_the_clients_own_retries_come_as_further_requests(gemini):
    answers = [error(503), error(429), text("at last")]
    server = gemini(lambda request: answers[len(server.requests) - 1])
    client = genai.Client(
        http_options=types.HttpOptions(retry_options=types.HttpRetryOptions(attempts=3, initial_delay=0.01, jitter=0.0))
    )

    assert client.models.generate_content(model=MODEL, contents="hello").text == "at last"
    assert len(server.requests) == 3


@ways
def test_a_cut_answer_is_the_transports_error(gemini, stream, is_async):
    gemini(lambda request: cut("one two three four five six"))

    with pytest.raises(Exception, match=r"peer closed connection|payload is not completed") as raised:
        generate(stream, is_async, model=MODEL, contents="count")
    assert not isinstance(raised.value, errors.APIError)


def test_a_cut_stream_gives_its_first_chunks(gemini):
    gemini(lambda request: cut("one two three four"))
    client = genai.Client()
    chunks = client.models.generate_content_stream(model=MODEL, contents="count")

    assert [next(chunks).text, next(chunks).text] == ["one ", "two "]
    with pytest.raises(Exception, match="peer closed connection"):
        next(chunks)


def test_a_slow_answer_meets_the_clients_timeout():
    with GeminiServer(lambda request: slow("late", 60)) as server:
        client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=server.url, timeout=200))
        with pytest.raises(Exception, match="timed out"):
            client.models.generate_content(model=MODEL, contents="hello")
    assert len(server.requests) == 1  # and the end of the block did not wait for the minute


@ways
def test_a_slow_answer_comes(gemini, stream, is_async):
    gemini(lambda request: slow(text("late"), 0.05))

    assert "".join(chunk.text for chunk in generate(stream, is_async, model=MODEL, contents="hello")) == "late"


def cosine(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


TEXTS = ["cats and dogs", "Dogs and cats", "the price of oil"]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(("model", "is_vertex"), [("gemini-embedding-001", False), ("text-embedding-005", True)])
def test_embeddings_of_similar_texts_are_near(gemini, is_async, model, is_vertex):
    server = gemini(lambda request: text("scripts need not think of embeddings"))
    client = vertex(server) if is_vertex else genai.Client()

    def embed(texts: list[str]) -> list[list[float]]:
        if is_async:
            response = asyncio.run(client.aio.models.embed_content(model=model, contents=texts))
        else:
            response = client.models.embed_content(model=model, contents=texts)
        return [embedding.values for embedding in response.embeddings]

    one, same, other = embed(TEXTS)
    assert one == same
    assert cosine(one, other) < 0.5
    assert math.isclose(cosine(one, one), 1.0, abs_tol=1e-4)
    (request,) = server.requests
    assert request.texts == TEXTS
    assert (request.method, request.model) == ("predict" if is_vertex else "batchEmbedContents", model)


@pytest.mark.parametrize("is_vertex", [False, True])
def test_embeddings_have_the_length_that_is_asked_for(gemini, is_vertex):
    server = gemini(lambda request: None)
    client = vertex(server) if is_vertex else genai.Client()
    config = types.EmbedContentConfig(output_dimensionality=8)

    for model in ("gemini-embedding-001", "gemini-embedding-2-preview"):
        response = client.models.embed_content(model=model, contents="cats", config=config)
        assert [len(embedding.values) for embedding in response.embeddings] == [8]
    methods = ["predict", "embedContent"] if is_vertex else ["batchEmbedContents"] * 2
    assert [request.method for request in server.requests] == methods


def test_the_single_embedding_of_the_rest_api(gemini):
    server = gemini(lambda request: None)

    answer = httpx.post(
        f"{server.url}/v1beta/models/gemini-embedding-001:embedContent?key=abc",
        json={"content": {"parts": [{"text": "cats"}]}, "outputDimensionality": 4},
    )
    assert len(answer.json()["embedding"]["values"]) == 4
    assert server.requests[0].api_key == "abc"
    assert server.requests[0].last_text == "cats"


def test_a_script_may_answer_embeddings_itself(gemini):
    def script(request: GeminiRequest) -> Reply:
        return error(429) if "oil" in request.texts else raw({"embeddings": [{"values": [1.0, 2.0]}]})

    gemini(script)
    client = genai.Client()

    response = client.models.embed_content(model="gemini-embedding-001", contents="cats")
    assert response.embeddings[0].values == [1.0, 2.0]
    with pytest.raises(errors.ClientError, match="RESOURCE_EXHAUSTED"):
        client.models.embed_content(model="gemini-embedding-001", contents=["cats", "oil"])


@pytest.mark.parametrize("is_async", [False, True])
def test_tokens_are_counted_in_words(gemini, is_async):
    server = gemini(lambda request: None)
    client = genai.Client()

    if is_async:
        counted = asyncio.run(client.aio.models.count_tokens(model=MODEL, contents="one two three"))
    else:
        counted = client.models.count_tokens(model=MODEL, contents="one two three")
    assert counted.total_tokens == 3
    assert server.requests[0].method == "countTokens"


def test_vertex_ai_is_the_same_api_under_longer_paths(gemini):
    server = gemini(lambda request: text("from Vertex"))
    client = vertex(server)

    assert client.models.generate_content(model=MODEL, contents="hello").text == "from Vertex"
    chunks = list(client.models.generate_content_stream(model=MODEL, contents="hello"))
    assert "".join(chunk.text for chunk in chunks) == "from Vertex"
    assert client.models.count_tokens(model=MODEL, contents="one two").total_tokens == 2
    assert [request.method for request in server.requests] == ["generateContent", "streamGenerateContent", "countTokens"]
    assert {request.model for request in server.requests} == {MODEL}
    assert server.requests[0].path == f"/v1beta1/projects/p/locations/l/publishers/google/models/{MODEL}:generateContent"
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer a-token"}
    assert server.requests[0].api_key is None


@ways
def test_a_raw_body_is_sent_as_it_is(gemini, stream, is_async):
    parts = [{"text": "let me think", "thought": True}, {"text": "42"}]
    gemini(lambda request: raw({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}))

    (response,) = generate(stream, is_async, model=MODEL, contents="what is it?")
    assert [(part.text, part.thought) for part in response.candidates[0].content.parts] == [
        ("let me think", True),
        ("42", None),
    ]


def test_an_exception_in_the_script_fails_the_request_and_the_block():
    def script(request: GeminiRequest) -> Reply:
        raise KeyError("no such turn")

    server = GeminiServer(script).__enter__()
    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=server.url))
    with pytest.raises(errors.ServerError, match="KeyError: 'no such turn'"):
        client.models.generate_content(model=MODEL, contents="hello")
    with pytest.raises(ScriptError, match="no such turn") as raised:
        server.__exit__(None, None, None)
    assert isinstance(raised.value.__cause__, KeyError)


def test_a_failure_of_the_block_stays_and_tells_of_the_script():
    def ask() -> None:
        with GeminiServer(lambda request: 7) as server:
            client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=server.url))
            client.models.generate_content(model=MODEL, contents="hello")

    with pytest.raises(errors.ServerError) as raised:
        ask()
    (note,) = raised.value.__notes__
    assert f"the script of GeminiServer failed 1 time(s), first on /v1beta/models/{MODEL}:generateContent" in note
    assert "the script answered 7" in note


def test_unknown_paths_are_not_found(gemini):
    server = gemini(lambda request: text("never"))

    answer = httpx.get(f"{server.url}/v1beta/models")
    assert (answer.status_code, answer.json()["error"]["status"]) == (404, "NOT_FOUND")
    assert server.requests == []


def test_servers_stand_side_by_side(gemini):
    first, second = gemini(lambda request: "one"), gemini(lambda request: "two")

    clients = [
        genai.Client(api_key=key, http_options=types.HttpOptions(base_url=server.url))
        for key, server in (("key-1", first), ("key-2", second))
    ]
    assert [client.models.generate_content(model=MODEL, contents="hello").text for client in clients] == ["one", "two"]
    assert [server.requests[0].api_key for server in (first, second)] == ["key-1", "key-2"]
    (last,) = generate(False, False, model=MODEL, contents="hello")
    assert last.text == "two"
