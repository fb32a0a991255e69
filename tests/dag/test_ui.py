"""The UI shows what each task is, and which item it ran."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk import Workflow
from google.adk.agents import LlmAgent
from google.adk.workflow import node
from pydantic import BaseModel

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


class Answer(BaseModel):
    score: int
    text: str


def look_up(name: str) -> str:
    """Finds a customer.

    By any spelling.
    """
    return name


def test_the_page_of_a_task_has_its_nodes_words_and_the_reason_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "not-to-be-shown-1234")

    def split(node_input: str, size: int = 3) -> list[str]:
        """Splits a mail.

        At blank lines.
        """
        return [node_input]

    agent = LlmAgent(
        name="judge",
        description="Judges mails.",
        model="gemini-2.5-flash",
        instruction="Judge the mail.\n```\nkey: not-to-be-shown-1234\n```",
        tools=[look_up],
        output_schema=Answer,
    )
    worker = LlmAgent(name="each", model="m", instruction="Sum up.")
    edges: Any = [
        ("START", split, node(worker, name="each", parallel_worker=True), agent, show("left")),
        (agent, show("right")),
    ]
    first, second, end = show("draft"), show("review"), show("end")
    edges += [("START", first, second, {"again": first, "done": end}), (split, end)]
    tasks = AdkDag(Workflow(name="wf", edges=edges), schedule=None).task_dict

    assert tasks["split"].doc_md == (
        "Node `split` (function) of the ADK workflow `wf`.\n\nSplits a mail.\n\nAt blank lines.\n\n"
        "`split(node_input: 'str', size: 'int' = 3) -> 'list[str]'`"
    )
    assert tasks["judge"].doc_md == (
        "Node `judge` (agent) of the ADK workflow `wf`.\n\nJudges mails.\n\n**Model** `gemini-2.5-flash`\n\n**Instruction**\n\n"
        "````text\nJudge the mail.\n```\nkey: ***\n```\n````\n\n**Tools**\n\n* `look_up`: Finds a customer.\n\n"
        "**Output** `Answer`: `score`, `text`"
    )
    assert "```text\nSum up.\n```\n\n*Runs once per item.*" in tasks["each.run"].doc_md
    assert "*Makes the list that the next task is mapped over" in tasks["each.items"].doc_md
    loop = tasks["draft_loop"].doc_md
    assert loop.startswith("Nodes `draft`, `review` (region) of the ADK workflow `wf`.\n\n### draft\n\n")
    assert "*A loop: ADK's own engine runs draft, review together in this task.*" in loop
    assert tasks["end"].doc_md.endswith(
        "*It waits for all tasks before it, also for those that are skipped: any of them may have triggered it. Where none has,"
        " it skips itself.*"
    )
    assert (
        "### split\n\nSplits a mail." in AdkDag(Workflow(name="one", edges=edges[:1]), mode="embedded").task_dict["one"].doc_md
    )


def test_a_page_of_the_users_own_stays() -> None:
    dag = AdkDag(Workflow(name="wf", edges=[("START", show("a"))]), nodes={"a": {"doc_md": "mine"}}, schedule=None)

    assert dag.get_task("a").doc_md == "mine"
