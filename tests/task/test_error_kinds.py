"""What kind of error a real client raises, as far as another try goes, and how long its server asks to wait."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import aiohttp
import anthropic as anthropic_sdk
import httpx
import pytest
import requests
from airflow.sdk.exceptions import AirflowNotFoundException
from google import genai
from google.adk.agents import LlmAgent
from google.adk.models.anthropic_llm import AnthropicLlm, _AnthropicRateLimitError
from google.adk.models.google_llm import _ResourceExhaustedError
from google.adk.models.llm_request import LlmRequest
from google.adk.workflow import NodeTimeoutError
from google.adk.workflow._errors import DynamicNodeFailError
from google.api_core import exceptions as api_core
from google.auth.exceptions import DefaultCredentialsError, RefreshError, TransportError
from google.genai import types
from google.genai.errors import APIError, ClientError, ServerError
from google.rpc.error_details_pb2 import RetryInfo

from adk_airflow import errors
from adk_airflow.runtime.error_kinds import Kind, is_permanent, kind_of
from tests.servers.anthropic import AnthropicRequest, AnthropicServer
from tests.servers.gemini import GeminiRequest, GeminiServer, Reply, cut, error, reset, slow, text, then

Gemini = Callable[[Callable[[GeminiRequest], Any]], GeminiServer]
Anthropic = Callable[[Callable[[AnthropicRequest], Any]], AnthropicServer]

REFUSED, BUSY, INTERRUPTED, UNKNOWN = Kind.REFUSED, Kind.BUSY, Kind.INTERRUPTED, Kind.UNKNOWN
MODEL = "gemini-2.5-flash"


def raised_by(call: Callable[[], Any]) -> BaseException:
    with pytest.raises(Exception) as raised:  # noqa: PT011
        call()
    return raised.value


def found(failure: BaseException) -> tuple[Kind, float | None]:
    finding = kind_of(failure)
    return finding.kind, finding.wait


# -- the clients of models ---------------------------------------------------------------------------------

ANSWERS: dict[str, tuple[Reply, Kind, float | None]] = {
    "400": (error(400), REFUSED, None),
    "401": (error(401), REFUSED, None),
    "402": (error(402), REFUSED, None),
    "403": (error(403), REFUSED, None),
    "404": (error(404), REFUSED, None),
    "413": (error(413), REFUSED, None),
    "422": (error(422), REFUSED, None),
    "refused-and-yet-a-header": (error(403, headers={"Retry-After": "7"}), REFUSED, None),
    "429": (error(429), BUSY, None),
    "429-header": (error(429, headers={"Retry-After": "7"}), BUSY, 7),
    "429-fraction": (error(429, headers={"retry-after": "1.5"}), BUSY, 1.5),
    "429-milliseconds": (error(429, headers={"retry-after-ms": "2500"}), BUSY, 2.5),
    "429-in-the-vendors-way": (error(429, retry_delay=7), BUSY, 7),
    "429-both": (error(429, retry_delay=3, headers={"Retry-After": "9"}), BUSY, 9),
    "429-now": (error(429, headers={"Retry-After": "0"}), BUSY, None),
    "429-nonsense": (error(429, headers={"Retry-After": "soon"}), BUSY, None),
    "429-no-number": (error(429, headers={"Retry-After": "nan"}), BUSY, None),
    "429-less-than-nothing": (error(429, headers={"Retry-After": "-5"}), BUSY, None),
    "429-past": (error(429, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}), BUSY, None),
    "429-hours": (error(429, headers={"Retry-After": "14400"}), BUSY, 14400),
    "503": (error(503), BUSY, None),
    "503-header": (error(503, headers={"Retry-After": "7"}), BUSY, 7),
    "503-page": (error(503, headers={"Retry-After": "7"}, page=True), BUSY, 7),
    "529": (error(529), BUSY, None),
    "408": (error(408), INTERRUPTED, None),
    "409": (error(409), INTERRUPTED, None),
    "500": (error(500), INTERRUPTED, None),
    "500-header": (error(500, headers={"Retry-After": "7"}), INTERRUPTED, 7),
    "502-page": (error(502, page=True), INTERRUPTED, None),
    "504": (error(504), INTERRUPTED, None),
    "reset": (reset(), INTERRUPTED, None),
    "slow": (slow(text("late"), 30), INTERRUPTED, None),
    "cut": (cut("one two three four five six"), INTERRUPTED, None),
}
IN_A_STREAM = {
    "then-429": (then("one two three", error(429)), BUSY, None),
    "then-529": (then("one two three", error(529)), BUSY, None),
    "then-500": (then("one two three", error(500)), INTERRUPTED, None),
    "then-400": (then("one two three", error(400)), REFUSED, None),
}


def ask_gemini(server: GeminiServer, way: str) -> BaseException:
    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=server.url, timeout=500))
    asked: dict[str, Any] = {"model": MODEL, "contents": "go"}

    async def asynchronously() -> None:
        async for _ in await client.aio.models.generate_content_stream(**asked):
            pass

    calls: dict[str, Callable[[], Any]] = {
        "sync": lambda: client.models.generate_content(**asked),
        "async": lambda: asyncio.run(client.aio.models.generate_content(**asked)),
        "stream": lambda: list(client.models.generate_content_stream(**asked)),
        "async-stream": lambda: asyncio.run(asynchronously()),
    }
    return raised_by(calls[way])


def ask_anthropic(server: AnthropicServer, way: str) -> BaseException:
    asked: dict[str, Any] = {"model": "claude-x", "max_tokens": 99, "messages": [{"role": "user", "content": "go"}]}
    given: dict[str, Any] = {"api_key": "k", "base_url": server.url, "timeout": 0.5, "max_retries": 0}

    async def asynchronously() -> None:
        async with anthropic_sdk.AsyncAnthropic(**given) as client:
            answer = await client.messages.create(**asked, stream=way == "async-stream")
            if way == "async-stream":
                async for _ in answer:
                    pass

    if way.startswith("async"):
        return raised_by(lambda: asyncio.run(asynchronously()))
    client = anthropic_sdk.Anthropic(**given)
    return raised_by(lambda: list(client.messages.create(**asked, stream=way == "stream")))


BOTH = ["sync", "async"]
STREAMS = ["stream", "async-stream"]


@pytest.mark.parametrize(
    ("name", "way"),
    [
        *((name, way) for name in ANSWERS for way in BOTH),
        *((name, way) for name in ("429-header", "503-page", "slow", "cut", *IN_A_STREAM) for way in STREAMS),
    ],
)
@pytest.mark.parametrize("vendor", ["gemini", "anthropic"])
def test_an_error_of_a_models_real_client(gemini: Gemini, anthropic: Anthropic, vendor: str, way: str, name: str) -> None:
    reply, kind, wait = {**ANSWERS, **IN_A_STREAM}[name]
    failure = (
        ask_gemini(gemini(lambda request: reply), way)
        if vendor == "gemini"
        else ask_anthropic(anthropic(lambda request: reply), way)
    )
    assert found(failure) == (kind, wait)


@pytest.mark.parametrize("vendor", ["gemini", "anthropic"])
def test_a_date_is_waited_for_by_the_servers_clock(gemini: Gemini, anthropic: Anthropic, vendor: str) -> None:
    def busy(request: Any) -> Reply:
        return error(503, headers={"Retry-After": format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)})

    failure = ask_gemini(gemini(busy), "async") if vendor == "gemini" else ask_anthropic(anthropic(busy), "async")
    kind, wait = found(failure)
    assert kind is BUSY
    assert wait in (89, 90, 91)  # whole seconds, at both ends


@pytest.mark.parametrize(
    ("date", "now", "wait"),
    [
        ("Wed, 21 Oct 2099 07:28:00 GMT", "Wed, 21 Oct 2099 07:27:30 GMT", 30),
        ("Wed Oct 21 07:28:00 2099", "Wed, 21 Oct 2099 07:27:30 GMT", 30),
        ("Wed, 21 Oct 2099 09:28:00 +0200", "Wed, 21 Oct 2099 07:27:30 GMT", 30),
        ("Wednesday, 21-Oct-99 07:28:00 GMT", "Wed, 21 Oct 2099 07:27:30 GMT", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", "", None),
        ("Wed, 99 Oct 2099 07:28:00 GMT", "", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", "today", None),
    ],
)
def test_dates_of_all_sorts(date: str, now: str, wait: float | None) -> None:
    headers = {"Retry-After": date, **({"Date": now} if now else {})}
    answer = httpx.Response(503, headers=headers, request=httpx.Request("GET", "http://somewhere"))
    assert found(raised_by(answer.raise_for_status)) == (BUSY, wait)


# -- through ADK -------------------------------------------------------------------------------------------


def ask_through_adk(model: Any) -> BaseException:
    contents = [types.UserContent("go")]

    async def ask() -> None:
        async for _ in model.generate_content_async(LlmRequest(model=model.model, contents=contents)):
            pass

    return raised_by(lambda: asyncio.run(ask()))


def test_adks_own_error_classes(gemini: Gemini, anthropic: Anthropic) -> None:
    gemini(lambda request: error(429, retry_delay=7))
    failure = ask_through_adk(LlmAgent(name="a", model=MODEL).canonical_model)
    assert type(failure) is _ResourceExhaustedError
    assert found(failure) == (BUSY, 7)

    server = anthropic(lambda request: error(429, headers={"Retry-After": "0.25"}))
    failure = ask_through_adk(AnthropicLlm(model="claude-x"))
    assert type(failure) is _AnthropicRateLimitError
    assert found(failure) == (BUSY, 0.25)
    assert len(server.requests) == 3  # the client's own tries come first


# -- tools -------------------------------------------------------------------------------------------------


def by_httpx(url: str) -> None:
    httpx.get(url, timeout=0.5).raise_for_status()


def by_requests(url: str) -> None:
    requests.get(url, timeout=0.5).raise_for_status()


def by_urllib(url: str) -> None:
    urllib.request.urlopen(url, timeout=0.5).read()


def by_aiohttp(url: str) -> None:
    async def ask() -> None:
        limit = aiohttp.ClientTimeout(0.5)
        async with aiohttp.ClientSession(timeout=limit, raise_for_status=True) as session, session.get(url) as answer:
            await answer.read()

    asyncio.run(ask())


@pytest.mark.filterwarnings("ignore::DeprecationWarning:aiohttp")
@pytest.mark.parametrize("tool", [by_httpx, by_requests, by_urllib, by_aiohttp])
@pytest.mark.parametrize(
    ("reply", "kind", "wait"),
    [
        (error(404), REFUSED, None),
        (error(429, headers={"Retry-After": "7"}), BUSY, 7),
        (error(503, page=True), BUSY, None),
        (error(500), INTERRUPTED, None),
        (reset(), INTERRUPTED, None),
        (slow(error(500), 30), INTERRUPTED, None),
        (cut(Reply(body={"totalTokens": 1})), INTERRUPTED, None),
    ],
    ids=["404", "429", "503", "500", "reset", "slow", "cut"],
)
def test_an_error_of_a_tools_client(
    gemini: Gemini, tool: Callable[[str], None], reply: Reply, kind: Kind, wait: float | None
) -> None:
    server = gemini(lambda request: reply)
    failure = raised_by(lambda: tool(f"{server.url}/v1beta/models/m:countTokens"))
    assert found(failure) == (kind, wait)


def test_nobody_listens() -> None:
    for tool in (by_httpx, by_requests, by_urllib, by_aiohttp):
        assert found(raised_by(lambda tool=tool: tool("http://127.0.0.1:9/"))) == (INTERRUPTED, None)  # type: ignore[misc]
    assert found(raised_by(lambda: by_httpx("nothing://here"))) == (UNKNOWN, None)


class HttpError(Exception):
    """As googleapiclient's: its answer is a dict of headers with a status."""

    class Answer(dict[str, str]):
        status = 429

    resp = Answer({"retry-after": "7", "content-type": "text/html"})


