"""Seed 000, section 7: JoinNode, as DAG runs."""

from __future__ import annotations

from typing import Any

from adk_airflow.testing import run_workflow
from tests.seeds import join_node as seed
from tests.seeds.as_dag import StartServer, run_both
from tests.seeds.in_process import assert_same, run_in_process
from tests.servers.gemini import GeminiRequest, structured


def translating(request: GeminiRequest) -> str:
    return ("Bonjour" if "French" in request.system else "Guten Tag") + f" ({request.last_text})"


def test_example_1_two_agents_at_once_meet_in_the_join(gemini: StartServer) -> None:
    both = run_both(gemini(translating), seed.parallel_translate, "Good day")

    lines = "translate_fr: Bonjour (Good day)", "translate_de: Guten Tag (Good day)"
    assert both.run.output == "\n".join(lines)
    assert sorted(both.adk.output.splitlines()) == sorted(lines)
    assert both.run.task_states["join_translations"] == ["success"]


def test_example_2_the_join_gives_a_dict_by_predecessor() -> None:
    run = run_workflow(seed.score_aggregator)

    assert run.outputs["join"] == [
        {"branch_a": {"score": 0.9, "label": "positive"}, "branch_b": {"score": 0.3, "label": "negative"}}
    ]
    assert run.output == {"average_score": 0.6}
    assert_same(run, run_in_process(seed.score_aggregator))


def searching(request: GeminiRequest) -> Any:
    source = request.system.split()[2]
    return structured({"query": request.last_text, "hits": len(source), "top_result": f"the {source}"})


def test_example_3_three_agents_with_schemas_meet_as_dicts(gemini: StartServer) -> None:
    both = run_both(gemini(searching), seed.multi_search, "tides")

    assert both.run.output == {"total_hits": 11, "sources": ["search_web", "search_wiki", "search_news"]}
    assert both.run.outputs["join_search"][0]["search_wiki"] == {"query": "tides", "hits": 4, "top_result": "the wiki"}
    assert all(list(request.response_schema["properties"]) for request in both.requests if request.response_schema)
    assert both.adk.output["total_hits"] == 11


def test_example_3_the_joins_schema_is_checked_for_each_value(gemini: StartServer) -> None:
    both = run_both(gemini(searching), seed.checked_search, "tides")

    assert both.run.output == {"total_hits": 11, "sources": ["search_web", "search_wiki", "search_news"]}


def test_example_3_a_value_that_violates_the_agents_schema_fails_its_branch_and_the_join_never_runs(
    gemini: StartServer,
) -> None:
    def script(request: GeminiRequest) -> Any:
        return structured({"hits": "many"}) if "wiki" in request.system else searching(request)

    both = run_both(gemini(script), seed.multi_search, "tides")

    assert both.run.task_states["search_wiki"] == ["failed"]
    assert both.run.task_states["join_search"] == ["upstream_failed"]
    assert both.run.error is not None
    assert both.adk.error is not None
    assert both.run.error[0] == both.adk.error[0]
