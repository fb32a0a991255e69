"""An envelope comes back as it was written, or names the task whose envelope cannot be used."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.genai import types

from adk_airflow.errors import EnvelopeError
from adk_airflow.operators.spec import TaskSpec
from adk_airflow.operators.worker import AdkItemOperator
from adk_airflow.runtime.wire import digest, lineage
from adk_airflow.runtime.wire.envelope import Envelope, Firing
from adk_airflow.runtime.wire.worker import ItemOutput, WorkerRun, WorkerRuns

ENVELOPE = Envelope(
    task="classify",
    workflow="router",
    node="classify",
    message=types.Content(role="user", parts=[types.Part(text="hello")]),
    firings=(
        Firing("classify", (1, b"x"), route=[True, 1, "1"], branch="a@1", next=("a", "b", "a")),
        Firing("judge", waiting=True),
    ),
    state=lineage.write({}, {"k": 1}, "start"),
    lost=(lineage.LostUpdate("k", "a", "b"),),
    worker=WorkerRuns((WorkerRun(2, "a@1", True), WorkerRun(0)), 2),
    outputs=(ItemOutput(0, 1, {"x": (1,)}),),
    error=("ValueError", "bad"),
)


def test_an_envelope_survives_its_text() -> None:
    back = Envelope.loads(ENVELOPE.dumps(), task="classify")

    assert back == ENVELOPE
    assert [type(route) for route in back.firings[0].route] == [bool, int, str]


def test_an_envelope_that_is_cut_short_names_the_task_that_wrote_it() -> None:
    with pytest.raises(EnvelopeError, match=r"task 'classify' is cut short.*Clear task 'classify'"):
        Envelope.loads(ENVELOPE.dumps()[:-20], task="classify")


def test_an_envelope_that_was_changed_is_refused_although_it_could_be_read() -> None:
    with pytest.raises(EnvelopeError, match=r"task 'classify': it is not as it was written.*Clear task 'classify'"):
        Envelope.loads(ENVELOPE.dumps().replace("hello", "hullo"), task="classify")


def test_an_envelope_of_another_version_is_refused() -> None:
    data = json.loads(ENVELOPE.dumps()) | {"adk_airflow": 99}

    with pytest.raises(EnvelopeError, match=r"task 'classify' has version 99, this adk-airflow reads 3"):
        Envelope.loads(json.dumps(data), task="classify")


def test_an_envelope_begins_with_what_it_holds() -> None:
    text = Envelope("t", "w", "n", firings=(Firing("n", "what it gave", next=("b",)),)).dumps()

    assert (
        text.partition(",")[2]
        .partition(",")[2]
        .startswith('"task":"t","workflow":"w","node":"n","firings":[{"node":"n","output":"what it gave","next":["b"],')
    )
    assert text.index("null") > text.index("what it gave")
    failed = Envelope("t", "w", "n", error=("ValueError", "no such thing")).dumps()
    assert '"task":"t","workflow":"w","node":"n","error":["ValueError","no such thing"],' in failed


@pytest.mark.parametrize("missing", ["firings", "state", "message", "error"])
def test_an_envelope_without_a_part_is_refused(missing: str) -> None:
    data = json.loads(ENVELOPE.dumps())
    del data[missing]

    with pytest.raises(EnvelopeError, match=r"task 'classify' is incomplete"):
        Envelope.loads(json.dumps(data), task="classify")


@pytest.mark.parametrize(
    ("where", "wrong"),
    [
        (("firings", 0, "next"), "ab"),
        (("firings", 0, "next"), [1]),
        (("firings", 0, "node"), 1),
        (("firings", 0, "waiting"), "no"),
        (("firings", 0, "branch"), ["a@1"]),
        (("firings",), {}),
        (("firings", 0), "x"),
        (("state",), []),
        (("state", "k"), "x"),
        (("lost", 0), "abc"),
        (("error",), "ValueError"),
        (("error",), ["ValueError"]),
        (("scopes",), {"inner": "ab"}),
        (("worker",), 2),
        (("worker", 0), "2"),
        (("worker", 1, 0), [1]),
        (("worker", 1, 0, 0), -1),
        (("worker", 1, 0, 2), "no"),
        (("outputs",), {"a": 1}),
        (("outputs", 0), [0, 1]),
        (("outputs", 0, 1), True),
        (("task",), None),
    ],
)
def test_an_envelope_with_a_part_of_another_type_is_refused(where: tuple[Any, ...], wrong: object) -> None:
    data = json.loads(ENVELOPE.dumps())
    part = data
    for key in where[:-1]:
        part = part[key]
    part[where[-1]] = wrong

    with pytest.raises(EnvelopeError, match=r"task 'classify'.*Clear task 'classify'"):
        Envelope.loads(json.dumps(data), task="classify")


def test_an_envelope_that_is_nested_without_end_is_refused() -> None:
    with pytest.raises(EnvelopeError, match="task 'classify' is cut short or damaged"):
        Envelope.loads("[" * 100_000, task="classify")


def test_an_item_that_is_damaged_names_the_task_that_made_it_and_runs_nothing() -> None:
    value = {"$": "model", "c": "subprocess:Popen", "v": {"args": "touch /tmp/x"}}
    parts = (
        "0, true, [[0,",
        "0, true]",
        "-1, true, []]",
        "0, 1, []]",
        '0, true, [["a", 1]]]',
        json.dumps([0, True, [[0, value]]])[1:],
    )
    batches = (*(f'["{digest.of(part)}",{part}' for part in parts), '["", 0, true, [[0, 1]]]', "3", "[" * 100_000, None)
    damaged = [{"label": "1", "batch": batch} for batch in batches]
    for element in (None, {}, "x", *damaged):
        spec = TaskSpec(workflow="m:w", app_name="", node="each", items_task="each.items")
        run = AdkItemOperator(task_id="run", spec=spec, element=element)
        with pytest.raises(EnvelopeError, match=r"node 'each': what task 'each.items' gave.*Clear task 'each.items'"):
            run.read_batch({})


def test_an_envelope_with_a_class_that_is_not_allowed_is_refused() -> None:
    data = json.loads(ENVELOPE.dumps())
    data["firings"][0]["output"] = {"$": "model", "c": "subprocess:Popen", "v": {"args": "touch /tmp/x"}}

    with pytest.raises(EnvelopeError, match=r"task 'classify': a value of class subprocess:Popen is not allowed"):
        Envelope.loads(json.dumps(data), task="classify")


@pytest.mark.parametrize("value", [None, 3, {"adk_airflow": 1}, []])
def test_something_else_is_no_envelope(value: object) -> None:
    with pytest.raises(EnvelopeError, match="not an envelope"):
        Envelope.loads(value, task="classify")


@pytest.mark.parametrize(
    ("firings", "kept"),
    [
        ([Firing("n", 1), Firing("n", 2)], (True, 2)),
        ([Firing("n", 1), Firing("n")], (False, None)),
        ([Firing("n", 1), Firing("n", waiting=True)], (True, 1)),
        ([Firing("n", 1), Firing("other", 2)], (True, 1)),
        ([Firing("n", 0)], (True, 0)),
        ([], (False, None)),
    ],
)
def test_the_last_run_that_completed_decides_the_output(firings: list[Firing], kept: tuple[bool, object]) -> None:
    assert Envelope("t", "w", "n", firings=tuple(firings)).last_output("n") == kept
