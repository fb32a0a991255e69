"""The example DAG file of agents in a folder."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import BundleDagBag
from airflow.sdk import DAG

from adk_airflow.testing import run_dag

DAGS = Path(__file__).parents[2] / "dags"


@pytest.fixture(scope="module")
def dags() -> dict[str, DAG]:
    file = DAGS / "agents_folder.py"
    bag = BundleDagBag(dag_folder=str(file), bundle_path=DAGS, bundle_name="dags-folder", load_op_links=False)
    assert bag.import_errors == {}
    return bag.dags


def test_each_project_is_a_dag(dags: dict[str, DAG]) -> None:
    assert sorted(dags) == ["diary", "word_count"]
    assert dags["diary"].schedule == "@daily"
    assert sorted(dags["word_count"].task_ids) == ["count", "report", "split"]


def test_word_count(dags: dict[str, DAG]) -> None:
    assert run_dag(dags["word_count"]).output == "8 words, most often 'fish' (4 times)"
    assert run_dag(dags["word_count"], conf={"input": "To be or not to be"}).output == "6 words, most often 'to' (2 times)"


def test_the_diary_knows_yesterdays_line(
    dags: dict[str, DAG], gemini: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    lines = {"It rained all day.": "A wet day for the heron.", "And how was the day after?": "Drier than yesterday."}
    server = gemini(lambda request: lines[request.last_text])
    for day, said in enumerate(lines, start=1):
        run = run_dag(dags["diary"], conf={"input": said}, logical_date=dt.datetime(2026, 3, day, tzinfo=dt.UTC))
        assert run.outputs == {"diary": [lines[said]]}

    first, second = (json.dumps(request.body) for request in server.requests)
    assert "PAST_CONVERSATIONS" not in first
    assert "user: It rained all day." in second
    assert "diary: A wet day for the heron." in second
