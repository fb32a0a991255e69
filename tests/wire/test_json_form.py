"""What people and plain tasks see of a value, and that Airflow stores all of it."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import enum
import json
from typing import Any

import msgspec
import pytest
from airflow.sdk.execution_time.comms import SetXCom
from google.genai import types
from pydantic import BaseModel, JsonValue, TypeAdapter

from adk_airflow.runtime.wire import codec, json_form


class Order(BaseModel):
    sku: str
    qty: int = 1


@dataclasses.dataclass
class Point:
    x: int
    y: tuple[int, ...] = ()


Pair = collections.namedtuple("Pair", "left right")


class Size(enum.IntEnum):
    HUGE = 10**30


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (types.Content(parts=[types.Part(text="a"), types.Part(text="b")]), "ab"),
        ((1, {2}), [1, [2]]),
        (b"hi", "aGk="),
        (Order(sku="s"), {"sku": "s", "qty": 1}),
        ({1: None}, {"1": None}),
        ({"__id__": "x"}, '{"__id__": "x"}'),
        (dt.date(2026, 1, 2), "2026-01-02"),
        (Point(1, (2,)), {"x": 1, "y": [2]}),
        (collections.deque([Pair(1, None)]), [[1, None]]),
        (float("nan"), "nan"),
        (10**30, 10**30),
        ("a\0b", "a\0b"),
    ],
)
def test_it_is_json_for_people(value: object, expected: object) -> None:
    assert json_form.to_json(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([2**63 - 1, 2**63, -(2**63), -(2**63) - 1, True], [2**63 - 1, str(2**63), -(2**63), str(-(2**63) - 1), True]),
        (Size.HUGE, str(10**30)),
        ({"a\0": ("b\0c", "\ud83d", "😀")}, {"a\ufffd": ["b\ufffdc", "\ufffd", "😀"]}),
        (Point(10**30), {"x": str(10**30), "y": []}),
    ],
)
def test_what_airflow_does_not_store_is_given_another_form(value: object, expected: object) -> None:
    assert json_form.for_xcom(value) == expected


def test_what_is_nested_too_deeply_for_airflow_is_json_text_from_there_on() -> None:
    found = json_form.for_xcom(nested(102))
    for _ in range(100):
        assert isinstance(found, list)
        (found,) = found

    assert json.loads(found) == nested(2)


@pytest.mark.parametrize("value", [10**30, {"a\0b": ["\0\ud83d"]}, nested(350), [{"x": nested(99)}], float("inf")])
def test_it_passes_airflows_supervisor_and_api(value: object) -> None:
    stored = {"key": "return_value", "dag_id": "d", "task_id": "t", "run_id": "r", "value": json_form.for_xcom(value)}
    message = msgspec.msgpack.decode(msgspec.msgpack.encode(SetXCom(**stored).model_dump()))

    assert TypeAdapter(JsonValue).validate_python(message["value"]) == stored["value"]
    assert "\\u0000" not in json.dumps(message)


def test_whatever_travels_has_a_plain_form() -> None:
    levels = next(levels for levels in range(100, 3000, 10) if not codec.travels(nested(levels + 10)))

    assert codec.travels(nested(levels))
    assert json_form.for_xcom(nested(levels))
