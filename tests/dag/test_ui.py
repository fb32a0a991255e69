"""The UI shows what each task is, and which item it ran."""

from __future__ import annotations

from google.adk import Workflow
from google.adk.workflow import node

from adk_airflow import AdkDag
from adk_airflow.testing import run_dag
from tests.dag.nodes import const, show


def test_the_ui_shows_what_each_task_is_and_which_item_it_ran() -> None:
    wf = Workflow(
        name="wf",
        edges=[("START", const("list", [{"name": "first"}, "x " * 200]), node(show("each"), parallel_worker=True))],
    )
    dag = AdkDag(wf, schedule=None, params={"input": None})
    run = run_dag(dag)

    assert [dag.get_task(name).operator_name for name in ("list", "each.items", "each.run")] == [
        "ADK function",
        "ADK items",
        "ADK item",
    ]
    assert "input" not in dag.params
    labels = [label for _, label in sorted(run.labels["each.run"].items())]
    assert labels[0] == "1 · first"
    assert labels[1].startswith("2 · x x")
    assert labels[1].endswith("…")
    assert len(labels[1]) <= 125


def test_the_dag_documents_itself_and_every_dag_argument_works() -> None:
    wf = Workflow(name="wf", description="Greets people.", edges=[("START", show("a"))])
    dag = AdkDag(wf, dag_id="other", schedule="@hourly", tags=["x"], max_active_runs=1)

    assert (dag.dag_id, dag.tags, dag.max_active_runs, dag.description) == ("other", {"x"}, 1, "Greets people.")
    assert "| a | function | `a` |" in (dag.doc_md or "")