def test_googles_libraries() -> None:
    asked = RetryInfo()
    asked.retry_delay.seconds, asked.retry_delay.nanos = 7, 500_000_000
    assert found(api_core.TooManyRequests("slow down", details=[asked])) == (BUSY, 7.5)
    assert found(api_core.ServiceUnavailable("later")) == (BUSY, None)
    assert found(api_core.PermissionDenied("no")) == (REFUSED, None)
    assert found(api_core.DeadlineExceeded("late")) == (INTERRUPTED, None)
    assert found(HttpError("slow down")) == (BUSY, 7)
    assert found(DefaultCredentialsError("none")) == (REFUSED, None)
    assert found(RefreshError("invalid_grant", retryable=False)) == (REFUSED, None)
    assert found(RefreshError("try again", retryable=True)) == (INTERRUPTED, None)
    wrapped = RefreshError("no metadata server")
    wrapped.__cause__ = TransportError("not reached")
    assert found(wrapped) == (INTERRUPTED, None)


# -- OpenAI and LiteLLM, by the shape of their errors ------------------------------------------------------


class OpenAIStatusError(Exception):
    """As openai.APIStatusError, and litellm's errors, which are its subclasses."""

    def __init__(self, status: int, code: str | None = None, **headers: str) -> None:
        super().__init__(f"Error code: {status}")
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.response = httpx.Response(status, headers=named, request=httpx.Request("POST", "http://somewhere"))
        self.status_code, self.code, self.type, self.body = status, code, "tokens", {"code": code}


