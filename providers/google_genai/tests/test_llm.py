"""Models by connection: whose credentials go out, what stays of the agent's own model, and errors that hold no key."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import traceback
from typing import Any

import pytest
from adk_airflow_google_genai import GoogleGenAIConnectionError, make_llm
from google.adk.agents import LlmAgent
from google.adk.models.apigee_llm import ApigeeLlm
from google.adk.models.base_llm import BaseLlm
from google.adk.models.google_llm import Gemini
from google.adk.models.llm_request import LlmRequest
from google.adk.runners import InMemoryRunner
from google.genai import Client, types
from google.genai.errors import ClientError, ServerError
from pydantic import PrivateAttr

MODEL = "gemini-2.5-flash"


async def ask(llm: BaseLlm, *, stream: bool = False) -> str:
    content = types.Content(role="user", parts=[types.Part(text="hi")])
    request = LlmRequest(model=llm.model, contents=[content], config=types.GenerateContentConfig())
    texts = [response.content.parts[0].text async for response in llm.generate_content_async(request, stream=stream)]
    return texts[-1]


def refused(llm: BaseLlm, **kwargs: Any) -> GoogleGenAIConnectionError:
    with pytest.raises(GoogleGenAIConnectionError) as caught:
        asyncio.run(ask(llm, **kwargs))
    return caught.value


def everything(error: BaseException) -> str:
    """All that a log could show of an error: the traceback with all its chain, the arguments and the attributes."""
    parts, seen = [*traceback.format_exception(error)], error
    while seen is not None:
        parts += [str(seen), repr(seen), repr(seen.args), repr(vars(seen))]
        response = getattr(seen, "response", None)
        if response is not None:
            parts.append(repr(response.request.headers.raw))
        seen = seen.__cause__ or seen.__context__
    return "\n".join(parts)


# -- whose credentials ---------------------------------------------------------------------------------------


def test_the_key_and_the_address_of_the_connection_are_used(cloud, gemini_connection):
    assert asyncio.run(ask(make_llm(MODEL, gemini_connection()))) == "hello"
    (request,) = cloud.requests
    assert request.path == f"/v1beta/models/{MODEL}:generateContent"
    assert request.headers["x-goog-api-key"] == cloud.key
    assert "google-adk" in request.headers["user-agent"]


def test_two_agents_with_two_connections_do_not_see_each_others(cloud, gemini_connection, vertex_connection):
    connections = [gemini_connection("one", key="key-one"), gemini_connection("two", key="key-two"), vertex_connection()]

    async def run() -> None:
        llms = [make_llm(MODEL, connection) for connection in connections]
        await asyncio.gather(*(ask(llm) for llm in llms for _ in range(3)))

    before = dict(os.environ)
    asyncio.run(run())
    keys = [request.headers.get("x-goog-api-key") for request in cloud.requests]
    assert {key: keys.count(key) for key in keys} == {"key-one": 3, "key-two": 3, None: 3}
    assert all("publishers/google" in request.path for request in cloud.requests if "x-goog-api-key" not in request.headers)
    assert dict(os.environ) == before


def test_an_unmodified_agent_runs_in_adks_runner(cloud, gemini_connection):
    agent = LlmAgent(name="greeter", model=MODEL, instruction="Greet.")
    agent.model = make_llm(agent.model, gemini_connection())
    events = asyncio.run(InMemoryRunner(agent=agent, app_name="greet").run_debug("hi", quiet=True))
    assert events[-1].content.parts[0].text == "hello"
    assert cloud.requests[0].headers["x-goog-api-key"] == cloud.key


@pytest.mark.parametrize("name", ["GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_GENAI_USE_VERTEXAI"])
def test_a_gemini_connection_stays_one_where_the_environment_is_set_for_vertex_ai(name, cloud, gemini_connection, monkeypatch):
    monkeypatch.setenv(name, "true")
    asyncio.run(ask(make_llm(MODEL, gemini_connection())))
    assert cloud.requests[0].path == f"/v1beta/models/{MODEL}:generateContent"


def test_vertex_ai_is_asked_with_a_token_of_the_service_account(cloud, vertex_connection):
    assert asyncio.run(ask(make_llm(MODEL, vertex_connection()))) == "hello"
    (request,) = cloud.requests
    place = "projects/my-project/locations/europe-west1"
    assert request.path == f"/v1beta1/{place}/publishers/google/models/{MODEL}:generateContent"
    assert request.headers["authorization"] == f"Bearer {cloud.token}"
    assert "x-goog-api-key" not in request.headers
    assert len(cloud.assertions) == 1


def test_without_a_key_vertex_ai_is_asked_with_the_default_credentials(
    cloud, vertex_connection, key_json, tmp_path, monkeypatch
):
    (tmp_path / "key.json").write_text(key_json)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
    monkeypatch.setenv("GOOGLE_GENAI_USE_ENTERPRISE", "true")
    asyncio.run(ask(make_llm(MODEL, vertex_connection(key=None))))
    assert cloud.requests[0].headers["authorization"] == f"Bearer {cloud.token}"
    assert "/projects/my-project/locations/europe-west1/" in cloud.requests[0].path


def test_one_model_serves_several_event_loops(cloud, gemini_connection):
    llm = make_llm(MODEL, gemini_connection())
    assert [asyncio.run(ask(llm)) for _ in range(3)] == ["hello"] * 3
    assert {request.headers["x-goog-api-key"] for request in cloud.requests} == {cloud.key}


# -- what stays of the model ---------------------------------------------------------------------------------


def test_a_gemini_object_keeps_its_fields_and_is_not_changed(cloud, gemini_connection):
    own = Gemini(
        model="gemini-2.5-pro",
        retry_options=types.HttpRetryOptions(attempts=2, initial_delay=0.01, jitter=0.0, http_status_codes=[503]),
        client_kwargs={
            "api_key": "key-of-the-code",
            "http_options": {"headers": {"X-Team": "maps"}, "timeout": 20_000, "baseUrl": "http://127.0.0.1:9"},
        },
    )
    llm = make_llm(own, gemini_connection())
    assert isinstance(llm, Gemini)
    assert (llm.model, llm.retry_options) == ("gemini-2.5-pro", own.retry_options)
    assert own.client_kwargs["api_key"] == "key-of-the-code"

    cloud.refuse(503, "UNAVAILABLE", "overloaded")
    with pytest.raises(ServerError):
        asyncio.run(ask(llm))
    assert [request.headers["x-goog-api-key"] for request in cloud.requests] == [cloud.key, cloud.key]
    assert {request.headers["x-team"] for request in cloud.requests} == {"maps"}


def test_a_location_in_the_code_stays_and_a_project_does_not(cloud, vertex_connection):
    own = Gemini(model=MODEL, client_kwargs={"vertexai": True, "project": "project-of-the-code", "location": "us-east1"})
    asyncio.run(ask(make_llm(own, vertex_connection())))
    assert "/projects/my-project/locations/us-east1/" in cloud.requests[0].path


def test_nothing_that_a_model_has_cached_or_pinned_is_used_on(cloud, gemini_connection):
    options = {"base_url": cloud.url}
    used = Gemini(model=MODEL, client_kwargs={"enterprise": False, "api_key": "key-of-the-code", "http_options": options})
    pinned = Gemini(model=MODEL, client=Client(enterprise=False, api_key="key-of-the-code", http_options=options))

    async def run() -> None:
        for own in (used, pinned):
            await ask(own)
            await ask(make_llm(own, gemini_connection()))
            await ask(own)

    asyncio.run(run())
    keys = [request.headers["x-goog-api-key"] for request in cloud.requests]
    assert keys == ["key-of-the-code", cloud.key, "key-of-the-code"] * 2


def test_a_class_of_the_users_keeps_its_behaviour_but_not_its_client(cloud, gemini_connection):
    class Polite(Gemini):
        _said: str = PrivateAttr(default="please")
        word: str = "thanks"

        @property
        def api_client(self) -> Client:
            return Client(enterprise=False, api_key="key-of-the-code", http_options={"base_url": cloud.url})

        async def generate_content_async(self, llm_request, stream=False):
            llm_request.contents[-1].parts.append(types.Part(text=f"{self._said}, {self.word}"))
            async for response in super().generate_content_async(llm_request, stream):
                yield response

    llm = make_llm(Polite(model=MODEL, word="cheers"), gemini_connection())
    assert isinstance(llm, Polite)
    asyncio.run(ask(llm))
    assert cloud.requests[0].headers["x-goog-api-key"] == cloud.key
    assert cloud.requests[0].body["contents"][0]["parts"][1]["text"] == "please, cheers"


@pytest.mark.parametrize("model", ["gemma-4-31b-it", "gemini-3-pro-preview", "gemini:gemini-2.5-flash"])
def test_every_name_that_adk_takes_for_gemini_is_taken(model, gemini_connection):
    assert isinstance(make_llm(model, gemini_connection()), Gemini)


def test_models_of_others_are_refused(gemini_connection):
    class Other(BaseLlm):
        async def generate_content_async(self, llm_request, stream=False):
            yield None

    with pytest.raises(GoogleGenAIConnectionError, match=r"Connection 'gemini'.*'other-1' is run by Other.*llm_conn_id"):
        make_llm(Other(model="other-1"), gemini_connection())
    apigee = ApigeeLlm(model="apigee/gemini/v1/gemini-2.5-flash", proxy_url="http://127.0.0.1:9")
    with pytest.raises(GoogleGenAIConnectionError, match="run by ApigeeLlm"):
        make_llm(apigee, gemini_connection())
    with pytest.raises(GoogleGenAIConnectionError, match="google_genai_vertex"):
        make_llm("projects/p/locations/l/endpoints/1", gemini_connection())


# -- refusals ------------------------------------------------------------------------------------------------

REFUSALS = {
    "unknown key": (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", "API_KEY_INVALID"),
    "unknown key, no reason": (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", None),
    "expired key": (400, "INVALID_ARGUMENT", "API key expired. Please renew the API key.", "API_KEY_INVALID"),
    "no key": (401, "UNAUTHENTICATED", "Request had invalid authentication credentials.", "ACCESS_TOKEN_TYPE_UNSUPPORTED"),
    "suspended key": (403, "PERMISSION_DENIED", "Consumer 'api_key:{key}' has been suspended.", "CONSUMER_SUSPENDED"),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
def test_a_refused_key_is_one_error_that_names_the_connection_and_never_the_key(refusal, stream, cloud, gemini_connection):
    cloud.refuse(*refusal)
    error = refused(make_llm(MODEL, gemini_connection("my_gemini")), stream=stream)
    assert str(error).startswith("Connection 'my_gemini': Google refuses the API key")
    assert refusal[1] in str(error)
    assert "field API key" in str(error)
    assert (error.conn_id, error.code, error.permanent) == ("my_gemini", refusal[0], True)
    assert (error.__cause__, error.__context__) == (None, None)
    assert cloud.key not in everything(error)
    assert len(cloud.requests) == 1


def test_a_refusal_is_one_error_through_adks_runner_too(cloud, gemini_connection):
    cloud.refuse(*REFUSALS["suspended key"])
    agent = LlmAgent(name="greeter", model=make_llm(MODEL, gemini_connection("my_gemini")))
    with pytest.raises(GoogleGenAIConnectionError, match="'my_gemini'") as caught:
        asyncio.run(InMemoryRunner(agent=agent, app_name="greet").run_debug("hi", quiet=True))
    assert cloud.key not in everything(caught.value)


def test_the_interactions_api_is_refused_in_the_same_words(cloud, gemini_connection):
    cloud.refuse(*REFUSALS["suspended key"])
    error = refused(make_llm(Gemini(model=MODEL, use_interactions_api=True), gemini_connection("my_gemini")))
    assert "interactions" in cloud.requests[0].path
    assert str(error).startswith("Connection 'my_gemini': Google refuses the API key (403")
    assert cloud.key not in everything(error)


def test_vertex_ai_refuses_a_service_account_that_lacks_the_role(cloud, vertex_connection):
    cloud.refuse(403, "PERMISSION_DENIED", "Permission 'aiplatform.endpoints.predict' denied.", "IAM_PERMISSION_DENIED")
    error = refused(make_llm(MODEL, vertex_connection("my_vertex")))
    assert str(error).startswith("Connection 'my_vertex': Google refuses the credentials, in project 'my-project'")
    assert "roles/aiplatform.user" in str(error)
    assert cloud.token not in everything(error)


def test_a_token_that_google_does_not_give_is_the_connections_fault(cloud, vertex_connection, private_key):
    cloud.token_error = {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}
    error = refused(make_llm(MODEL, vertex_connection("my_vertex")))
    assert str(error).startswith("Connection 'my_vertex': Google gives no access token")
    assert "Invalid JWT Signature" in str(error)
    assert private_key.splitlines()[1] not in everything(error)
    assert cloud.requests == []


def test_a_worker_without_default_credentials_is_told_what_to_do(vertex_connection):
    error = refused(make_llm(MODEL, vertex_connection("my_vertex", key=None)))
    assert "'my_vertex'" in str(error)
    assert "no default credentials" in str(error)


@pytest.mark.parametrize(
    ("status", "name", "kind"),
    [
        (400, "INVALID_ARGUMENT", ClientError),
        (404, "NOT_FOUND", ClientError),
        (429, "RESOURCE_EXHAUSTED", ClientError),
        (500, "INTERNAL", ServerError),
        (503, "UNAVAILABLE", ServerError),
    ],
)
def test_other_errors_are_google_genais_own(status, name, kind, cloud, gemini_connection):
    cloud.refuse(status, name, "no luck today")
    with pytest.raises(kind, match="no luck today") as caught:
        asyncio.run(ask(make_llm(MODEL, gemini_connection())))
    assert caught.value.code == status


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("status", "interactions"),
    # The Interactions API asks again for some seconds after the others.
    [*((status, False) for status in (400, 404, 408, 429, 500, 503, 504)), (400, True), (404, True)],
)
def test_no_error_quotes_the_key_and_its_class_and_status_stay(status, stream, interactions, cloud, gemini_connection):
    def ask_once(message: str) -> Exception:
        cloud.refuse(status, "UNAVAILABLE", message)
        options = types.HttpRetryOptions(attempts=1)
        llm = make_llm(Gemini(model=MODEL, use_interactions_api=interactions, retry_options=options), gemini_connection())
        with pytest.raises(Exception, match=str(status)) as caught:
            asyncio.run(ask(llm, stream=stream))
        return caught.value

    plain, quoting = ask_once("no luck with key"), ask_once("no luck with key {key}")
    shown = [str(part) for part in walk(quoting)]
    assert cloud.key not in "".join(shown)
    assert "no luck with key ***" in "".join(shown)
    assert type(quoting) is type(plain)
    assert getattr(quoting, "code", None) == getattr(plain, "code", None)
    assert "no luck with key" in str(plain)


def walk(error: BaseException | None) -> list[Any]:
    """All that an error and those below it say."""
    parts: list[Any] = []
    while error is not None:
        parts += [str(error), error.args, vars(error), *traceback.format_exception_only(error)]
        error = error.__cause__ or error.__context__
    return parts


def test_a_key_of_somebody_else_is_masked_too(cloud, gemini_connection):
    cloud.refuse(500, "INTERNAL", "upstream key AIzaSyA-0123456789abcdefghijklmnopqrs failed")
    with pytest.raises(ServerError, match=r"upstream key \*\*\* failed"):
        asyncio.run(ask(make_llm(MODEL, gemini_connection())))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("where", ["client", "request"])
def test_a_request_that_takes_too_long_names_model_and_limit(where, stream, cloud, gemini_connection):
    cloud.answering.clear()
    options = types.HttpOptions(timeout=300)
    llm = make_llm(
        Gemini(model=MODEL, client_kwargs={"http_options": options} if where == "client" else {}), gemini_connection()
    )
    request = LlmRequest(
        model=MODEL,
        contents=[types.Content(role="user", parts=[types.Part(text="hi")])],
        config=types.GenerateContentConfig(http_options=options if where == "request" else None),
    )

    async def run() -> None:
        async for _ in llm.generate_content_async(request, stream=stream):
            pass

    with pytest.raises(TimeoutError) as caught:
        asyncio.run(run())
    assert type(caught.value) is TimeoutError
    assert str(caught.value).startswith(f"Connection 'gemini': model '{MODEL}' gave no answer within 0.3 s. Give it longer")


# -- nothing shows the key -----------------------------------------------------------------------------------


def test_no_credential_is_in_repr_dump_or_log(cloud, gemini_connection, vertex_connection, private_key, caplog):
    caplog.set_level(logging.DEBUG)
    secret = json.dumps(private_key)[30:60]
    for connection in (gemini_connection(), vertex_connection()):
        llm = make_llm(MODEL, connection)
        asyncio.run(ask(llm))
        agent = LlmAgent(name="greeter", model=llm)
        shown = (
            f"{llm!r} {llm} {llm.model_dump()} {llm.model_dump_json()} {agent!r} {agent.model_dump(exclude={'parent_agent'})}"
        )
        shown += f"{llm._account!r}"
        for credential in (cloud.key, cloud.token, secret):
            assert credential not in shown
            assert credential not in caplog.text
    assert caplog.text.count("Sending out request") == 2
