"""Seed 000, section 10: Workflow.max_concurrency and the edge patterns, as DAG runs."""

from __future__ import annotations

from typing import Any

import pytest

from adk_airflow import AdkDag
from adk_airflow.testing import run_workflow
from tests.seeds import workflow as seed
from tests.seeds.as_dag import StartServer, run_both
from tests.seeds.in_process import assert_same, run_in_process
from tests.servers.gemini import GeminiRequest


def working(request: GeminiRequest) -> str:
    return f"{request.system.split('.')[0].split()[-1]}: {request.last_text}"


def test_example_1_five_agents_at_once_meet_and_two_run_at_a_time(gemini: StartServer) -> None:
    both = run_both(gemini(working), seed.gathered_fan_out, "go")

    assert both.run.output == {f"worker_{number}": f"{number}: go" for number in range(5)}
    assert AdkDag(seed.gathered_fan_out, schedule=None).max_active_tasks == 2
    both.assert_same()


def test_example_1_as_written_it_ends_five_times_which_adk_takes_from_no_workflow(gemini: StartServer) -> None:
    both = run_both(gemini(working), seed.bounded_fan_out, "go")

    assert both.run.state == "failed"
    assert [both.run.task_states[f"worker_{number}"] for number in range(5)] == [["success"]] * 5
    assert both.run.error is not None
    assert both.adk.error is not None
    assert both.run.error[0] == both.adk.error[0]


def test_example_4_a_graph_that_is_made_beforehand(gemini: StartServer) -> None:
    def script(request: GeminiRequest) -> str:
        return "Ada, London" if request.system.startswith("Extract") else f"person and place: {request.last_text}"

    both = run_both(gemini(script), seed.nlp_pipeline, "Ada lived in London.")

    assert both.run.output == "person and place: Ada, London"
    both.assert_same()


@pytest.mark.parametrize(
    ("text", "route", "output"),
    [
        ("Where is my INVOICE?", "billing", "Billing handled: Where is my INVOICE?"),
        ("The app shows an error", "tech", "Tech handled: The app shows an error"),
        ("Good morning", "general", "General handled: Good morning"),
    ],
)
def test_example_2_a_routing_map_chooses_one_handler_and_skips_the_others(text: str, route: str, output: str) -> None:
    run = run_workflow(seed.ticket_router, input=text)

    assert run.output == output
    handlers = ("billing", "tech", "general")
    assert {name: run.task_states[f"handle_{name}"] for name in handlers} == {
        name: ["success" if name == route else "skipped"] for name in handlers
    }
    assert_same(run, run_in_process(seed.ticket_router, text))


@pytest.mark.parametrize(
    ("length", "output"), [(3, "low priority: "), (60, "standard: "), (101, "URGENT: ")], ids=["low", "medium", "high"]
)
def test_example_3_the_route_follows_the_text_when_the_first_node_asks_for_text(length: int, output: str) -> None:
    text = "x" * length

    run = run_workflow(seed.text_priority_router, input=text)

    assert run.output == output + text
    assert_same(run, run_in_process(seed.text_priority_router, text))


def test_example_3_without_a_type_the_message_itself_is_the_input_as_in_adk() -> None:
    """A short text gets a longer text's route: the length is that of the message object."""
    run = run_workflow(seed.priority_router, input="x" * 20)

    assert run.output.startswith("standard: parts=[Part(")
    assert_same(run, run_in_process(seed.priority_router, "x" * 20))


def test_example_5_fan_out_over_a_list_then_collect_then_reduce() -> None:
    run = run_workflow(seed.research_pipeline)

    topics = ("climate change", "renewable energy", "carbon capture")
    assert run.output == "REPORT:\n" + "\n".join(f"- Summary of {topic}" for topic in topics)
    assert run.task_states["research_topic.run"] == ["success"] * 3
    assert_same(run, run_in_process(seed.research_pipeline), nodes=False)


def test_example_5_max_concurrency_bounds_the_tasks_of_a_run() -> None:
    assert AdkDag(seed.research_pipeline, schedule=None).max_active_tasks == 3


@pytest.mark.parametrize(
    ("pattern", "output"),
    [
        ("chain", "last(b(a(go)))"),
        ("edge_objects", "edge_to(go)"),
        ("routed_edge_object", "edge_to(go)"),
        ("fan_out_and_in", {"a": "a(go)", "b": "b(go)"}),
        ("route_list_of_an_event", None),
        ("route_list_of_an_edge", "last(go)"),
        ("default_route", "last(other(go))"),
    ],
)
def test_every_way_to_write_an_edge(pattern: str, output: Any) -> None:
    workflow = seed.edge_patterns[pattern]

    run = run_workflow(workflow, input="go")

    assert (run.state, run.output) == ("success", output)
    assert_same(run, run_in_process(workflow, "go"))


def test_a_route_that_fans_out_runs_all_its_targets() -> None:
    workflow = seed.edge_patterns["fan_out_of_a_route"]

    run = run_workflow(workflow, input="go")

    assert {name: run.task_states[name] for name in "abcd"} == {
        "a": ["success"], "b": ["success"], "c": ["skipped"], "d": ["success"]
    }  # fmt: skip
    assert_same(run, run_in_process(workflow, "go"))
