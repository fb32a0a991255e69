"""When Airflow tries an ADK task again, how long it waits until then, and where it says why."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest
from airflow.sdk import DAG, ExceptionRetryPolicy, RetryAction, RetryDecision, RetryPolicy, RetryRule
from google.adk.agents import LlmAgent

import adk_airflow
from adk_airflow import AdkAgentOperator, AdkRetryPolicy, errors
from adk_airflow.operators.retries import TaskRetries
from tests.servers.gemini import GeminiRequest, GeminiServer, Reply, cut, error, reset, slow, text
from tests.supervised import SupervisedRun, Tried, dag_files, run_tasks

Gemini = Callable[[Callable[[GeminiRequest], Any]], GeminiServer]


def answered(status: int, **headers: str) -> httpx.HTTPStatusError:
    """An HTTP answer of that status, as httpx raises it."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    response = httpx.Response(status, headers=names, request=httpx.Request("GET", "http://somewhere"))
    return httpx.HTTPStatusError("no", request=response.request, response=response)


class Task:
    """As much of an operator as a policy asks for."""

    def __init__(self, retries: int = 3, retry_delay: float = 300, max_retry_delay: float | None = None) -> None:
        self.retries = retries
        self.retry_delay = timedelta(seconds=retry_delay)
        self.max_retry_delay = None if max_retry_delay is None else timedelta(seconds=max_retry_delay)


def delay(policy: RetryPolicy, failure: BaseException, try_number: int = 1, max_tries: int = 3, task: Any = None) -> float:
    """Seconds until the next try, of one that the policy wants."""
    decision = policy.evaluate(failure, try_number, max_tries, {"task": task} if task else None)
    assert decision.action is RetryAction.RETRY
    assert decision.retry_delay is not None
    return decision.retry_delay.total_seconds()


# -- what is decided ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 410, 413, 422, 451, 501])
@pytest.mark.parametrize("policy", [AdkRetryPolicy(), TaskRetries()])
def test_a_refusal_fails_at_once_with_a_reason(policy: RetryPolicy, status: int) -> None:
    decision = policy.evaluate(answered(status, retry_after="7"), 1, 3)
    assert decision.action is RetryAction.FAIL
    assert decision.reason == (f"HTTP {status}; another try would end the same way, so there is none. HTTPStatusError: no")


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 520, 529])
def test_a_server_is_waited_for_as_long_as_it_says(status: int) -> None:
    decision = AdkRetryPolicy().evaluate(answered(status, retry_after="7"), 1, 3)
    assert decision == RetryDecision.retry(
        timedelta(seconds=7), f"HTTP {status}; the next try is in 7 s, as the server asks. HTTPStatusError: no"
    )


@pytest.mark.parametrize(
    ("asked", "seconds", "words"),
    [
        (90, 90, "in 90 s, as the server asks"),
        (1800, 1800, "in 30 min, as the server asks"),
        (3 * 3600, 3 * 3600, "in 3 h, as the server asks"),
        (
            5 * 86400,
            86400,
            "in 24 h, the longest (max_server_delay), though the server asks to wait 120 h",
        ),
    ],
)
def test_hours_are_waited_for_a_week_is_not(asked: float, seconds: float, words: str) -> None:
    decision = AdkRetryPolicy().evaluate(answered(429, retry_after=str(asked)), 1, 3)
    assert decision.retry_delay == timedelta(seconds=seconds)
    assert decision.reason == f"HTTP 429; the next try is {words}. HTTPStatusError: no"


def test_without_a_word_of_the_server_each_try_waits_twice_as_long() -> None:
    policy = AdkRetryPolicy(base_delay=4, max_delay=timedelta(seconds=30))
    found = [[delay(policy, answered(503), number, 9) for _ in range(200)] for number in (1, 2, 3, 4, 5, 9)]

    for seconds, (low, high) in zip(found, [(4, 6), (8, 12), (16, 24), (20, 30), (20, 30), (20, 30)], strict=True):
        assert low <= min(seconds) < max(seconds) <= high
        assert len(set(seconds)) > 100  # tasks that failed together do not come back together


def test_tries_before_a_clear_do_not_count() -> None:
    policy = AdkRetryPolicy(base_delay=4)
    assert 4 <= delay(policy, TimeoutError(), 41, 43, Task(retries=3)) <= 6
    assert 8 <= delay(policy, TimeoutError(), 42, 43, Task(retries=3)) <= 12
    assert delay(policy, TimeoutError(), 5000, 9999) == pytest.approx(500, rel=0.2)


