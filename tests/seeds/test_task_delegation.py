"""Seed 003: task delegation, as DAG runs: every mode and rule, under a coordinator and as nodes of a graph."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.adk import Agent

from adk_airflow import plan_workflow
from adk_airflow.testing import run_workflow
from tests.seeds import task_delegation as seed
from tests.seeds.as_dag import StartServer, parameters_of, run_agent, run_both
from tests.servers.gemini import GeminiRequest, Reply, call, calls

FINDINGS = {"summary": "The moon does it.", "key_findings": "gravity", "confidence": "high"}


def answers(request: GeminiRequest) -> dict[str, Any]:
    return {answer["name"]: answer["response"] for answer in request.function_responses}


def called(request: GeminiRequest) -> list[str]:
    """The names of the functions that were called so far."""
    parts = [part for content in request.contents for part in content["parts"]]
    return [part["functionCall"]["name"] for part in parts if "functionCall" in part]


class Model:
    """Plays all agents of the seed. An agent is known by the tools that its request offers.

    ``finish``: what the task-mode agents give to finish_task, one after the other.
    """

    def __init__(self, *finish: dict[str, Any]) -> None:
        self.finish = finish

    def __call__(self, request: GeminiRequest) -> Reply | str:
        if "finish_task" in request.tools:
            return self.task(request)
        if "extract_text" in request.tools:
            return self.summarizer(request)
        delegates = [name for name in ("researcher", "summarizer", "worker") if name in request.tools]
        return self.coordinator(request, delegates[0]) if delegates else f"Done: {request.last_text}"

    def task(self, request: GeminiRequest) -> Reply:
        if "search_web" in request.tools and "search_web" not in called(request):
            return call("search_web", {"query": json.loads(request.texts[0])["topic"]})
        return call("finish_task", self.finish[called(request).count("finish_task")])

    def summarizer(self, request: GeminiRequest) -> Reply:
        if "extract_text" in answers(request):
            return call("set_model_response", {"summary": "Short.", "word_count": 1})
        return call("extract_text", {"document": request.last_text})

    def coordinator(self, request: GeminiRequest, delegate: str) -> Reply | str:
        if delegate in answers(request):
            return f"It gave {answers(request)[delegate]}"
        return call(delegate, {"topic": "tides"} if delegate == "researcher" else {"request": "this"})


# Under a coordinator


def test_task_mode_the_coordinator_gets_what_finish_task_was_called_with(gemini: StartServer) -> None:
    both = run_both(gemini(Model(FINDINGS)), seed.research_coordinator(), "Research tides")

    coordinator, first, second, again = both.requests
    assert answers(again) == {"researcher": FINDINGS}
    assert both.run.output == f"It gave {FINDINGS}"
    assert list(coordinator.tools) == ["researcher"]
    assert {"search_web", "finish_task"} <= set(first.tools)
    assert answers(second) == {"search_web": {"result": 'Results for "tides": three pages'}}
    both.assert_same()


def test_task_mode_the_sub_agent_sees_its_job_and_not_the_conversation(gemini: StartServer) -> None:
    both = run_both(gemini(Model(FINDINGS)), seed.research_coordinator(), "Research tides")

    assert both.requests[1].texts == ['{"topic": "tides"}']
    assert "Do NOT call `finish_task` prematurely" in both.requests[1].system


def test_single_turn_mode_the_coordinator_gets_the_validated_output(gemini: StartServer) -> None:
    both = run_both(gemini(Model()), seed.summary_coordinator(), "Sum up")

    coordinator, first, *_, again = both.requests
    assert list(coordinator.tools) == ["summarizer"]
    assert first.texts == ["this"]
    # Since 2.12 it has no finish_task: the schema is met as in any other agent with tools.
    assert "finish_task" not in first.tools
    assert "set_model_response" in first.tools
    assert answers(again) == {"summarizer": {"summary": "Short.", "word_count": 1}}
    both.assert_same()


def test_chat_mode_the_sub_agent_is_a_transfer_target_and_has_neither_tool(gemini: StartServer) -> None:
    def script(request: GeminiRequest) -> Any:
        if request.system.startswith("Plan trips"):
            return call("transfer_to_agent", {"agent_name": "guide"})
        return "The old town."

    both = run_both(gemini(script), seed.travel_planner(), "What is there to see?")

    planner, guide = both.requests
    assert "guide" not in planner.tools
    assert parameters_of(planner, "transfer_to_agent")["agent_name"]["enum"] == ["guide"]
    assert set(guide.tools) == {"transfer_to_agent"}
    assert both.run.output == "The old town."
    both.assert_same()


def test_the_input_schema_types_the_delegation_tool_and_the_output_schema_finish_task(gemini: StartServer) -> None:
    both = run_both(gemini(Model(FINDINGS)), seed.research_coordinator(), "Research tides")

    delegation, finish = parameters_of(both.requests[0], "researcher"), parameters_of(both.requests[1], "finish_task")
    assert list(delegation) == ["topic", "depth"]
    assert delegation["depth"]["default"] == "standard"
    assert list(finish) == ["summary", "key_findings", "confidence"]


def test_without_schemas_a_request_goes_in_and_a_result_comes_out(gemini: StartServer) -> None:
    both = run_both(gemini(Model({"result": "dug"})), seed.plain_coordinator("task"), "Dig")

    request = parameters_of(both.requests[0], "worker")["request"]
    assert (request["type"], request["description"]) == (
        "string", "Detailed instructions or context for the task sub-agent."
    )  # fmt: skip
    assert {name: value["type"] for name, value in parameters_of(both.requests[1], "finish_task").items()} == {
        "result": "string"
    }
    assert answers(both.requests[2]) == {"worker": {"result": "dug"}}
    both.assert_same()


def test_without_schemas_a_single_turn_agent_takes_a_request_and_gives_its_text(gemini: StartServer) -> None:
    both = run_both(gemini(Model()), seed.plain_coordinator("single_turn"), "Dig")

    assert list(parameters_of(both.requests[0], "worker")) == ["request"]
    assert answers(both.requests[2]) == {"worker": {"result": "Done: this"}}
    both.assert_same()


def test_a_violated_output_schema_comes_back_to_the_model_which_repairs_it(gemini: StartServer) -> None:
    server = gemini(Model({"summary": "The moon does it."}, FINDINGS))

    both = run_both(server, seed.research_coordinator(), "Research tides")

    refused = answers(both.requests[3])["finish_task"]["error"]
    assert "key_findings" in refused
    assert "confidence" in refused
    assert both.run.output == f"It gave {FINDINGS}"
    both.assert_same()


def test_a_violated_input_schema_of_a_single_turn_agent_comes_back_to_the_coordinator(gemini: StartServer) -> None:
    agent = seed.summarizer(input_schema=seed.ResearchInput)
    root = Agent(name="coordinator", model=seed.MODEL, sub_agents=[agent], instruction="Delegate.")

    both = run_both(gemini(Model()), root, "Sum up")

    assert "topic" in answers(both.requests[1])["summarizer"]["result"]
    assert len(both.requests) == 2
    both.assert_same()


def test_the_description_is_the_tools_description_and_forbids_parallel_calls_in_task_mode(gemini: StartServer) -> None:
    both = run_both(gemini(lambda request: "Where to?"), seed.travel_planner(), "Hello")

    (planner,) = both.requests
    task, single_turn = planner.tools["flight_searcher"]["description"], planner.tools["weather_checker"]["description"]
    assert task.startswith("Searches and books flights interactively.\nIMPORTANT")
    assert task.endswith("Do NOT call this tool in parallel with any other tools.")
    assert single_turn == "Checks weather for a destination."
    both.assert_same()


def test_sub_agents_inherit_the_model_of_the_coordinator(gemini: StartServer) -> None:
    root = seed.research_coordinator()
    root.model = "gemini-2.5-pro"

    both = run_both(gemini(Model(FINDINGS)), root, "Research tides")

    assert [request.model for request in both.requests] == ["gemini-2.5-pro"] * 4
    both.assert_same()


def plan_a_trip(request: GeminiRequest) -> Any:
    """Weather first, then a flight, one after the other."""
    if "get_weather" in request.tools:
        if answers(request):
            return call("set_model_response", {"destination": "Rome", "forecast": answers(request)["get_weather"]["result"]})
        return call("get_weather", {"destination": "Rome"})
    if "search_flights" in request.tools:
        if "book_flight" in called(request):
            return call("finish_task", {"flight": "XY 12", "price": 120.5})
        if "search_flights" in called(request):
            return call("book_flight", {"flight": "XY 12"})
        return call("search_flights", json.loads(request.texts[0]))
    if "flight_searcher" in answers(request):
        return f"Booked {answers(request)['flight_searcher']['flight']}."
    if "weather_checker" in answers(request):
        return call("flight_searcher", {"origin": "Bern", "destination": "Rome"})
    return call("weather_checker", {"request": "Rome"})


def test_mixed_modes_under_one_coordinator(gemini: StartServer) -> None:
    both = run_both(gemini(plan_a_trip), seed.travel_planner(), "A trip to Rome")

    assert set(both.requests[0].tools) == {"flight_searcher", "weather_checker", "transfer_to_agent"}
    said_by_weather = next(answers(r) for r in both.requests if "weather_checker" in answers(r))
    assert said_by_weather["weather_checker"]["forecast"] == "sunny in Rome"
    assert both.run.output == "Booked XY 12."
    both.assert_same()


def test_two_delegations_in_one_turn_do_not_run_side_by_side(
    gemini: StartServer,
) -> None:
    def script(request: GeminiRequest) -> Any:
        if "finish_task" in request.tools:
            return call("finish_task", {"result": f"did {request.texts[0]}"})
        if len(request.function_responses) == 2:
            return " and ".join(answer["response"]["result"] for answer in request.function_responses)
        return calls([("worker", {"request": "one"}), ("worker", {"request": "two"})])

    both = run_both(gemini(script), seed.plain_coordinator("task"), "Dig twice")

    jobs = [request.texts[0] for request in both.requests if "finish_task" in request.tools]
    assert jobs == ['{"request": "one"}', '{"request": "two"}']
    assert both.run.output == 'did {"request": "one"} and did {"request": "two"}'
    both.assert_same()


# As nodes of a graph


def test_a_task_mode_node_gives_what_finish_task_was_called_with(gemini: StartServer) -> None:
    workflow = seed.as_graph_node(seed.researcher(model=seed.MODEL, output_key="findings"))

    both = run_both(gemini(Model(FINDINGS)), workflow, '{"topic": "tides"}')

    assert both.run.output == f"got {FINDINGS}"
    assert both.run.session_state == {"findings": FINDINGS}
    # Unlike under a coordinator, the input schema fills in its defaults.
    assert both.requests[0].texts == ['{"topic": "tides", "depth": "standard"}']
    both.assert_same()


def test_a_task_mode_node_repairs_a_violated_schema(gemini: StartServer) -> None:
    workflow = seed.as_graph_node(seed.researcher(model=seed.MODEL))

    both = run_both(gemini(Model({}, {"summary": 7}, FINDINGS)), workflow, '{"topic": "tides"}')

    assert both.run.output == f"got {FINDINGS}"
    assert len(both.requests) == 4
    both.assert_same()


def test_a_task_mode_node_without_a_schema_gives_a_result(gemini: StartServer) -> None:
    workflow = seed.as_graph_node(seed.plain("task", model=seed.MODEL))

    both = run_both(gemini(Model({"result": "dug"})), workflow, "Dig")

    assert both.run.output == "got {'result': 'dug'}"
    both.assert_same()


def test_a_single_turn_node_gives_the_validated_output(gemini: StartServer) -> None:
    both = run_both(gemini(Model()), seed.as_graph_node(seed.summarizer(model=seed.MODEL)), "doc 1")

    assert both.run.output == "got {'summary': 'Short.', 'word_count': 1}"
    both.assert_same()


@pytest.mark.parametrize("mode", ["single_turn", None])
def test_a_node_without_a_mode_is_single_turn_and_gives_its_text(gemini: StartServer, mode: str | None) -> None:
    agent = Agent(name="worker", model=seed.MODEL, instruction="Work.", **({"mode": mode} if mode else {}))

    both = run_both(gemini(Model()), seed.as_graph_node(agent), "Dig")

    assert both.run.output == "got 'Done: Dig'"
    both.assert_same()


def test_a_chat_mode_node_has_no_output_so_what_follows_it_never_runs(gemini: StartServer) -> None:
    both = run_both(gemini(Model()), seed.as_graph_node(seed.plain("chat", model=seed.MODEL)), "Dig")

    assert both.run.state == "success"
    assert both.run.output is None
    assert both.run.task_states == {"worker": ["success"], "show": ["skipped"]}
    assert both.adk.outputs == both.run.outputs == {}


def test_an_input_that_violates_the_schema_of_a_node_fails_it(gemini: StartServer) -> None:
    both = run_both(gemini(Model()), seed.as_graph_node(seed.researcher(model=seed.MODEL)), '{"subject": "tides"}')

    assert both.run.state == "failed"
    assert both.requests == []
    both.assert_same()


# Questions to a person


def asking(request: GeminiRequest) -> Any:
    return "How deep?" if "finish_task" in request.tools else call("worker", {"request": "dig"})


def test_a_question_of_a_task_mode_agent_under_a_coordinator_fails_with_what_to_do(gemini: StartServer) -> None:
    gemini(asking)

    run = run_agent(seed.plain_coordinator("task"), "Dig")

    assert run.state == "failed"
    assert run.error is not None
    assert run.error[0] == "HumanInputNotSupportedError"
    assert "worker" in run.error[1]


@pytest.mark.parametrize("mode", ["tasks", "embedded"])
def test_a_question_of_a_task_mode_node_fails_with_what_to_do(gemini: StartServer, mode: str) -> None:
    gemini(asking)
    workflow = seed.as_graph_node(seed.plain("task", model=seed.MODEL))
    announced = [text for text in plan_workflow(workflow).warnings if text.startswith("human-input:")]
    assert any("agent 'worker' is in task mode" in text for text in announced)

    run = run_workflow(workflow, input="Dig", mode=mode)

    assert run.state == "failed"
    assert run.error is not None
    assert run.error[0] == "HumanInputNotSupportedError"
    assert "worker" in run.error[1]
