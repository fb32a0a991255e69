"""Answers a batch of questions from a directory of documents, every day.

The workflow itself is plain ADK, in ``adk_workflows/batch_retrieval.py``; this file only gives it a schedule and a form.
As it is, it answers questions about the Python packages that are installed; the params take documents and questions of
your own.
"""

from __future__ import annotations

import os
from pathlib import Path

import pendulum
from airflow.sdk import Param

from adk_airflow import AdkDag

AIRFLOW_HOME = Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser()

dag = AdkDag(
    "adk_workflows.batch_retrieval:root_agent",
    dag_id="batch_retrieval",
    schedule="@daily",
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    tags=["adk", "retrieval"],
    params={
        "input": None,  # the workflow takes no message
        "documents_dir": Param(
            "",
            type=["string", "null"],
            title="Documents",
            description="Directory whose text files are searched. Empty: the long descriptions of the installed packages.",
        ),
        "questions": Param(
            [],
            type=["array", "null"],
            items={"type": "string", "minLength": 1},
            title="Questions",
            description="One question per line. Empty: those of the questions file.",
        ),
        "questions_file": Param(
            "",
            type=["string", "null"],
            title="Questions file",
            description="YAML list of {question, document}; document, the expected answer, is optional."
            " Empty: the file that comes with the workflow.",
        ),
        "top_k": Param(
            5,
            type="integer",
            minimum=1,
            maximum=50,
            title="Documents per question",
            description="From 1 to 50.",
        ),
        "retrieval": Param(
            "bm25",
            type="string",
            enum=["bm25", "dense", "fused"],
            title="Retrieval",
            description="bm25 needs nothing; dense and fused embed with Gemini and need its key in the worker's environment.",
        ),
        "data_dir": Param(
            str(AIRFLOW_HOME / "batch_retrieval"),
            type="string",
            minLength=1,
            title="Data directory",
            section="Advanced",
            description="Where documents and indexes are kept between runs; all workers must reach it.",
        ),
    },
)
