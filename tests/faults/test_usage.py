"""What models cost is counted over the tries of a task, each call once, and so are budgets."""

from __future__ import annotations

import pytest

from tests.faults.verdict import calls_of_agent, judge, plan
from tests.supervised import SupervisedRun

FILE = "fault_agents.py"

pytestmark = pytest.mark.usefixtures("dags")


def run(dag_id: str, case: str, *kills: str, what: str = "kill", line: str = "alone") -> SupervisedRun:
    """A run whose task is killed, or fails, at these calls."""
    plan(case, *((line, call) for call in kills), what=what)
    started = SupervisedRun(dag_id, FILE, {"case": case})
    started.go()
    return started


def test_calls_of_all_tries_are_summed_each_once() -> None:
    unbroken, killed = run("fault_agent", "whole"), run("fault_agent", "pieces", "T1", "T3", "T5")

    assert [tried.state for tried in killed.tried["ask"]] == ["up_for_retry"] * 3 + ["success"]
    assert killed.xcom("ask", "usage") == unbroken.xcom("ask", "usage")
    assert killed.xcom("ask", "usage")["requests"] == 6


def test_calls_that_failed_are_requests() -> None:
    ran = run("fault_agent", "failing", "M2", "M3", what="fail")

    assert ran.xcom("ask", "usage")["requests"] == 8


def test_a_budget_that_suffices_for_one_try_suffices_for_several_that_go_on() -> None:
    ran = run("fault_budget_6", "suffices", "T1", "T4", "T5")

    assert [tried.state for tried in ran.tried["ask"]] == ["up_for_retry"] * 3 + ["success"]
    assert judge("suffices", calls_of_agent("alone", 5)).wrong == ()


def test_a_budget_holds_over_tries_and_no_try_comes_after_it() -> None:
    ran = run("fault_budget_4", "ends", "T2")

    assert [tried.state for tried in ran.tried["ask"]] == ["up_for_retry", "failed"]
    assert ran.xcom("ask", "usage")["requests"] == 4
    assert "this task has spent its budget, max_llm_calls=4: agent 'alone' with 'gemini-2.5-flash': 4 model calls" in (
        ran.tried["ask"][-1].text
    )


def test_what_tries_that_begin_afresh_pay_again_counts_too() -> None:
    ran = run("fault_budget_afresh_6", "afresh", "T2", "T3")

    assert [tried.state for tried in ran.tried["ask"]] == ["up_for_retry", "up_for_retry", "failed"]
    assert ran.xcom("ask", "usage")["requests"] == 6  # 2, 3 and 1


def test_a_clear_has_a_budget_of_its_own() -> None:
    ran = run("fault_budget_6", "clear", "T2")
    ran.clear("ask")

    assert ran.go() == "success"
    assert ran.xcom("ask", "usage")["requests"] == 6


def test_the_tasks_of_a_run_keep_to_its_budget_over_their_tries() -> None:
    enough = run("fault_budget_chain", "enough", "T1", line="two")
    short = run("fault_budget_chain_3", "short", "T1", line="two")

    assert [tried.state for tried in enough.tried["two"]] == ["up_for_retry", "success"]
    assert enough.xcom("two", "usage_run")["requests"] == 4
    assert [tried.state for tried in short.tried["two"]] == ["up_for_retry", "failed"]
    assert [short.xcom(task, "usage")["requests"] for task in ("one", "two")] == [2, 1]
    assert "the run has spent its budget, max_llm_calls=3" in short.tried["two"][-1].text
    assert "in task 'one' agent 'one' with 'gemini-2.5-flash': 2 model calls" in short.tried["two"][-1].text
