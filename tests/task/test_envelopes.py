"""What counts of what the tasks before left in XCom."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from adk_airflow.errors import EnvelopeError
from adk_airflow.runtime.envelopes import Envelopes
from adk_airflow.runtime.wire.envelope import Envelope, Firing
from adk_airflow.runtime.wire.worker import ItemOutput


@dataclass
class Run:
    """A task instance, as far as it reads: the states and XComs of its run."""

    states: dict[str, str]
    xcoms: dict[str, str | None]
    dag_id: str = "dag"
    run_id: str = "run"
    asked: list[list[str]] = field(default_factory=list)

    def get_task_states(self, dag_id: str, task_ids: list[str], run_ids: list[str]) -> dict[str, dict[str, str]]:
        assert (dag_id, run_ids) == ("dag", ["run"])
        self.asked.append(task_ids)
        return {
            "run": {key: state for key, state in self.states.items() if key.rpartition("_")[0] in task_ids or key in task_ids}
        }

    def xcom_pull(self, task_ids: str | list[str], key: str, map_indexes: Iterable[int] | None) -> Any:
        assert key == "adk"
        if map_indexes is None:
            return self.xcoms.get(str(task_ids))
        return [self.xcoms.get(f"{task_ids[0]}_{index}") for index in map_indexes]


def left(task: str, *firings: Firing, **more: Any) -> str:
    return Envelope(task, "wf", "n", firings=firings, **more).dumps()


def read(run: Run, *task_ids: str, **arguments: Any) -> Envelopes:
    found = Envelopes({"ti": run}, where="workflow 'wf', node 'n'", **arguments)
    found.ask(task_ids)
    return found


def test_states_are_asked_for_at_once_and_only_once() -> None:
    run = Run({"a": "success", "b": "skipped"}, {"a": left("a")})
    found = read(run, "b", "a", "c")
    found.ask(["a", "c"])

    assert [found.get(name) is None for name in "abc"] == [False, True, True]
    assert run.asked == [["a", "b", "c"]]


def test_only_what_a_task_in_state_success_left_counts() -> None:
    run = Run(
        {"a": "success", "b": "skipped", "c": "failed"},
        {name: left(name, Firing("n", name)) for name in "abc"},  # of b and c from another course of the run
    )
    found = read(run, "a", "b", "c", "d")

    assert [found.get(name) and name for name in "abcd"] == ["a", None, None, None]


def test_nobody_asks_for_the_states_of_tasks_that_must_have_succeeded() -> None:
    run = Run({}, {"a": left("a")})

    assert read(run, "a", all_succeeded=True).get("a") is not None
    assert run.asked == []


def test_a_task_that_was_marked_by_hand_without_having_run_is_named() -> None:
    with pytest.raises(EnvelopeError, match=r"workflow 'wf', node 'n': task 'a' is in state success but left nothing"):
        read(Run({"a": "success"}, {}), "a").get("a")


def test_a_task_that_failed_and_was_marked_as_a_success_is_named() -> None:
    run = Run({"a": "success"}, {"a": left("a", error=("ValueError", "boom"))})

    with pytest.raises(EnvelopeError, match=r"task 'a' failed \(ValueError: boom\) and was marked as a success"):
        read(run, "a").get("a")


def test_an_item_that_is_no_longer_in_state_success_does_not_count() -> None:
    """One that a person marked skipped keeps its XCom; the list was once longer, and is shorter now."""
    xcoms = {f"run_{at}": left("run", outputs=(ItemOutput(0, at, at),)) for at in range(4)}
    run = Run({"run_0": "success", "run_1": "skipped", "run_2": "success", "run_3": "success"}, dict(xcoms))

    assert [found.outputs[0].index for found in read(run).of_mapped("run", 3)] == [0, 2]
    assert read(run).of_mapped("run", 0) == []


def test_an_item_that_failed_and_was_marked_as_a_success_is_named() -> None:
    run = Run({"run_0": "success"}, {"run_0": left("run[0]", error=("ValueError", "boom"))})

    with pytest.raises(EnvelopeError, match=r"task 'run\[0\]' failed \(ValueError: boom\)"):
        read(run).of_mapped("run", 1)
