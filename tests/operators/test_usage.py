"""What models cost: counted as ADK counts it, by agent and model, once, however the task ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk._shared.observability.metrics.base_stats_logger import NoStatsLogger
from airflow.sdk.observability import stats
from google.adk.agents import LlmAgent, ParallelAgent, SequentialAgent
from google.adk.models import Gemini
from google.adk.models.anthropic_llm import AnthropicLlm as Claude
from google.adk.models.llm_request import LlmRequest
from google.adk.telemetry._token_usage import TokenUsage
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

from adk_airflow import AdkAgentOperator
from adk_airflow.errors import BudgetExceededError
from adk_airflow.runtime.record.usage import reported
from adk_airflow.testing import WorkflowRun
from tests.operators import agents
from tests.operators.agents import by_agent, named
from tests.servers.gemini import GeminiRequest, GeminiServer, call, counted, error

Ask = Callable[..., WorkflowRun]
Start = Callable[[Callable[[GeminiRequest], Any]], GeminiServer]
MODEL = agents.MODEL
CLAUDE = "claude-sonnet-4-20250514"
TOKENS = {
    "promptTokenCount": 100,
    "toolUsePromptTokenCount": 7,
    "cachedContentTokenCount": 40,
    "candidatesTokenCount": 20,
    "thoughtsTokenCount": 5,
    "totalTokenCount": 132,
}
COUNTED = {"input_tokens": 107, "output_tokens": 25, "cached_tokens": 40, "thought_tokens": 5, "total_tokens": 132}


def clerk(**options: Any) -> LlmAgent:
    return named("clerk", tools=[agents.add], **options)


def adds(times: int) -> Callable[[GeminiRequest], Any]:
    """Has the tool called so many times before it answers; each answer costs ``TOKENS``."""

    def script(request: GeminiRequest) -> Any:
        done = sum("functionResponse" in part for content in request.contents for part in content.get("parts", []))
        return counted(call("add", {"a": done, "b": 1}) if done < times else f"{done} sums", **TOKENS)

    return script


def times(count: int, counts: dict[str, int] = COUNTED) -> dict[str, int]:
    return {"requests": count, **{name: count * tokens for name, tokens in counts.items()}}


# What is counted


def test_calls_are_summed_by_agent_and_model(gemini: Start, ask: Ask) -> None:
    gemini(adds(2))
    run = ask(clerk())

    assert run.task_usage == {
        "ask": [{"task": "ask", **times(3), "by_agent": [{"agent": "clerk", "model": MODEL, **times(3)}]}]
    }


@pytest.mark.parametrize(
    "metadata",
    [
        [None],
        [{}],
        [{"prompt_token_count": 3}],
        [{"prompt_token_count": 9, "candidates_token_count": 2, "thoughts_token_count": 1, "tool_use_prompt_token_count": 4}],
        [{"prompt_token_count": 9, "candidates_token_count": 1}, {"prompt_token_count": 9, "candidates_token_count": 5}, None],
        [{"cached_content_token_count": 8, "prompt_token_count": 8}, None],
    ],
)
def test_tokens_are_those_of_adks_own_telemetry(metadata: list[dict[str, int] | None]) -> None:
    kind = types.GenerateContentResponseUsageMetadata
    responses: list[Any] = [SimpleNamespace(usage_metadata=None if one is None else kind(**one)) for one in metadata]
    adks = TokenUsage.from_llm_responses(responses) or TokenUsage()
    spent, _ = reported(responses)

    assert (spent.input_tokens, spent.output_tokens) == (adks.input_tokens or 0, adks.output_tokens or 0)
    assert spent.cached_tokens == (adks.cache_read_input_tokens or 0)
    assert spent.thought_tokens == (adks.reasoning_output_tokens or 0)
    assert spent.total_tokens == adks.total_tokens


def test_every_agent_of_a_tree_is_counted_also_one_that_is_called_like_a_tool(gemini: Start, ask: Ask) -> None:
    gemini(
        by_agent(
            {
                "first": counted("one", **TOKENS),
                "left": counted("two", **TOKENS),
                "right": counted("three", **TOKENS),
                "boss": lambda request: counted(
                    "done" if request.function_responses else call("helper", {"request": "help"}), **TOKENS
                ),
                "helper": counted("four", **TOKENS),
            }
        )
    )
    both = ParallelAgent(name="both", sub_agents=[named("left"), named("right")])
    boss = named("boss", tools=[AgentTool(named("helper"))])
    run = ask(SequentialAgent(name="all", sub_agents=[named("first"), both, boss]))
    [usage] = run.task_usage["ask"]

    assert {row["agent"]: row["requests"] for row in usage["by_agent"]} == {
        "first": 1, "left": 1, "right": 1, "boss": 2, "helper": 1,
    }  # fmt: skip
    assert {name: usage[name] for name in ("requests", *COUNTED)} == times(6)


def test_a_stream_counts_once(gemini: Start) -> None:
    gemini(lambda request: counted("a longer answer in several parts", **TOKENS))

    async def ask_in_parts() -> list[Any]:
        content = types.Content(role="user", parts=[types.Part(text="hello")])
        request = LlmRequest(model=MODEL, contents=[content])
        return [response async for response in Gemini(model=MODEL).generate_content_async(request, stream=True)]

    responses = asyncio.run(ask_in_parts())
    spent, _ = reported(responses)

    assert len(responses) > 2
    assert {name: getattr(spent, name) for name in COUNTED} == COUNTED


def test_models_of_another_vendor_are_counted_likewise(anthropic: Callable[..., Any], ask: Ask) -> None:
    anthropic(lambda request: "three words more")
    [usage] = ask(LlmAgent(name="clerk", model=Claude(model=CLAUDE)), "two words").task_usage["ask"]

    assert usage["by_agent"][0] == {
        "agent": "clerk", "model": CLAUDE, "requests": 1, "input_tokens": usage["input_tokens"], "output_tokens": 3,
        "cached_tokens": 0, "thought_tokens": 0, "total_tokens": usage["input_tokens"] + 3,
    }  # fmt: skip
    assert usage["input_tokens"] >= 2


def test_a_task_that_fails_leaves_it_too(gemini: Start, ask: Ask) -> None:
    answers = iter([counted(call("add", {"a": 1, "b": 1}), **TOKENS), error(400, message="no")])
    gemini(lambda request: next(answers))
    run = ask(clerk())

    assert run.state == "failed"
    assert run.task_usage["ask"][0]["by_agent"] == [{"agent": "clerk", "model": MODEL, "requests": 2, **COUNTED}]


def test_a_task_without_a_model_leaves_none(use: Ask) -> None:
    run = use(tool="tests.operators.agents:add", arguments={"a": 1, "b": 2})

    assert (run.state, run.task_usage) == ("success", {})


def test_airflows_metrics_count_each_call(gemini: Start, ask: Ask) -> None:
    counts: list[tuple[str, int, dict[str, str]]] = []

    class Logger:
        def incr(self, stat: str, count: int = 1, rate: float = 1, *, tags: dict[str, str]) -> None:
            if stat.startswith("adk."):
                counts.append((stat, count, tags))

        def __getattr__(self, name: str) -> Any:
            return lambda *args, **kwargs: None

    gemini(adds(1))
    stats.initialize(factory=Logger, export_legacy_names=False)  # type: ignore[arg-type]
    try:
        ask(clerk())
    finally:
        stats.initialize(factory=NoStatsLogger, export_legacy_names=False)
    tags = {"dag_id": "asking", "task_id": "ask", "agent": "clerk", "model": MODEL}
    once = [("requests", 1), ("tokens.input", 107), ("tokens.output", 25), ("tokens.cached", 40), ("tokens.thought", 5)]

    assert counts == [(f"adk.{name}", count, tags) for name, count in once * 2]


# Budgets


@pytest.mark.parametrize(
    ("limits", "made"),
    [
        ({"max_llm_calls": 1}, 1),
        ({"max_llm_calls": 3}, 3),
        ({"max_tokens": 132}, 1),
        ({"max_tokens": 133}, 2),
        ({"max_llm_calls": 2, "max_tokens": 10_000}, 2),
    ],
)
def test_no_call_is_made_that_is_too_many(gemini: Start, ask: Ask, limits: dict[str, int], made: int) -> None:
    server = gemini(adds(9))
    run = ask(clerk(), retries=3, **limits)
    assert run.error is not None

    assert (run.state, len(server.requests)) == ("failed", made)
    assert run.error[0] == BudgetExceededError.__name__
    name = "max_llm_calls" if limits.get("max_llm_calls") == made else "max_tokens"
    assert f"agent 'clerk' may not ask '{MODEL}', since this task has spent its budget, {name}={limits[name]}" in run.error[1]
    assert f"agent 'clerk' with '{MODEL}': {made} model call" in run.error[1]
    assert run.task_usage["ask"][0]["requests"] == made


def test_a_budget_that_suffices_changes_nothing(gemini: Start, ask: Ask) -> None:
    gemini(adds(2))
    run = ask(clerk(), max_llm_calls=3, max_tokens=2 * 132 + 1)

    assert run.outputs == {"clerk": ["2 sums"]}


def test_agents_side_by_side_share_the_calls_of_their_task(gemini: Start, ask: Ask) -> None:
    server = gemini(lambda request: "yes")
    both = ParallelAgent(name="both", sub_agents=[named(name) for name in ("one", "two", "three")])
    run = ask(both, max_llm_calls=2)

    assert run.state == "failed"
    assert len(server.requests) <= 2


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({"max_llm_calls": 0}, "task 'ask': max_llm_calls 0 is not an integer of 1 or more"),
        ({"max_llm_calls": True}, "max_llm_calls True is not an integer"),
        ({"max_tokens": 1.5}, "max_tokens 1.5 is not an integer of 1 or more"),
        ({"max_tokens": "many"}, "max_tokens 'many' is not an integer"),
        ({"max_cost": 0}, "max_cost 0 is no number above 0"),
        ({"max_cost": float("nan")}, "max_cost nan is no number above 0"),
        ({"max_tokens": {"clerk": 5}}, "max_tokens names 'clerk', and there is no such node"),
    ],
)
def test_what_is_no_limit_is_refused_when_the_dag_is_made(limits: dict[str, Any], says: str) -> None:
    with DAG("refused", schedule=None), pytest.raises(ValueError, match="task 'ask': ") as raised:
        AdkAgentOperator(task_id="ask", agent=clerk(), prompt="x", **limits)
    assert says in str(raised.value)


# Prices

PRICES = '{"gemini-2.5-*": {"input": 1, "cached": 0.25, "output": 10}}'


def set_prices(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__PRICES", text)


def test_a_price_table_gives_the_cost(gemini: Start, ask: Ask, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "prices.json").write_text(PRICES)
    set_prices(monkeypatch, str(tmp_path / "prices.json"))
    gemini(adds(1))
    [usage] = ask(clerk()).task_usage["ask"]

    # 67 tokens read anew, 40 from the cache, 25 written
    assert usage["cost"] == pytest.approx(2 * (67 * 1 + 40 * 0.25 + 25 * 10) / 1e6, abs=1e-12)
    assert usage["by_agent"][0]["cost"] == usage["cost"]


def test_genai_prices_knows_models(gemini: Start, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    set_prices(monkeypatch, "genai-prices")
    gemini(adds(0))
    [usage] = ask(clerk()).task_usage["ask"]

    assert 0 < usage["cost"] < 0.001


def test_what_a_model_costs_that_has_no_price_is_not_known(gemini: Start, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    set_prices(monkeypatch, '{"another": {"input": 1, "output": 1}}')
    gemini(adds(0))
    [usage] = ask(clerk()).task_usage["ask"]

    assert (usage["cost"], usage["requests"]) == (None, 1)


def test_money_is_a_budget_too(gemini: Start, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    set_prices(monkeypatch, PRICES)
    server = gemini(adds(9))
    run = ask(clerk(), max_cost=0.0008)
    assert run.error is not None

    assert len(server.requests) == 3  # 0.000327 each
    assert "max_cost=0.0008" in run.error[1]
    assert "cost 0.000981" in run.error[1]


@pytest.mark.parametrize("prices", ["", '{"another": {"input": 1, "output": 1}}'])
def test_a_budget_of_money_needs_prices(gemini: Start, ask: Ask, monkeypatch: pytest.MonkeyPatch, prices: str) -> None:
    set_prices(monkeypatch, prices)
    server = gemini(adds(9))
    run = ask(clerk(), max_cost=1)
    assert run.error is not None

    assert (run.error[0], server.requests) == ("ServiceConfigurationError", [])
    assert f"this task has a max_cost, and '{MODEL}' no price. Set [adk_airflow] prices" in run.error[1]


@pytest.mark.parametrize(
    ("prices", "says"),
    [
        ("/no/such/file.json", "no file that can be read"),
        ("prices.json", "it is no absolute path"),
        ("genai_prices", "which is neither genai-prices nor a JSON object"),
        ("{", "is no JSON object"),
        ("{}", "no JSON object with a model"),
        ('{"m": 3}', "'m' has no prices"),
        ('{"m": {"input": 1}}', "'m' has no price of output"),
        ('{"m": {"input": -1, "output": 1}}', "the input price -1 of 'm' is no number of 0 or more"),
        ('{"m": {"input": true, "output": 1}}', "the input price True of 'm'"),
        ('{"m": {"input": NaN, "output": 1}}', "the input price nan of 'm'"),
        ('{"m": {"input": 1, "ouput": 1}}', "Did you mean 'output'?"),
    ],
)
def test_prices_that_cannot_be_read_are_an_error_that_names_the_setting(
    gemini: Start, ask: Ask, monkeypatch: pytest.MonkeyPatch, prices: str, says: str
) -> None:
    set_prices(monkeypatch, prices)
    server = gemini(adds(0))
    run = ask(clerk())
    assert run.error is not None

    assert (run.error[0], server.requests) == ("ServiceConfigurationError", [])
    assert "[adk_airflow] prices" in run.error[1]
    assert says in run.error[1]
