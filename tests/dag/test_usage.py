"""What models cost in a run: the sum over its tasks, and the budgets of nodes and runs, which all their tasks share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from google.adk import Event, Workflow
from google.adk.workflow import JoinNode, node

from adk_airflow import AdkDag, AdkTaskGroup, plan_workflow
from adk_airflow.errors import NodeOverrideError
from adk_airflow.testing import WorkflowRun, run_dag, run_workflow
from tests.dag.nodes import const, show
from tests.operators.agents import MODEL, named
from tests.servers.gemini import GeminiRequest, GeminiServer, counted

Start = Callable[[Callable[[GeminiRequest], Any]], GeminiServer]
TOKENS = {"promptTokenCount": 90, "candidatesTokenCount": 10}


def answer(request: GeminiRequest) -> Any:
    return counted("yes", **TOKENS)


def by_agent(run: WorkflowRun) -> dict[str, tuple[int, int]]:
    """Requests and tokens of the whole run, by agent."""
    assert run.usage is not None
    return {row["agent"]: (row["requests"], row["total_tokens"]) for row in run.usage["by_agent"]}


def chain() -> Workflow:
    return Workflow(name="wf", edges=[("START", named("one"), show("between"), named("two"), named("three"))])


def pair() -> Workflow:
    return Workflow(name="wf", edges=[("START", (named("left"), named("right")), JoinNode(name="both"), named("last"))])


# The sum


def test_the_result_task_has_the_sum_of_the_run(gemini: Start) -> None:
    gemini(answer)
    run = run_workflow(chain())

    assert run.task_usage.keys() == {"one", "two", "three"}
    assert by_agent(run) == {"one": (1, 100), "two": (1, 100), "three": (1, 100)}
    assert run.usage is not None
    assert "cost" not in run.usage
    assert {name: run.usage[name] for name in ("requests", "input_tokens", "output_tokens", "total_tokens")} == {
        "requests": 3, "input_tokens": 270, "output_tokens": 30, "total_tokens": 300,
    }  # fmt: skip


def test_branches_meet_in_the_sum_once(gemini: Start) -> None:
    gemini(answer)

    assert by_agent(run_workflow(pair())) == {"left": (1, 100), "right": (1, 100), "last": (1, 100)}


def test_of_mapped_items_all_are_summed_and_of_a_route_that_was_not_taken_none(gemini: Start) -> None:
    gemini(answer)
    router = node(lambda node_input: Event(output=[1, 2, 3], route="many"), name="router")
    each = node(named("each"), parallel_worker=True)
    wf = Workflow(name="wf", edges=[("START", router, {"many": each, "none": named("never")})])
    run = run_workflow(wf)

    assert [usage["task"] for usage in run.task_usage["each.run"]] == ["each.run[0]", "each.run[1]", "each.run[2]"]
    assert by_agent(run) == {"each": (3, 300)}


@pytest.mark.parametrize("mode", ["tasks", "embedded"])
def test_nested_workflows_are_summed_as_tasks_and_in_one(gemini: Start, mode: Any) -> None:
    gemini(answer)
    inner = Workflow(name="inner", edges=[("START", named("a"), named("b"))])
    run = run_workflow(Workflow(name="wf", edges=[("START", named("first"), inner, show("end"))]), mode=mode)

    assert by_agent(run) == {"first": (1, 100), "a": (1, 100), "b": (1, 100)}


def test_a_task_group_has_a_sum_of_its_own(gemini: Start) -> None:
    from airflow.sdk import DAG, task

    @task
    def total(first: Any, second: Any, ti: Any) -> list[int]:
        ids = ("first.three", "second.three")
        return [ti.xcom_pull(task_ids=name, key="usage_run")["requests"] for name in ids]

    gemini(answer)
    sums: list[Any] = []
    with DAG("around", schedule=None) as dag:
        groups = [AdkTaskGroup(chain(), name, input="hello") for name in ("first", "second")]

        @task
        def keep(found: Any) -> None:
            sums.append(list(found))

        keep(total(*(group.output for group in groups)))
    run = run_dag(dag)

    assert (run.state, sums) == ("success", [[3, 3]])


def test_a_run_without_a_model_has_no_sum(gemini: Start) -> None:
    gemini(answer)
    run = run_workflow(Workflow(name="wf", edges=[("START", const("a", 1), show("b"))]))

    assert (run.usage, run.task_usage) == (None, {})


# Budgets of a run


@pytest.mark.parametrize("mode", ["tasks", "embedded"])
@pytest.mark.parametrize(("limits", "made"), [({"max_llm_calls": 2}, 2), ({"max_tokens": 101}, 2), ({"max_tokens": 100}, 1)])
def test_the_tasks_of_a_run_share_its_budget(gemini: Start, mode: Any, limits: dict[str, int], made: int) -> None:
    server = gemini(answer)
    run = run_dag(AdkDag(chain(), mode=mode, schedule=None, params={"input": "hello"}, **limits))
    assert run.error is not None

    [(name, limit)] = limits.items()
    assert (run.state, len(server.requests), run.error[0]) == ("failed", made, "BudgetExceededError")
    assert f"has spent its budget, {name}={limit}" in run.error[1]
    if mode == "tasks":
        assert f"in task 'one' agent 'one' with '{MODEL}': 1 model call, 100 tokens" in run.error[1]
        assert "the run has spent" in run.error[1]


def test_what_suffices_for_a_run_changes_nothing(gemini: Start) -> None:
    gemini(answer)
    run = run_dag(AdkDag(pair(), schedule=None, params={"input": "hello"}, max_llm_calls=3, max_tokens=201))

    assert (run.state, run.output) == ("success", "yes")


def test_a_group_shares_only_among_its_tasks(gemini: Start) -> None:
    from airflow.sdk import DAG

    server = gemini(answer)
    with DAG("around", schedule=None) as dag:
        first = AdkTaskGroup(chain(), "first", input="hello", max_llm_calls=3)
        first >> AdkTaskGroup(chain(), "second", input="hello", max_llm_calls=2)
    run = run_dag(dag)

    assert (run.state, len(server.requests)) == ("failed", 5)
    assert run.task_states["second.two"] == ["success"]
    assert run.task_states["second.three"] == ["failed"]


# Budgets of nodes


def test_a_node_keeps_to_its_own(gemini: Start) -> None:
    def counts(ctx: Any, n: int = 0) -> Event:
        ctx.state["n"] = n + 1
        return Event(output=n, route="again" if n < 5 else "done")

    server = gemini(answer)
    asker, count = named("asker"), node(counts, name="count")
    wf = Workflow(name="wf", edges=[("START", named("free"), asker, count, {"again": asker, "done": show("end")})])
    run = run_workflow(wf, nodes={"asker": {"max_llm_calls": 2}})
    assert run.error is not None

    assert (run.state, len(server.requests)) == ("failed", 3)
    assert "node 'asker' has spent its budget, max_llm_calls=2" in run.error[1]


def test_the_items_of_a_parallel_worker_share_that_of_their_node(gemini: Start) -> None:
    server = gemini(answer)
    each = node(named("each"), parallel_worker=True)
    wf = Workflow(name="wf", edges=[("START", const("items", [1, 2, 3, 4]), each)])
    run = run_workflow(wf, nodes={"each": {"max_llm_calls": 3}})

    assert (run.state, len(server.requests)) == ("failed", 3)
    assert sorted(run.task_states["each.run"]) == ["failed", "success", "success", "success"]


@pytest.mark.parametrize("mode", ["tasks", "embedded"])
def test_the_nodes_of_a_nested_workflow_share_its_budget_as_tasks_and_in_one(gemini: Start, mode: str) -> None:
    server = gemini(answer)
    inner = Workflow(name="inner", edges=[("START", named("a"), named("b"), named("c"))])
    options: dict[str, Any] = {"max_llm_calls": 2, **({"mode": "embedded"} if mode == "embedded" else {})}
    wf = Workflow(name="wf", edges=[("START", named("first"), inner)])
    run = run_workflow(wf, nodes={"inner": options, "inner/a": {"max_llm_calls": 1}})
    assert run.error is not None

    assert (run.state, len(server.requests)) == ("failed", 3)
    assert "node 'inner' has spent its budget, max_llm_calls=2" in run.error[1]


def test_a_limit_inside_a_whole_workflow_is_of_its_node(gemini: Start) -> None:
    server = gemini(answer)
    dag = AdkDag(chain(), mode="embedded", nodes={"two": {"max_tokens": 1}}, schedule=None, params={"input": "hello"})

    assert run_dag(dag).output == "yes"
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"nodes": {"one": {"max_tokens": 0}}}, "node 'one': max_tokens 0 is not an integer of 1 or more"),
        ({"nodes": {"one": {"max_cost": "1"}}}, "node 'one': max_cost '1' is no number above 0"),
        ({"nodes": {"on": {"max_tokens": 1}}}, "has no node 'on'. Did you mean 'one'?"),
        ({"nodes": {"one": {"max_token": 1}}}, "Did you mean 'max_tokens'?"),
        ({"max_llm_calls": 1.5}, "workflow 'wf': max_llm_calls 1.5 is not an integer of 1 or more"),
        ({"max_cost": -1, "mode": "embedded"}, "workflow 'wf': max_cost -1 is no number above 0"),
    ],
)
def test_what_is_no_limit_is_refused_when_the_plan_is_made(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(NodeOverrideError) as raised:
        plan_workflow(chain(), **arguments)
    assert says in str(raised.value)