class APITimeoutError(Exception):
    """As openai's, and litellm.Timeout's base."""


class APIConnectionError(Exception):
    """As openai's."""


class VertexRateLimitError(Exception):
    """As litellm's of Gemini: Google's body is in the text only, and the headers are apart."""

    status_code = 429
    litellm_response_headers = httpx.Headers({"llm_provider-date": "today"})


def test_openai_and_litellm() -> None:
    assert found(OpenAIStatusError(429, "rate_limit_exceeded", retry_after="7")) == (BUSY, 7)
    assert found(OpenAIStatusError(503, x_ms_retry_after_ms="1500")) == (BUSY, 1.5)
    assert found(OpenAIStatusError(401, "invalid_api_key")) == (REFUSED, None)
    assert found(APITimeoutError("Request timed out.")) == (INTERRUPTED, None)
    assert found(APIConnectionError("Connection error.")) == (INTERRUPTED, None)
    said = 'litellm.RateLimitError: VertexAIException - b\'{"error": {"details": [{"retryDelay": "31.5s"}]}}\''
    assert found(VertexRateLimitError(said)) == (BUSY, 31.5)


# -- errors in errors --------------------------------------------------------------------------------------


def answered(status: int, wait: float | None = None) -> APIError:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{wait}s"}] if wait else []
    body = {"error": {"message": "no", "status": "NO", "details": details}}
    return (ClientError if status < 500 else ServerError)(status, body)


