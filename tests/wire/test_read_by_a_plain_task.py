"""What a task or a group that knows nothing of the workflow reads of a node's output, in a real DAG run."""

from __future__ import annotations

import datetime as dt
import enum
import json
import os
import subprocess
import sys
from typing import Any

import pytest
from airflow.sdk import DAG, task
from google.adk import Workflow
from google.adk.workflow import node
from pydantic import BaseModel

from adk_airflow import AdkTaskGroup
from adk_airflow.runtime.wire import json_form
from adk_airflow.testing import run_dag


class Verdict(enum.Enum):
    PASS = "pass"


class Picture(BaseModel):
    data: bytes


PNG = Picture(data=b"\x89PNG")
OLD_DICT = {"__type": "dict", "__var": {"b": 1}, "kept": True}
OLD_TUPLE = {"__type": "tuple", "__var": [1, 2]}
KEPT: list[Any] = [
    OLD_DICT,
    OLD_TUPLE,
    {"__type": "dict", "__var": OLD_DICT},
    {"__type": "dict", "__var": "text"},
    {"__type": "datetime", "__var": None, "__source": "x"},
    {"deep": [[OLD_DICT, {"__type": OLD_TUPLE, "__var": {"__var": 1, "__type": [OLD_DICT]}}]]},
    {"__type": "dict"},
    {"__var": {"b": 1}},
    {"__version__": 1, "__data__": [1]},
    {"__data__": "x", "__cache__": 1, "__source": 2, "__cls": 3, "$": "tuple", "v": [1]},
    {"Type": "dict", "type": "dict", "var": 1},
]
OTHERS = [
    (
        {"__classname__": "builtins.tuple", "__version__": 1, "__data__": [1]},
        '{"__classname__": "builtins.tuple", "__version__": 1, "__data__": [1]}',
    ),
    ({"x": {"__id__": "a", "__type": "dict", "__var": {}}}, {"x": '{"__id__": "a", "__type": "dict", "__var": {}}'}),
    (Verdict.PASS, "pass"),
    ({Verdict.PASS: [PNG]}, {"pass": [{"data": "iVBORw=="}]}),
    ({1: "a", "1": "b"}, [[1, "a"], ["1", "b"]]),
    (dt.time(8), "08:00:00"),
]


def read_of(value: Any) -> tuple[Any, Any]:
    """What a plain task reads of a node that gives the value, and what the text says that a second group is given."""
    seen = []
    texts: list[str] = []
    give = node(lambda: value, name="give")
    take = node(lambda node_input: texts.append(node_input.parts[0].text), name="take")
    with DAG("reads", schedule=None) as dag:
        first = AdkTaskGroup(Workflow(name="first", edges=[("START", give)]), "first")
        AdkTaskGroup(Workflow(name="second", edges=[("START", take)]), "second", input=first.output)

        @task
        def plain(given: Any, ti: Any = None) -> None:
            seen.extend([given, ti.xcom_pull("first.give")])

        plain(first.output)
    assert run_dag(dag).state == "success"
    assert seen[0] == seen[1]
    return seen[0], json.loads(texts[0])


@pytest.mark.parametrize("value", [KEPT, OLD_DICT])
def test_a_dict_with_keys_that_airflow_takes_for_its_own_is_read_as_it_is(value: Any) -> None:
    assert read_of(value) == (value, value)
    assert json_form.as_read(value) == value


def test_other_values_are_read_as_documented() -> None:
    values, expected = [value for value, _ in OTHERS], [expected for _, expected in OTHERS]

    assert read_of(values) == (expected, expected)
    assert json_form.as_read(values) == expected


READS_BACK = f"""
import json
from airflow.sdk.execution_time.xcom import XCom
from adk_airflow.runtime.wire import json_form
value = json.loads({json.dumps(OLD_DICT)!r})
print(json.dumps(XCom.deserialize_value(XCom.serialize_value(json_form.for_xcom([value])))))
"""


def test_an_xcom_backend_that_would_read_them_otherwise_is_given_json_text() -> None:
    backend = {"AIRFLOW__CORE__XCOM_BACKEND": "tests.wire.xcom_backend.InnerFirst"}
    done = subprocess.run([sys.executable, "-c", READS_BACK], env={**os.environ, **backend}, capture_output=True, text=True)

    assert json.loads(done.stdout.splitlines()[-1]) == [json.dumps(OLD_DICT)], done.stderr