@pytest.mark.parametrize(
    ("task", "low", "high"),
    [
        (Task(), 30, 45),  # Airflow's default is no word of the user's
        (Task(retry_delay=0), 0, 0),
        (Task(retry_delay=60), 60, 90),
        (Task(retry_delay=60, max_retry_delay=70), 46, 70),
        (Task(max_retry_delay=5), 3, 5),
        (Task(retry_delay=7200), 4800, 7200),
    ],
)
def test_a_retry_delay_of_the_tasks_own_is_where_the_back_off_begins(task: Task, low: float, high: float) -> None:
    assert low <= delay(AdkRetryPolicy(), ConnectionResetError(), 1, 3, task) <= high
    assert delay(AdkRetryPolicy(), answered(429, retry_after="7"), 1, 3, task) == 7


def test_what_is_not_known_is_left_to_the_tasks_own_settings() -> None:
    for failure in (ValueError("no"), SystemExit(1), errors.AgentAnswerError("no"), OSError("no space left")):
        assert AdkRetryPolicy().evaluate(failure, 1, 3) == RetryDecision.default()


def test_what_is_missing_fails_at_once_with_a_reason() -> None:
    assert AdkRetryPolicy().evaluate(errors.AgentLoadError("no agent"), 1, 3) == RetryDecision.fail(
        "this does not pass by itself; another try would end the same way, so there is none. AgentLoadError: no agent"
    )


def test_a_reason_is_as_long_as_airflow_keeps_it() -> None:
    decision = AdkRetryPolicy().evaluate(ConnectionResetError("x" * 9000), 1, 3)
    assert decision.reason is not None
    assert (len(decision.reason), decision.reason[:36]) == (500, "the connection failed; the next try ")


@pytest.mark.parametrize(
    ("max_tries", "why"), [(0, "the task has no retries"), (2, "all 3 tries are used up")], ids=["none", "used-up"]
)
def test_where_no_try_is_left_the_reason_says_what_would_have_helped(max_tries: int, why: str) -> None:
    decision = AdkRetryPolicy().evaluate(answered(429, retry_after="7"), max_tries + 1, max_tries)
    assert decision == RetryDecision(
        reason=f"HTTP 429; another try may help (the server asks to wait 7 s), but {why}. HTTPStatusError: no"
    )


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"base_delay": -1}, ValueError, "base_delay is -1, but no delay is below 0"),
        ({"max_delay": timedelta(seconds=-1)}, ValueError, "max_delay is datetime"),
        ({"max_server_delay": "1h"}, TypeError, "max_server_delay is a timedelta or a number of seconds, not '1h'"),
        ({"max_delay": None}, TypeError, "max_delay is a timedelta or a number of seconds, not None"),
        ({"base_delay": True}, TypeError, "base_delay is a timedelta or a number of seconds, not True"),
        ({"base_delay": 20, "max_delay": 10}, ValueError, "longer than max_delay"),
        ({"base_delay": float("nan")}, ValueError, "base_delay is nan"),
        ({"max_delay": float("inf")}, ValueError, "max_delay is inf"),
    ],
)
def test_delays_that_are_none_are_refused(arguments: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match="AdkRetryPolicy: ") as raised:
        AdkRetryPolicy(**arguments)
    assert words in str(raised.value)


# -- the user's own ----------------------------------------------------------------------------------------


class Broken(RetryPolicy):
    def evaluate(self, *arguments: Any, **named: Any) -> RetryDecision:
        raise KeyError("not this one")


def test_a_policy_of_the_users_comes_first() -> None:
    own = ExceptionRetryPolicy(rules=[RetryRule(httpx.HTTPStatusError, action=RetryAction.RETRY)])
    policy = TaskRetries(own)
    assert policy.evaluate(answered(401), 1, 3).action is RetryAction.RETRY
    assert policy.evaluate(errors.AgentLoadError("no"), 1, 3).action is RetryAction.FAIL
    assert policy.evaluate(ValueError("no"), 1, 3).action is RetryAction.DEFAULT

    with DAG("own_policy", schedule=None):
        operator = AdkAgentOperator(task_id="ask", agent=LlmAgent(name="a", model="gemini-x"), retry_policy=own)
    assert operator.retry_policy.own is own


def test_a_policy_that_decides_everything_replaces_ours() -> None:
    policy = TaskRetries(ExceptionRetryPolicy(rules=[], default=RetryAction.RETRY))
    for failure in (answered(400), answered(429, retry_after="7"), ValueError("no")):
        assert policy.evaluate(failure, 1, 3) == RetryDecision(action=RetryAction.RETRY)


def test_ours_with_other_delays() -> None:
    policy = TaskRetries(AdkRetryPolicy(base_delay=1, max_server_delay=60))
    assert 1 <= delay(policy, answered(503)) <= 1.5
    assert delay(policy, answered(503, retry_after="3600")) == 60


def test_a_policy_of_the_users_that_fails_is_passed_over() -> None:
    assert delay(TaskRetries(Broken()), answered(429, retry_after="7")) == 7