def raised_from(origin: BaseException, *, said: bool = True) -> BaseException:
    def fails() -> None:
        try:
            raise origin
        except BaseException as caught:
            if said:
                raise RuntimeError("the tool failed") from caught
            raise RuntimeError("the tool failed")  # noqa: B904

    return raised_by(fails)


def test_the_kind_is_found_through_causes() -> None:
    assert found(raised_from(answered(429, 7))) == (BUSY, 7)
    assert found(raised_from(raised_from(answered(403)))) == (REFUSED, None)
    assert found(raised_from(TimeoutError())) == (INTERRUPTED, None)
    assert found(raised_from(ValueError())) == (UNKNOWN, None)


def test_what_was_being_handled_is_waited_for_but_is_no_reason_to_give_up() -> None:
    assert found(raised_from(answered(429, 7), said=False)) == (BUSY, 7)
    assert found(raised_from(answered(403), said=False)) == (UNKNOWN, None)


def test_what_an_error_says_itself_counts_before_where_it_comes_from() -> None:
    failure = answered(503)
    failure.__cause__ = answered(400)
    assert found(failure) == (BUSY, None)


def test_errors_in_a_circle_end() -> None:
    first, second = ValueError(), KeyError()
    first.__cause__, second.__cause__ = second, first
    assert found(first) == (UNKNOWN, None)


