"""Tasks whose process is killed, under Airflow's own supervisor: what was finished is not done again.

The quick half of the fault tests; ``make test-faults`` runs them all on a real scheduler (docs/testing.md).
"""

from __future__ import annotations

import pytest

from tests.faults.verdict import Call, calls_of_agent, judge, next_round, plan
from tests.supervised import SupervisedRun

AGENTS = ("fault_agent", "fault_agent_node", "fault_pair", "fault_chain")
ALONE = calls_of_agent("alone", 5)
LOOP = [("loop", str(at)) for at in range(1, 41)]
ITEMS = [(f"item{at}", "work") for at in range(200)]
CHILDREN = [("children", str(at)) for at in range(1, 11)]

pytestmark = pytest.mark.usefixtures("dags")


def start(dag_id: str, case: str, *kills: Call, **params: object) -> SupervisedRun:
    """A run of the DAG whose task process is killed at these calls."""
    plan(case, *kills)
    file = "fault_agents.py" if dag_id in AGENTS else "fault_nodes.py"
    return SupervisedRun(dag_id, file, {"case": case, **params})


def run(dag_id: str, case: str, *kills: Call, **params: object) -> SupervisedRun:
    """The same, run to its end."""
    started = start(dag_id, case, *kills, **params)
    assert started.go() == "success"
    return started


def exit_codes(ran: SupervisedRun, task: str) -> list[int]:
    return [tried.exit_code for tried in ran.tried[task]]


def found(line: str, values: list[int]) -> str:
    return f"{line} found {values}"


def test_an_agent_is_killed_three_times() -> None:
    ran = run("fault_agent", "agent", *(("alone", call) for call in ("T1", "M3", "T5")))
    assert exit_codes(ran, "ask") == [-9] * 3 + [0]
    assert judge("agent", ALONE).wrong == ()
    assert ran.xcom("ask") == found("alone", [7, 14, 21, 28, 35])


def test_an_agent_as_a_node_is_killed_twice() -> None:
    ran = run("fault_agent_node", "node", ("as_node", "M2"), ("as_node", "T3"))
    assert exit_codes(ran, "as_node") == [-9] * 2 + [0]
    assert judge("node", calls_of_agent("as_node", 5)).wrong == ()
    assert ran.xcom("as_node") == found("as_node", [7, 14, 21, 28, 35])


def test_calls_of_an_agent_fail() -> None:
    plan("fails", ("alone", "M3"), ("alone", "T4"), what="fail")
    ran = run("fault_agent", "fails")
    assert [tried.state for tried in ran.tried["ask"]] == ["up_for_retry", "up_for_retry", "success"]
    assert judge("fails", ALONE).wrong == ()
    assert ran.xcom("ask") == found("alone", [7, 14, 21, 28, 35])


def test_a_model_that_is_away_for_several_tries_costs_nothing_twice() -> None:
    ran = start("fault_agent", "away")
    for tries in range(1, 4):
        plan("away", ("alone", "M4"), what="fail")
        ran.go(tries=tries)
    assert ran.go() == "success"
    assert [tried.state for tried in ran.tried["ask"]] == ["up_for_retry"] * 3 + ["success"]
    assert judge("away", ALONE).wrong == ()
    assert ran.xcom("ask") == found("alone", [7, 14, 21, 28, 35])


def test_two_agents_side_by_side_are_killed_three_times() -> None:
    ran = run("fault_pair", "pair", ("left", "T2"), ("right", "M3"), ("left", "M4"))
    assert judge("pair", calls_of_agent("left", 3) + calls_of_agent("right", 3)).wrong == ()
    answers = {"left": found("left", [7, 14, 21]), "right": found("right", [7, 14, 21])}
    assert answers in [ran.xcom(task) for task in ran.tried]