def test_it_is_public_and_costs_nothing_where_it_is_not_used() -> None:
    assert adk_airflow.AdkRetryPolicy is AdkRetryPolicy
    assert repr(AdkRetryPolicy(base_delay=1)).startswith("AdkRetryPolicy(base_delay=datetime.timedelta(seconds=1), max")


# -- by Airflow's supervisor -------------------------------------------------------------------------------

SOURCE = """
from datetime import timedelta

import httpx
from adk_airflow import AdkAgentOperator, AdkDag, AdkRetryPolicy, AdkTaskGroup, AdkToolOperator
from airflow.sdk import DAG, ExceptionRetryPolicy, RetryAction, RetryRule
from google.adk.agents import LlmAgent, ParallelAgent
from google.adk.workflow import START, RetryConfig, Workflow, node
from google.genai import types


def agent(says, name="a", **fields):
    fast = types.GenerateContentConfig(http_options=types.HttpOptions(timeout=1500))
    return LlmAgent(name=name, model="gemini-2.5-flash", instruction=says, generate_content_config=fast, **fields)


def ask(task_id, says=None, **arguments):
    AdkAgentOperator(task_id=task_id, agent=agent(says or task_id), prompt="go", **arguments)


def call_the_server() -> str:
    \"\"\"Calls it.\"\"\"
    import os

    return httpx.get(os.environ["GOOGLE_GEMINI_BASE_URL"] + "/v1beta/models/m:countTokens").raise_for_status().text


def asks_twice(says):
    @node(name="outer", rerun_on_resume=True)
    async def outer(ctx, node_input):
        return await ctx.run_node(agent(says, "inner"), node_input="go")

    return outer


with DAG("trying_again", schedule=None, default_args={"retries": 3}):
    for name in ("header", "date", "retry_info", "unavailable", "reset", "cut", "slow", "days"):
        ask(name)
    for status in (400, 404):
        ask(f"refused_{status}")
    ask("own_delay", "unavailable", retry_delay=timedelta(seconds=100))
    ask("no_retries", "header", retries=0)
    ask("configured", "unavailable", retry_policy=AdkRetryPolicy(base_delay=1000, max_delay=2000))
    ask(
        "own_policy",
        "refused_400",
        retry_policy=ExceptionRetryPolicy(
            [RetryRule("google.genai.errors.ClientError", RetryAction.RETRY, timedelta(seconds=44), "mine")]
        ),
    )
    AdkToolOperator(task_id="tool", tool=call_the_server, arguments={})
    group = ParallelAgent(name="both", sub_agents=[agent("header", "one"), agent("retry_info", "two")])
    AdkAgentOperator(task_id="parallel_agent", agent=group, prompt="go")
    for mode in ("tasks", "embedded"):
        AdkTaskGroup(
            Workflow(
                name=f"inside_{mode}",
                edges=[(START, node(agent("inside_" + mode), retry_config=RetryConfig(max_attempts=3, initial_delay=0.01)))],
            ),
            mode=mode,
        )
    AdkTaskGroup(Workflow(name="dynamic", edges=[(START, asks_twice("header"))]))
"""


def answer_in(request: GeminiRequest) -> Any:
    """What the server says to an agent, by the first word of its instruction."""
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    seven = {"Retry-After": "7"}
    return {
        "header": error(429, message="too fast", headers=seven),
        "date": error(503, headers={"Retry-After": soon}),
        "retry_info": error(429, message="too fast", retry_delay=7.25),
        "days": error(429, headers={"Retry-After": str(5 * 86400)}),
        "unavailable": error(503),
        "reset": reset(),
        "cut": cut("a long answer that does not come to its end"),
        "slow": slow(text("late"), 20),
        **{f"refused_{status}": error(status, message="no") for status in (400, 404)},
        "inside_tasks": error(429, headers=seven),
        "inside_embedded": error(429, headers=seven),
        "": error(503, headers=seven),
    }[(request.system.split() or [""])[0]]


@pytest.fixture(scope="module")
def tried() -> tuple[dict[str, Tried], Counter[str]]:
    with pytest.MonkeyPatch.context() as patch, GeminiServer(answer_in) as server:
        for name, value in {**server.environment, "NO_PROXY": "127.0.0.1"}.items():
            patch.setenv(name, value)
        return run_tasks("trying_again", SOURCE), Counter((one.system.split() or [""])[0] for one in server.requests)


Run = tuple[dict[str, Tried], Counter[str]]