def test_adks_error_of_a_dynamic_node_speaks_for_the_one_in_it() -> None:
    for inner, expected in ((answered(429, 7), (BUSY, 7)), (answered(404), (REFUSED, None)), (ValueError(), (UNKNOWN, None))):
        assert found(DynamicNodeFailError(message="failed", error=inner, error_node_path="wf@1/a@1")) == expected
    inner = DynamicNodeFailError(message="failed", error=errors.AgentLoadError("no"), error_node_path="wf@1/a@1/b@1")
    assert is_permanent(DynamicNodeFailError(message="failed", error=inner, error_node_path="wf@1/a@1"))


def test_a_nodes_time_limit() -> None:
    assert found(NodeTimeoutError(node_name="a", timeout=3)) == (INTERRUPTED, None)


def test_a_group_is_refused_when_all_of_it_is() -> None:
    assert is_permanent(ExceptionGroup("both", [answered(401), answered(403)]))
    assert not is_permanent(ExceptionGroup("both", [answered(401), ValueError()]))


def test_a_group_waits_for_the_longest_of_its_members() -> None:
    inner = ExceptionGroup("inner", [answered(429, 7), raised_from(answered(503, 12))])
    group = ExceptionGroup("all", [answered(401), inner, ValueError(), TimeoutError()])
    finding = kind_of(group)
    assert (finding.kind, finding.wait, finding.what) == (BUSY, 12, "HTTP 503")
    assert found(ExceptionGroup("both", [ValueError(), ConnectionResetError()])) == (INTERRUPTED, None)


class TriesAgain(Exception):
    permanent = False


def test_an_error_that_says_it_is_not_permanent_never_is() -> None:
    failure = TriesAgain("in a minute")
    failure.__cause__ = answered(404)
    assert found(failure) == (UNKNOWN, None)
    failure.__cause__ = answered(429, 7)
    assert found(failure) == (BUSY, 7)


# -- what is ours, and Airflow's ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cls", "permanent"),
    [
        (errors.WorkflowLoadError, True),
        (errors.AgentLoadError, True),
        (errors.ToolLoadError, True),
        (errors.UnsupportedToolError, True),
        (errors.ToolInputError, True),
        (errors.ModelConnectionError, True),
        (errors.ServiceConfigurationError, True),
        (errors.AgentAnswerError, False),
        (errors.LoopLimitError, False),
        (AirflowNotFoundException, True),
        (DefaultCredentialsError, True),
        (ValueError, False),
        (SystemExit, False),
    ],
)
def test_what_is_missing_stays_missing(cls: type[BaseException], permanent: bool) -> None:
    assert is_permanent(cls("no")) is permanent


@pytest.mark.parametrize(("length", "expected"), [(50, (BUSY, 7)), (5000, (UNKNOWN, None))])
def test_a_long_chain_is_followed_as_far_as_is_sensible(length: int, expected: tuple[Kind, float | None]) -> None:
    failure: BaseException = answered(429, 7)
    for number in range(length):
        outer = RuntimeError(str(number))
        outer.__cause__ = failure
        failure = outer
    assert found(failure) == expected
