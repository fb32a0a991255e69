"""The tasks of a parallel worker: their labels, and what each returns."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.models.xcom import XComModel
from airflow.sdk.execution_time.xcom import XCom
from airflow.utils.session import create_session
from google.adk import Event, Workflow
from google.adk.workflow import START, node
from pydantic import BaseModel

from adk_airflow import AdkDag
from adk_airflow.operators.worker import item_label
from adk_airflow.testing import run_dag


class Ticket(BaseModel):
    number: int
    subject: str


class Order(BaseModel):
    weight: float = 1.5
    order_id: int
    paid: bool = True


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ("short", "short"),
        ("two\nlines  of text", "two lines of text"),
        ("x" * 120, "x" * 120),
        ("x" * 200, "x" * 119 + "…"),
        ("word " * 40, ("word " * 24)[:119] + "…"),
        ("abcdef " * 40, ("abcdef " * 17).strip() + "…"),
        ("abcde " * 40, ("abcde " * 19)[:113] + " abcde…"),
        ("明" * 300, "明" * 119 + "…"),
        ({"id": 7, "name": "Ada"}, "Ada"),
        ({"score": 0.5, "subject": "Printer is on fire", "body": "b" * 500}, "Printer is on fire"),
        ({"body": "b" * 500, "tag": "mail"}, "mail"),
        ({"a": 1, "b": [2]}, '{"a": 1, "b": [2]}'),
        ({"name": "", "other": "text"}, "text"),
        (Ticket(number=3, subject="Cannot log in"), "Cannot log in"),
        (Order(order_id=7), "7"),
        ({"valid": True, "customerId": 12, "text": "t" * 500}, "12"),
        (7, "7"),
        (None, "null"),
        ("", ""),
        ("nul\x00", "nul\ufffd"),
        ("\n" * 600 + "after a blank page", "after a blank page"),
        ({"name": "  ", "id": 0}, "0"),
        ({"name": {"first": "Ada"}, "text": "yes"}, "yes"),
        ({"payload": {"number": 1, "texts": [{"text": "inside"}]}}, "inside"),
        ({"payload": {"text": "inside"}, "text": "outside"}, "outside"),
        ({"body": "word " * 100}, ("word " * 24)[:119] + "…"),
    ],
)
def test_label(value: Any, label: str) -> None:
    assert item_label(value) == label
    assert len(item_label(value)) <= 120


def returned(batch_size: int | None, count: int) -> list[Any]:
    each = node(lambda node_input: node_input * 10, name="each", parallel_worker=True)
    wf = Workflow(name="wf", edges=[(START, node(lambda: list(range(count)), name="items"), each)])
    nodes: dict[str, Any] = {"each": {"batch_size": batch_size}} if batch_size else {}
    run = run_dag(AdkDag(wf, dag_id=f"batches_{batch_size}_{count}", nodes=nodes))
    assert run.output == [index * 10 for index in range(count)]
    with create_session() as session:
        rows = session.query(XComModel).filter_by(run_id=run.run_id, task_id="each.run", key="return_value")
        return [XCom.deserialize_value(row) for row in rows.order_by(XComModel.map_index)]


def test_a_mapped_task_of_one_item_returns_its_output() -> None:
    assert returned(None, 3) == [0, 10, 20]
    assert returned(1, 2) == [0, 10]


def test_the_last_of_several_batches_returns_a_list_like_the_others() -> None:
    assert returned(2, 3) == [[0, 10], [20]]
    assert returned(5, 1) == [[0]]


def route(node_input: str) -> Event:
    return Event(route=node_input)


def test_a_second_run_in_one_process_knows_nothing_of_the_first() -> None:
    pick = node(route, name="pick")
    left, right = node(lambda: "left", name="left"), node(lambda: "right", name="right")
    dag = AdkDag(Workflow(name="wf", edges=[(START, pick), (pick, {"left": left, "right": right})]), dag_id="twice_over")

    assert [run_dag(dag, conf={"input": way}).output for way in ("left", "right", "left")] == ["left", "right", "left"]
