"""What of an earlier try is answered: by place and fingerprint, line by line, and never what made a try fail for ever."""

from __future__ import annotations

import asyncio
import json
import random
import time
from typing import Any

import pytest
from airflow.sdk import conf
from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time.comms import ErrorResponse
from cryptography.fernet import Fernet

from adk_airflow.runtime.record.attempt import Attempt, Standing
from adk_airflow.runtime.record.journal import Journal
from adk_airflow.runtime.record.store import KEY, JournalStore
from adk_airflow.runtime.wire import sealed


class StateStore(dict[str, Any]):
    """Stands in for Airflow's task state store, which keeps JSON by key."""

    def get(self, key: str, default: Any = None) -> Any:
        return json.loads(self[key]) if key in self else default

    def set(self, key: str, value: Any) -> None:
        self[key] = json.dumps(value)

    def delete(self, key: str) -> None:
        self.pop(key, None)


class Task:
    """One task instance, of which tries are made."""

    def __init__(self) -> None:
        self.state: Any = StateStore()
        self.number = 0
        self.generation = "9"

    def next_try(self, **more: Any) -> Journal:
        self.number += 1
        attempt = Attempt("dag.task", ("dag", "run", "task", -1), self.number, self.generation, own_process=False)
        self.store = JournalStore(attempt, self.state, Standing(attempt, self.state))
        return Journal(attempt, self.store, **more)

    def end(self, journal: Journal, path: str = "", error: BaseException | None = None, *, call_failed: str = "") -> None:
        if error is not None:
            journal.failed(path, error, call_failed=call_failed)
        self.store.finish()


@pytest.fixture
def task() -> Task:
    return Task()


def ask(journal: Journal, line: str, index: int, asked: str = "q", *, kind: str = "model") -> str:
    """Makes a call, or has it answered; says which."""
    place = f"{line}#{kind}{index}"
    kept = journal.find(kind, line, place, asked)
    if kept is not None:
        return f"again: {kept.data['answer']}"
    journal.add(kind, line, place, asked, {"answer": f"{asked} in try {journal.attempt.number}"})
    return "live"


A, B = "wf@1/a@1||a", "wf@1/b@1||b"


def test_what_was_finished_is_answered_and_what_comes_after_is_asked(task: Task) -> None:
    first = task.next_try()
    assert [ask(first, A, 0), ask(first, A, 1)] == ["live", "live"]
    task.end(first)
    second = task.next_try()
    assert [ask(second, A, at) for at in range(3)] == ["again: q in try 1", "again: q in try 1", "live"]
    task.end(second)
    third = task.next_try()
    assert [ask(third, A, at) for at in range(4)] == ["again: q in try 1"] * 2 + ["again: q in try 2", "live"]
    assert third.replays == {"model": 3}


def test_from_another_question_on_a_line_runs_live_and_others_do_not(task: Task) -> None:
    first = task.next_try()
    for line, index in [(A, 0), (B, 0), (A, 1), (B, 1), (A, 2)]:
        ask(first, line, index)
    task.end(first)
    second = task.next_try()
    assert [ask(second, A, 0), ask(second, A, 1, "other"), ask(second, A, 2)] == ["again: q in try 1", "live", "live"]
    assert [ask(second, B, 0), ask(second, B, 1)] == ["again: q in try 1"] * 2
    task.end(second)
    third = task.next_try()
    assert [ask(third, A, 1, "other"), ask(third, A, 2)] == ["again: other in try 2", "again: q in try 2"]


def test_a_node_that_is_given_something_else_takes_those_after_it_along(task: Task) -> None:
    first = task.next_try()
    for name in ("a", "b", "c"):
        ask(first, f"wf@1/{name}@1", 0, kind="node")
    ask(first, "wf@1/c@1||c", 0)
    task.end(first)
    second = task.next_try()
    answered = [ask(second, f"wf@1/{name}@1", 0, asked, kind="node") for name, asked in [("a", "q"), ("b", "new"), ("c", "q")]]
    assert answered == ["again: q in try 1", "live", "live"]
    assert ask(second, "wf@1/c@1||c", 0) == "live"


def test_a_clear_begins_afresh_and_removes_what_was_kept(task: Task) -> None:
    first = task.next_try()
    ask(first, A, 0)
    task.end(first)
    assert f"{KEY}:0" in task.state
    task.generation = "19"
    second = task.next_try()
    assert KEY not in task.state
    assert f"{KEY}:0" not in task.state
    assert ask(second, A, 0) == "live"