@pytest.mark.parametrize("dag_id", ["fault_loop", "fault_loop_embedded"])
def test_a_loop_is_killed_three_times(dag_id: str) -> None:
    ran = run(dag_id, dag_id, *(("loop", at) for at in ("5", "25", "40")))
    assert judge(dag_id, LOOP).wrong == ()
    assert "ended after 40" in [ran.xcom(task) for task in ran.tried]


def test_a_batch_of_200_items_is_killed_three_times() -> None:
    ran = run("fault_batch", "batch", *((f"item{at}", "work") for at in (20, 90, 170)))
    assert exit_codes(ran, "each.run[0]") == [-9] * 3 + [0]
    assert judge("batch", ITEMS, at_once=4).wrong == ()
    assert ran.xcom("total") == sum(range(200))


def test_a_node_with_ten_children_is_killed_three_times() -> None:
    ran = run("fault_dynamic", "dynamic", *(("children", at) for at in ("2", "6", "10")))
    assert exit_codes(ran, "parent") == [-9] * 3 + [0]
    assert judge("dynamic", CHILDREN).wrong == ()
    assert ran.xcom("parent") == 3 * sum(range(1, 11))


def test_a_task_that_is_cleared_before_its_retry_starts_afresh() -> None:
    ran = start("fault_agent", "cleared-early", ("alone", "T3"))
    ran.go(tries=1)
    assert [tried.state for tried in ran.tried["ask"]] == ["up_for_retry"]
    next_round("cleared-early")
    ran.clear("ask")
    assert ran.go() == "success"
    assert judge("cleared-early", ALONE).made.total() == len(ALONE)
    assert ran.xcom("ask") == found("alone", [107, 114, 121, 128, 135])


def test_a_task_that_is_cleared_and_killed_goes_on_with_its_second_record() -> None:
    ran = run("fault_agent", "cleared-killed", ("alone", "T4"))
    next_round("cleared-killed")
    plan("cleared-killed", ("alone", "M4"))
    ran.clear("ask")
    assert ran.go() == "success"
    assert exit_codes(ran, "ask") == [-9, 0, -9, 0]
    assert judge("cleared-killed", ALONE).wrong == ()
    assert ran.xcom("ask") == found("alone", [107, 114, 121, 128, 135])


def test_what_is_cleared_of_a_finished_run_starts_afresh() -> None:
    ran = run("fault_chain", "chain", ("two", "T1"))
    clears: list[tuple[list[str], dict[str, bool], list[str]]] = [
        (["one"], {}, ["one"]),
        (["one"], {"downstream": True}, ["one", "two"]),
        ([], {}, ["one", "two"]),
    ]
    values = {"one": 7, "two": 7}
    for past, (tasks, options, lines) in enumerate(clears, 1):
        next_round("chain")
        ran.clear(*tasks, **options)
        assert ran.go() == "success"
        assert judge("chain", []).made == {call: 1 for line in lines for call in calls_of_agent(line, 1)}
        values |= dict.fromkeys(lines, 7 + 100 * past)
        assert {line: ran.xcom(line) for line in values} == {line: found(line, [value]) for line, value in values.items()}


def test_one_item_that_is_cleared_starts_afresh() -> None:
    ran = run("fault_mapped", "item", ("item3", "work"), count=4)
    assert exit_codes(ran, "each.run[1]") == [-9, 0]
    next_round("item")
    ran.clear("each.run", map_indexes=[1])
    assert ran.go() == "success"
    assert judge("item", []).made == {("item2", "work"): 1, ("item3", "work"): 1}
    assert [ran.xcom("each.run", map_index=at) for at in range(2)] == [[0, 1], [1002, 1003]]


def test_two_runs_of_one_dag_know_nothing_of_each_other() -> None:
    first, second = (start("fault_agent", case, ("alone", "T3")) for case in ("first", "second"))
    for tries in (1, 2):
        for ran in (first, second):
            ran.go(tries=tries)
    for case in ("first", "second"):
        assert judge(case, ALONE).wrong == ()
