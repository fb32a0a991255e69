"""Seed 000, section 9: _ParallelWorker, as DAG runs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.adk.workflow import Workflow

from adk_airflow import AdkDag
from adk_airflow.testing import run_workflow
from tests.seeds import parallel_worker as seed
from tests.seeds.as_dag import StartServer, run_both
from tests.seeds.in_process import assert_same, run_in_process
from tests.servers.gemini import GeminiRequest


def test_example_1_each_document_is_a_mapped_task_and_the_order_stays() -> None:
    run = run_workflow(seed.batch_summariser)

    assert run.task_states["summarise_document.run"] == ["success"] * 3
    assert run.output == [{"doc_id": f"doc{number}", "summary": f"Document {number}…"} for number in (1, 2, 3)]
    assert_same(run, run_in_process(seed.batch_summariser), nodes=False)


@pytest.mark.parametrize("workflow", [seed.throttled_pipeline, seed.decorated_throttle], ids=lambda w: w.name)
def test_example_2_the_limit_is_the_mapped_tasks(workflow: Workflow) -> None:
    mapped: Any = AdkDag(workflow, schedule=None).get_task("call_rate_limited_api.run")

    assert mapped.partial_kwargs["max_active_tis_per_dagrun"] == 3


def test_example_2_all_items_come_out_in_order() -> None:
    run = run_workflow(seed.throttled_pipeline)

    assert run.output == [{"input": number, "result": f"processed_{number}"} for number in range(10)]
    assert run.task_states["call_rate_limited_api.run"] == ["success"] * 10


def test_example_2_in_one_task_adk_itself_keeps_the_limit() -> None:
    seed.running[:] = [0, 0]

    run = run_workflow(seed.throttled_pipeline, nodes={"call_rate_limited_api": {"mode": "embedded"}})

    assert seed.running == [0, 3]
    assert_same(run, run_in_process(seed.throttled_pipeline), nodes=False)


def test_example_3_an_agent_for_each_item(gemini: StartServer) -> None:
    def script(request: GeminiRequest) -> str:
        job = json.loads(request.last_text)
        return f"{job['text']} in {job['target_language']}"

    both = run_both(gemini(script), seed.multi_lang_translate, "Hello, world!")

    assert both.run.output == [f"Hello, world! in {language}" for language in ("French", "German", "Japanese")]
    assert both.run.task_states["translate.run"] == ["success"] * 3
    assert len(both.requests) == 3
    both.assert_same(nodes=False)


def test_example_4_a_single_value_is_a_list_of_one() -> None:
    run = run_workflow(seed.single_item_workflow)

    assert run.output == ["done:single_value"]
    assert_same(run, run_in_process(seed.single_item_workflow), nodes=False)


def test_example_5_the_first_error_is_the_runs_and_no_partial_result_comes_out() -> None:
    run = run_workflow(seed.error_propagation_demo)

    assert run.error == ("ValueError", "Item 2 failed intentionally.")
    assert run.output is None
    # Unlike in one process, where ADK cancels them: documented in docs/differences.md.
    assert run.task_states["unreliable_step.run"] == ["success", "success", "failed", "success", "success"]
    assert run.task_states["unreliable_step.collect"] == ["upstream_failed"]
    assert run_in_process(seed.error_propagation_demo).error == run.error


def test_example_5_in_one_task_the_siblings_are_cancelled_as_in_adk() -> None:
    run = run_workflow(seed.error_propagation_demo, nodes={"unreliable_step": {"mode": "embedded"}})

    assert_same(run, run_in_process(seed.error_propagation_demo), nodes=False)
    assert run.error == ("ValueError", "Item 2 failed intentionally.")
    assert "unreliable_step" not in run.outputs