def test_success_removes_everything(task: Task) -> None:
    first = task.next_try()
    ask(first, A, 0)
    task.end(first)
    second = task.next_try()
    ask(second, A, 1)
    task.store.finish()
    task.store.forget()
    assert task.state == {}


def test_an_answer_that_made_the_try_fail_is_not_given_again(task: Task) -> None:
    first = task.next_try()
    ask(first, A, 0)
    ask(first, A, 0, kind="tool")
    ask(first, B, 0)
    ask(first, A, 1)
    task.end(first, "wf@1/a@1", ValueError("not what the schema says"))
    second = task.next_try()
    assert [ask(second, A, 0), ask(second, A, 0, kind="tool"), ask(second, A, 1)] == ["again: q in try 1"] * 2 + ["live"]
    assert ask(second, B, 0) == "again: q in try 1"


@pytest.mark.parametrize("call_failed", ["tool", ""])
def test_the_same_failure_twice_has_the_model_asked_anew(task: Task, call_failed: str) -> None:
    """First the tool is called again, or the node run again; if that fails likewise, it was the answer."""
    path = "wf@1/a@1" if call_failed else "wf@1/parse@1"
    first = task.next_try()
    ask(first, A, 0)
    ask(first, A, 1)
    task.end(first, path, KeyError("x"), call_failed=call_failed)
    second = task.next_try()
    assert [ask(second, A, 0), ask(second, A, 1)] == ["again: q in try 1"] * 2
    task.end(second, path, KeyError("x"), call_failed=call_failed)
    third = task.next_try()
    assert [ask(third, A, 0), ask(third, A, 1)] == ["again: q in try 1", "live"]


def test_a_model_that_does_not_answer_for_long_leaves_what_it_had_answered(task: Task) -> None:
    first = task.next_try()
    ask(first, A, 0)
    task.end(first, "wf@1/a@1", OSError("503"), call_failed="model")
    for _ in range(3):
        again = task.next_try()
        assert ask(again, A, 0) == "again: q in try 1"
        task.end(again, "wf@1/a@1", OSError("503"), call_failed="model")


def test_another_failure_keeps_the_answers(task: Task) -> None:
    first = task.next_try()
    ask(first, A, 0)
    task.end(first, "wf@1/parse@1", KeyError("x"))
    second = task.next_try()
    ask(second, A, 0)
    task.end(second, "wf@1/parse@1", OSError("x"))
    third = task.next_try()
    assert ask(third, A, 0) == "again: q in try 1"


def test_a_node_that_is_to_be_done_afresh_is(task: Task) -> None:
    first = task.next_try(afresh=["a"])
    assert [ask(first, A, 0), ask(first, B, 0)] == ["live", "live"]
    task.end(first)
    second = task.next_try(afresh=["a"])
    assert [ask(second, A, 0), ask(second, B, 0)] == ["live", "again: q in try 1"]


def test_entries_of_any_size_are_kept_whole(task: Task) -> None:
    texts = ["x" * size for size in (10, 31_999, 32_000, 32_001, 100_000)] + ['ü "\\ \n \u2028 😀' * 5_000]
    first = task.next_try()
    for at, text in enumerate(texts):
        first.add("model", A, f"{A}#model{at}", "q", {"answer": text})
    task.end(first)
    second = task.next_try()
    for at, text in enumerate(texts):
        kept = second.find("model", A, f"{A}#model{at}", "q")
        assert kept is not None
        assert kept.data["answer"] == text


