"""What a failed task says, and what it never says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from airflow.models.xcom import XComModel
from airflow.sdk import DAG, Connection
from airflow.utils.session import create_session
from google.adk.agents import LlmAgent
from google.adk.workflow import START, Workflow
from google.genai import types
from google.genai.errors import APIError, ClientError
from pydantic import BaseModel, ValidationError
from sqlalchemy import select

from adk_airflow import AdkAgentOperator, AdkDag
from adk_airflow.runtime import failures
from adk_airflow.testing import WorkflowRun, run_dag
from tests.servers.gemini import GeminiRequest, GeminiServer, cut, error, raw, slow, text
from tests.supervised import Tried, run_tasks

Gemini = Callable[[Callable[[GeminiRequest], Any]], GeminiServer]
KEY = "key+of/the'connection=0123456789"
FORMS = (KEY, quote(KEY, safe=""), quote(KEY), repr(KEY)[1:-1], json.dumps(KEY)[1:-1])


# -- secrets -----------------------------------------------------------------------------------------------


@pytest.fixture
def connection() -> Connection:
    extra = json.dumps({"token": "token-in-the-extra-0123", "region": "somewhere-else"})
    found = Connection(conn_id="c", conn_type="google_genai", password=f" {KEY}\n", extra=extra)
    failures.hide_connection(found)
    return found


@pytest.mark.parametrize("form", FORMS)
def test_a_connections_key_is_masked_in_each_form_that_an_error_may_quote(connection: Connection, form: str) -> None:
    assert failures.masked(f"for '{form}' and ?key={form}&alt=json") == "for '***' and ?key=***&alt=json"


def test_what_is_secret_in_its_extra_is_masked_and_nothing_else(connection: Connection) -> None:
    assert failures.masked("token-in-the-extra-0123 at somewhere-else") == "*** at somewhere-else"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("API key AIzaSyA0123456789abcdefghijklmnopqrs", "API key ***"),
        ("ya29.abcdefghijklmnopqrstuvwx is invalid", "*** is invalid"),
        ("GET http://x/y?a=1&key=0123456789abc&b=2", "GET http://x/y?a=1&key=***&b=2"),
        ("Authorization: Bearer zyxwvutsrq987654", "Authorization: Bearer ***"),
        ("postgresql://user:pass-in-an-address@host/db", "postgresql://user:***@host/db"),
        ("redis://:pass%2Fin%2Fanother@host:1", "redis://:***@host:1"),
        ("sk-proj-9876543210ZYXWVUTSRQ is refused", "*** is refused"),
        ("-----BEGIN PRIVATE KEY-----\nMIIEvQIB\n-----END PRIVATE KEY-----", "***"),
        ("http://host:8080/a@b, //me:x@host, task-based-on-a-long-list-of-words", None),
        ("Basic explanations-of-authentication, Bearer authentication-explained", None),
        ("100% sure, a%20b, %41 and key=short", "100% sure, a%20b, %41 and key=short"),
        ("NUL \x00 and half \ud800 a sign", "NUL \ufffd and half \ufffd a sign"),
    ],
)
def test_keys_in_the_code_are_masked_by_what_they_look_like(words: str, expected: str | None) -> None:
    assert failures.masked(words) == (expected or words)


def test_a_key_of_the_environment_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_VENDOR_API_KEY", "vendor/key+0123456789")
    monkeypatch.setenv("VENDOR_SECRET_ACCESS_KEY", "vendor/access+0123456789")
    monkeypatch.setenv("POSTGRES_PASSWORD", "postgres")
    assert failures.masked("for vendor/key+0123456789, vendor%2Fkey%2B0123456789") == "for ***, ***"
    assert failures.masked("postgres refuses vendor/access+0123456789") == "postgres refuses ***"


def test_a_secret_is_masked_in_an_error_and_in_all_that_it_came_from(connection: Connection) -> None:
    def fails() -> None:
        try:
            try:
                raise KeyError({"sent": ["with", KEY]})
            except KeyError:
                raise ClientError(429, {"error": {"message": f"slow down, {KEY}", "status": "BUSY"}}) from ValueError(KEY)
        except ClientError as error:
            error.add_note(f"a note of {KEY}")
            raise ExceptionGroup("all", [error]) from None

    with pytest.raises(ExceptionGroup) as caught:
        fails()
    failures.hide_secrets(caught.value)

    inner = caught.value.exceptions[0]
    assert isinstance(inner, APIError)
    assert (str(inner), inner.message) == (
        "429 BUSY. {'error': {'message': \"slow down, ***\", 'status': 'BUSY'}}",
        "slow down, ***",
    )
    assert inner.details == {"error": {"message": "slow down, ***", "status": "BUSY"}}
    assert (inner.__notes__, inner.__cause__.args) == (["a note of ***"], ("***",))
    assert inner.__context__.args == ({"sent": ["with", "***"]},)


# -- words -------------------------------------------------------------------------------------------------


def test_an_error_without_words_says_where_it_was_raised() -> None:
    async def fetch() -> None:
        await asyncio.wait_for(asyncio.sleep(60), 0.01)

    with pytest.raises(TimeoutError) as caught:
        asyncio.run(fetch())
    failures.explain(caught.value)

    said = failures.one_line(caught.value)
    assert said.startswith(f"TimeoutError: A time limit passed in fetch ({__file__}, line ")
    assert said.endswith("): await asyncio.wait_for(asyncio.sleep(60), 0.01).")


def test_an_error_with_words_stays_as_it_is() -> None:
    error = ValueError("too large\nby far")
    failures.explain(error, cut_answers=["an answer was cut"])
    assert (failures.one_line(error), failures.error_text(error)) == ("ValueError: too large by far", "too large\nby far")


def test_a_log_line_has_all_that_an_error_says() -> None:
    with pytest.raises(ValidationError) as caught:
        Plan.model_validate({"steps": ["a", 1], "x": 2})
    error = ValueError("word " * 1000)

    assert failures.one_line(caught.value) == (
        "ValidationError: 1 validation error for Plan steps.1 Input should be a valid string [type=string_type, input_value=1,"
        " input_type=int]"
    )
    assert len(failures.one_line(error)) == 1000
    assert failures.one_line(error).endswith("…")


# -- in a run ----------------------------------------------------------------------------------------------


class Plan(BaseModel):
    steps: list[str]


def asks(**fields: Any) -> Workflow:
    agent = LlmAgent(name="planner", model="gemini-2.5-flash", **fields)
    return Workflow(name="planning", edges=[(START, agent)])


def run_of(workflow: Workflow, **arguments: Any) -> WorkflowRun:
    return run_dag(AdkDag(workflow, schedule=None, **arguments), conf={"input": "go"})


def xcoms(run: WorkflowRun) -> str:
    with create_session() as session:
        return str(session.scalars(select(XComModel.value).where(XComModel.run_id == run.run_id)).all())


def test_a_request_that_times_out_says_which_model_and_which_limit(gemini: Gemini) -> None:
    gemini(lambda request: slow(text("late"), 30))
    config = types.GenerateContentConfig(http_options=types.HttpOptions(timeout=400))
    run = run_of(asks(generate_content_config=config))

    assert run.error is not None
    assert run.error[0] == "TimeoutError"
    assert run.error[1].startswith(
        "There was no answer of model 'gemini-2.5-flash' for agent 'planner' within 0.4 s, the http_options.timeout of"
    )


def test_an_answer_that_is_cut_by_the_connection_says_so(gemini: Gemini) -> None:
    gemini(lambda request: cut(text("a long answer that does not come to its end")))
    run = run_of(asks())

    assert run.error is not None
    assert "The connection closed before the answer of model 'gemini-2.5-flash' for agent 'planner' was whole." in run.error[1]


@pytest.mark.parametrize("through", ["node", "operator"])
@pytest.mark.parametrize("most", [20, None])
def test_json_that_is_cut_says_at_which_limit(gemini: Gemini, through: str, most: int | None) -> None:
    part = {"content": {"role": "model", "parts": [{"text": '{"steps": ["one", "tw'}]}, "finishReason": "MAX_TOKENS"}
    gemini(lambda request: raw({"candidates": [part], "modelVersion": "gemini-2.5-flash"}))
    config = types.GenerateContentConfig(max_output_tokens=most)
    if through == "node":
        run = run_of(asks(output_schema=Plan, generate_content_config=config))
    else:
        agent = LlmAgent(name="planner", model="gemini-2.5-flash", output_schema=Plan, generate_content_config=config)
        with DAG("cut_answer", schedule=None) as dag:
            AdkAgentOperator(task_id="ask", agent=agent, prompt="go")
        run = run_dag(dag)

    limit = "max_output_tokens=20 of its generate_content_config" if most else "the model's own limit of output tokens"
    assert run.error is not None
    assert run.error[0] == "ValidationError"
    assert f"The answer of model 'gemini-2.5-flash' to agent 'planner' was cut at {limit} (finish_reason" in run.error[1]


@pytest.mark.parametrize("mode", ["tasks", "embedded"])
@pytest.mark.parametrize("status", [404, 429, 500, 503])
def test_no_xcom_holds_the_key_that_an_error_quotes(
    gemini: Gemini, monkeypatch: pytest.MonkeyPatch, status: int, mode: str
) -> None:
    server = gemini(lambda request: error(status, message=f"no {KEY}, see http://x?key={quote(KEY, safe='')}"))
    given = {"conn_type": "google_genai", "password": KEY, "host": server.url}
    monkeypatch.setenv("AIRFLOW_CONN_LEAKY", json.dumps(given))
    run = run_of(asks(), llm_conn_id="leaky", mode=mode)

    assert run.error is not None
    assert "no ***, see http://x?key=***" in run.error[1]
    written = xcoms(run)
    assert [form for form in FORMS if form in written] == []
    assert written.count("***") >= 2


# -- by Airflow's supervisor -------------------------------------------------------------------------------

SOURCE = """
import asyncio
import os
import time
from datetime import timedelta