@pytest.mark.parametrize(
    ("task", "low", "high", "what"),
    [
        ("header", 7, 7, "HTTP 429; the next try is in 7 s, as the server asks. _ResourceExhaustedError: too fast"),
        ("date", 95, 101, "HTTP 503; the next try is in "),
        ("retry_info", 7.25, 7.25, "HTTP 429; the next try is in 7.2 s, as the server asks."),
        ("days", 86400, 86400, "HTTP 429; the next try is in 24 h, the longest (max_server_delay), though the server asks"),
        ("unavailable", 30, 45, "HTTP 503; the next try is in "),
        ("reset", 30, 45, "the connection failed; the next try is in "),
        ("cut", 30, 45, "the answer was cut off; the next try is in "),
        ("slow", 30, 45, "a request timed out; the next try is in "),
        ("own_delay", 100, 150, "HTTP 503; the next try is in "),
        ("configured", 1000, 1500, "HTTP 503; the next try is in "),
        ("own_policy", 44, 44, "mine"),
        ("tool", 7, 7, "HTTP 503; the next try is in 7 s, as the server asks."),
        ("parallel_agent", 7, 7.25, "HTTP 429; the next try is in 7"),
        ("inside_tasks.a", 7, 7, "HTTP 429; the next try is in 7 s, as the server asks."),
        ("inside_embedded.inside_embedded", 7, 7, "HTTP 429; the next try is in 7 s, as the server asks."),
        ("dynamic.outer", 7, 7, "HTTP 429; the next try is in 7 s, as the server asks."),
    ],
)
def test_airflow_waits_and_says_why(tried: Run, task: str, low: float, high: float, what: str) -> None:
    one = tried[0][task]
    assert one.state == "up_for_retry"
    assert one.next_delay is not None
    assert low <= one.next_delay <= high
    assert one.retry_reason is not None
    assert one.retry_reason.startswith(what)
    assert one.retry_xcom == {"action": "retry", "delay_seconds": one.next_delay, "reason": one.retry_reason}
    logged = [json.loads(line) for line in one.log]
    assert [(line["action"], line["reason"]) for line in logged if line["event"] == "Retry policy decision"] == [
        ("retry", one.retry_reason)
    ]


@pytest.mark.parametrize("status", [400, 404])
def test_what_is_refused_fails_at_once_and_says_why(tried: Run, status: int) -> None:
    one = tried[0][f"refused_{status}"]
    reason = f"HTTP {status}; another try would end the same way, so there is none. ClientError: no"
    assert (one.state, one.next_delay) == ("failed", None)
    assert one.retry_xcom == {"action": "fail", "delay_seconds": None, "reason": reason}
    assert "Retry policy decision" in one.events


def test_without_retries_the_reason_says_so(tried: Run) -> None:
    one = tried[0]["no_retries"]
    assert one.state == "failed"
    assert one.retry_xcom is not None
    assert one.retry_xcom["action"] == "fail"
    assert "another try may help (the server asks to wait 7 s), but the task has no retries." in one.retry_xcom["reason"]


@pytest.mark.parametrize("mode", ["tasks", "embedded"])
def test_adks_own_retries_come_first_inside_the_try(tried: Run, mode: str) -> None:
    assert tried[1][f"inside_{mode}"] == 3


def test_another_agent_is_asked_once_in_its_try(tried: Run) -> None:
    names = ("date", "days", "cut", "slow", "refused_404")
    assert {name: tried[1][name] for name in names} == dict.fromkeys(names, 1)


SECOND = """
from airflow.sdk import DAG
from google.adk.agents import LlmAgent
from adk_airflow import AdkAgentOperator

with DAG("second_try", schedule=None, default_args={"retries": 3}):
    agent = LlmAgent(name="a", model="gemini-2.5-flash")
    AdkAgentOperator.partial(task_id="ask", agent=agent).expand(prompt=["busy", "refused", "fine"])
"""


def test_each_item_waits_for_itself_and_the_reason_goes_with_the_next_try(gemini: Gemini) -> None:
    def script(request: GeminiRequest) -> Reply:
        if request.last_text == "refused":
            return error(400)
        asked = sum(one.last_text == request.last_text for one in server.requests)
        return error(429, headers={"Retry-After": "0.2"}) if request.last_text == "busy" and asked < 3 else text("yes")

    server = gemini(script)
    with dag_files({"second_try.py": SECOND}):
        run = SupervisedRun("second_try", "second_try.py")
        run.go()
    assert {task: [(one.state, one.next_delay) for one in tries] for task, tries in run.tried.items()} == {
        "ask[0]": [("up_for_retry", 0.2), ("up_for_retry", 0.2), ("success", None)],
        "ask[1]": [("failed", None)],
        "ask[2]": [("success", None)],
    }
    assert [one.retry_xcom and one.retry_xcom["action"] for one in run.tried["ask[0]"]] == ["retry", "retry", None]
    assert run.xcom("ask", "adk_retry", map_index=1)["reason"].startswith("HTTP 400; another try would end the same way")