def test_nothing_of_it_can_be_read_in_the_database(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", Fernet.generate_key().decode())
    sealed._fernet.cache_clear()
    try:
        first = task.next_try()
        first.add("model", A, f"{A}#model0", "q", {"answer": "in confidence"})
        task.end(first)
        assert "in confidence" not in str(task.state)
        assert task.next_try().find("model", A, f"{A}#model0", "q") is not None
        monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", Fernet.generate_key().decode())
        sealed._fernet.cache_clear()
        assert task.next_try().find("model", A, f"{A}#model0", "q") is None
    finally:
        monkeypatch.undo()
        sealed._fernet.cache_clear()


def test_without_a_key_an_entry_with_a_secret_is_not_kept(
    task: Task, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", "")
    sealed._fernet.cache_clear()
    key = "AIza" + "S" * 35
    try:
        assert conf.get("core", "fernet_key", fallback="") == ""
        first = task.next_try()
        first.add("model", A, f"{A}#model0", "q", {"answer": "plain"})
        first.add("tool", A, f"{A}#tool0", "q", {"answer": f"the key is {key}"})
        task.end(first)
    finally:
        monkeypatch.undo()
        sealed._fernet.cache_clear()
    assert key not in str(task.state)
    assert "plain" in str(task.state)
    assert "Airflow has no Fernet key" in caplog.text
    second = task.next_try()
    assert second.find("model", A, f"{A}#model0", "q") is not None
    assert second.find("tool", A, f"{A}#tool0", "q") is None


def mutated(text: str, dice: random.Random) -> str:
    """The text, damaged."""
    at = dice.randrange(len(text))
    what = dice.randrange(6)
    if what == 0:
        return text[:at]
    if what == 1:
        return text[:at] + chr(dice.randrange(1, 0x2FFF)) + text[at + 1 :]
    if what == 2:
        return text[:at] + text[dice.randrange(len(text)) :]
    if what == 3:
        return text.replace('"d"', dice.choice(['"x"', '"p"', '"t"']), 1)
    if what == 4:
        return text.replace('"t": 1', dice.choice(['"t": "1"', '"t": null', '"t": 1e999', '"t": -5', '"t": []']), 1)
    return text.replace('"k": "model"', dice.choice(['"k": "drop"', '"k": []', '"k": "failed"', '"k": "node"', '"k": {}']), 1)


def test_of_1000_damaged_journals_nothing_wrong_is_answered(task: Task) -> None:
    """What cannot be read is asked again; what is read is what was answered, or has another question."""
    first = task.next_try()
    for at in range(6):
        ask(first, A, at)
    task.end(first)
    whole = json.loads(task.state[f"{KEY}:0"])
    lines = whole.removeprefix("=")
    assert whole.startswith("="), "the tests' Airflow has no Fernet key"
    dice = random.Random(20261201)
    answered = 0
    for _ in range(1000):
        task.state[f"{KEY}:0"] = json.dumps(f"={mutated(lines, dice)}")
        task.number = 1
        journal = task.next_try()
        for at in range(6):
            kept = journal.find("model", A, f"{A}#model{at}", "q")
            if kept is not None:
                answered += 1
                assert set(kept.data)
                assert isinstance(kept.data, dict)
                assert kept.place == f"{A}#model{at}"
                assert kept.fingerprint == "q"
    assert answered > 1000


class Refusing(StateStore):
    """Takes nothing for some writes, in some words."""

    def __init__(self, *refusals: Exception) -> None:
        super().__init__()
        self.refusals = list(refusals)
        self.asked = 0

    def set(self, key: str, value: Any) -> None:
        self.asked += 1
        if key != KEY and self.refusals:
            refusal = self.refusals.pop(0)
            if refusal is not TAKES:
                raise refusal
        super().set(key, value)


TAKES = Exception("takes this one")


def server_says(status: int | None) -> AirflowRuntimeError:
    response = ErrorResponse(error=ErrorType.API_SERVER_ERROR, detail={"status_code": status, "message": "no"})
    return AirflowRuntimeError(response)


def test_an_entry_of_which_only_a_part_was_taken_is_whole_in_the_end(task: Task) -> None:
    task.state = Refusing(TAKES, server_says(503))
    first = task.next_try()
    for at in range(3):
        first.add("model", A, f"{A}#model{at}", "q", {"answer": "x" * 40_000})
    task.store.finish()
    assert task.state.refusals == []
    task.store.finish()
    second = task.next_try()
    found = [second.find("model", A, f"{A}#model{at}", "q") for at in range(3)]
    assert [len(kept.data["answer"]) for kept in found if kept is not None] == [40_000] * 3


def test_a_store_that_refuses_for_good_is_asked_once_at_the_end(task: Task) -> None:
    task.state = Refusing(*[server_says(403)] * 3)
    attempt = Attempt("dag.task", ("dag", "run", "refused", -1), 1, "9", own_process=True)
    store = JournalStore(attempt, task.state, Standing(attempt, task.state))
    Journal(attempt, store).add("node", A, f"{A}#node", "q", {}, paid=False)
    store.finish()
    assert len(task.state.refusals) == 2
    store.forget()


def test_what_was_paid_is_in_the_state_store_before_something_else_is(task: Task) -> None:
    class Slow(StateStore):
        def set(self, key: str, value: Any) -> None:
            time.sleep(0.05)
            super().set(key, value)

    async def pay() -> list[bool]:
        stored = []
        for at in range(3):
            ask(journal, A, at)
            await store.settle()
            stored.append(f"{KEY}:{at}" in state)
        return stored

    state = Slow()
    attempt = Attempt("dag.task", ("dag", "run", "settles", -1), 1, "9", own_process=True)
    store = JournalStore(attempt, state, Standing(attempt, state))
    journal = Journal(attempt, store)
    assert asyncio.run(pay()) == [True, True, True]
    store.forget()
    assert state == {}