from adk_airflow import AdkAgentOperator, AdkDag, AdkToolOperator
from airflow.sdk import DAG
from google.adk.agents import LlmAgent
from google.adk.workflow import START, RetryConfig, Workflow, node

with DAG("failing", schedule=None, default_args={"retries": 2}):
    for status in (400, 401, 403, 404, 429, 503):
        agent = LlmAgent(name="a", model="gemini-2.5-flash", instruction=str(status))
        AdkAgentOperator(task_id=f"status_{status}", agent=agent, prompt="go", llm_conn_id="leaky")
    AdkAgentOperator(task_id="no_connection", agent=agent, prompt="go", llm_conn_id="nowhere")
    AdkAgentOperator(task_id="no_agent", agent="no_such_module_there_is:agent", prompt="go")
    AdkToolOperator(task_id="no_tool", tool="os:no_such_tool")
"""


@pytest.fixture(scope="module")
def tried() -> dict[str, Tried]:
    def script(request: GeminiRequest) -> Any:
        return error(int(request.system.split()[0]), message=f"no {request.api_key}, {quote(str(request.api_key), safe='')}")

    with pytest.MonkeyPatch.context() as patch, GeminiServer(script) as server:
        given = {"conn_type": "google_genai", "password": KEY, "host": server.url}
        patch.setenv("AIRFLOW_CONN_LEAKY", json.dumps(given))
        patch.setenv("NO_PROXY", "127.0.0.1")
        return run_tasks("failing", SOURCE)


@pytest.mark.parametrize(
    ("task", "state"),
    [
        ("status_400", "failed"),
        ("status_401", "failed"),
        ("status_403", "failed"),
        ("status_404", "failed"),
        ("status_429", "up_for_retry"),
        ("status_503", "up_for_retry"),
        ("no_connection", "failed"),
        ("no_agent", "failed"),
        ("no_tool", "failed"),
    ],
)
def test_a_permanent_error_fails_at_once_and_another_is_tried_again(tried: dict[str, Tried], task: str, state: str) -> None:
    assert tried[task].state == state


def test_no_log_holds_the_key_nor_does_a_traceback(tried: dict[str, Tried]) -> None:
    assert "AIRFLOW" not in KEY
    for task, one in tried.items():
        assert [form for form in (KEY, quote(KEY, safe="")) if form in one.text] == [], task
    assert "***" in tried["status_404"].text
