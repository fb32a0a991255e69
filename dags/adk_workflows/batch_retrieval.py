"""Answers a batch of questions from a directory of documents: an ADK workflow, run by anything that runs ADK.

    START ─┬─ collect_documents ─ refresh_index ─┬─ ready ─ each_question ─ retrieve ─ grade
           └─ load_questions ────────────────────┘          (one per question)           │
                                        ┌──────────────────────┬────────────────────────┘
                  complete: accept      needs_review: flag_weak_answers      default: nothing_to_answer
                                        └──────────────────────┴─────────────────────── report

Parameters are read from the session's state; each one has a default:

* `documents_dir`: the directory to search. Empty: the long descriptions of the installed distributions,
  written below `data_dir`.
* `questions`: texts to ask. Empty: those of `questions_file`. Empty, too: those of `questions.yaml` here.
* `data_dir`: where documents and indexes are kept between runs. The machines that run the nodes share it.
* `top_k`: documents per question, 1 to 50.
* `retrieval`: `bm25`, or `dense` or `fused`, which embed with Gemini and need its key.

The report also shows `airflow:run_id`, `airflow:logical_date`, `airflow:data_interval_start` and
`airflow:data_interval_end` when the state has them.

Each node may run in a process of its own: what one node leaves for another is in its output or in the state
(`index_location`, `index_report`, `expected_documents`).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import adk_airflow_llama_index as llama_index_provider
from adk_airflow_llama_index import IndexRetrieval
from google.adk import Context, Event
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import DEFAULT_ROUTE, START, JoinNode, Workflow, node
from google.genai import types

from ._documents import installed_descriptions, write_documents
from ._questions import check_questions, read_questions
from ._report import shorten, to_markdown

MAX_TOP_K = 50
RETRIEVALS = ("bm25", "dense", "fused")


def collect_documents(documents_dir: str | None = "", data_dir: str | None = "") -> dict[str, Any]:
    """Outputs the `directory` to index; for the installed distributions also how many files were written."""
    if documents_dir and documents_dir.strip():
        return {"directory": str(Path(documents_dir.strip()).expanduser().absolute())}
    directory = _data_path(data_dir) / "documents"
    documents, without_description = installed_descriptions()
    counts = write_documents(documents, directory)
    return {"directory": str(directory), **counts, "without_description": without_description}


async def refresh_index(
    ctx: Context, node_input: dict[str, Any], data_dir: str | None = "", retrieval: str = "bm25"
) -> dict[str, Any]:
    """Brings the index of the collected directory up to date and leaves its location in the state.

    Raises:
        IndexSourceError: The directory is missing or holds no readable document.
        ValueError: `retrieval` is none of `RETRIEVALS`.
    """
    if retrieval not in RETRIEVALS:
        raise ValueError(f"retrieval is {retrieval!r}; choose one of {', '.join(RETRIEVALS)}.")
    embed_model = None if retrieval == "bm25" else "gemini"
    directory = Path(node_input["directory"])
    report = await asyncio.to_thread(
        llama_index_provider.refresh_index,
        directory,
        _index_dir(_data_path(data_dir), directory, embed_model),
        embed_model=embed_model,
    )
    output = report.to_dict()
    ctx.state["index_location"] = output["location"]
    ctx.state["index_report"] = {key: value for key, value in output.items() if key != "location"}
    return output


def load_questions(questions: list[str] | None = None, questions_file: str | None = "") -> list[dict[str, str | None]]:
    """Outputs `{"question", "document"}` for each question; `document` is None when no answer is known.

    Raises:
        ValueError: The file or the list is malformed; the message names the file and the entry.
    """
    if questions:
        loaded = check_questions(questions, source="The parameter `questions`")
    else:
        bundled = Path(__file__).with_name("questions.yaml")
        loaded = read_questions(Path(questions_file).expanduser() if questions_file else bundled)
    return [question.model_dump() for question in loaded]


ready = JoinNode(name="ready")


def each_question(ctx: Context, node_input: dict[str, Any], top_k: int = 5, retrieval: str = "bm25") -> list[dict[str, Any]]:
    """Outputs the arguments of `retrieve`, one dict per question; `label` is what a UI shows for the item.

    Raises:
        ValueError: `top_k` is not in 1 to `MAX_TOP_K`.
    """
    if not 1 <= top_k <= MAX_TOP_K:
        raise ValueError(f"top_k is {top_k}; choose a number of documents from 1 to {MAX_TOP_K}.")
    questions = node_input["load_questions"]
    ctx.state["expected_documents"] = [question["document"] for question in questions]
    return [
        {
            "query": question["question"],
            "top_k": top_k,
            "mode": retrieval,
            "label": shorten(question["question"], 120),
        }
        for question in questions
    ]


class QuestionRetrieval(IndexRetrieval):
    """`IndexRetrieval` with `top_k` and `mode` among its arguments: here they are parameters of the run."""

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        # Making a tool costs nothing: the index is loaded once per process, whichever tool asks for it.
        tool = IndexRetrieval(name=self.name, top_k=args["top_k"], mode=args["mode"])
        return await tool.run_async(args=args, tool_context=tool_context)


retrieve = node(QuestionRetrieval(name="retrieve"), parallel_worker=True, max_parallel_workers=8)


def grade(node_input: list[dict[str, Any]], expected_documents: list[str | None]) -> Event:
    """Gives each question a route of its own, and the batch the worst of them.

    A score says which document fits best, not whether it fits: the BM25 scores of two questions cannot be
    compared, so no threshold separates good answers from bad ones. What can be checked is checked: with an
    expected document the question is `complete` when that document was found; without one, when anything was.
    The rest `needs_review`, and a single one sends the batch there, since somebody has to look at it.
    No questions, no route: the workflow takes its default.
    """
    rows = []
    for result, expected in zip(node_input, expected_documents, strict=True):
        passages = result["passages"]
        documents = [passage["document"] for passage in passages]
        rank = documents.index(expected) + 1 if expected in documents else None
        complete = bool(passages) if expected is None else rank is not None
        rows.append(
            {
                "question": result["query"],
                "expected": expected,
                "rank_of_expected": rank,
                "route": "complete" if complete else "needs_review",
                "passages": [
                    {**passage, "score": round(passage["score"], 4), "text": shorten(passage["text"], 400)}
                    for passage in passages
                ],
            }
        )
    if not rows:
        return Event(output=[])
    weak = any(row["route"] == "needs_review" for row in rows)
    return Event(output=rows, route="needs_review" if weak else "complete")


def accept(node_input: list[dict[str, Any]]) -> dict[str, Any]:
    """Every question is complete: the rows go into the report as they are."""
    return {"route": "complete", "rows": node_input}


def flag_weak_answers(node_input: list[dict[str, Any]]) -> dict[str, Any]:
    """Adds to each row in need of review a `note` that says what was missing."""
    rows = []
    for row in node_input:
        if row["route"] == "needs_review":
            found = f"{len(row['passages'])} documents were found" if row["passages"] else "nothing was found"
            missing = f", {row['expected']} is not among them" if row["expected"] and row["passages"] else ""
            row = {**row, "note": f"{found}{missing}"}
        rows.append(row)
    return {"route": "needs_review", "rows": rows}


def nothing_to_answer() -> dict[str, Any]:
    """No question was asked; the report still says what the index holds."""
    return {"route": "nothing_to_answer", "rows": []}


async def report(ctx: Context, node_input: dict[str, Any], index_report: dict[str, Any]) -> dict[str, Any]:
    """Saves `report.md` and `report.json` as artifacts and outputs the summary.

    The output is small enough for a UI: `summary`, `table` (one short row per question), `skipped` (the first
    20 files that were left out) and `artifacts` (versions by name; empty without an artifact service).
    """
    rows = node_input["rows"]
    skipped = index_report["skipped"]
    with_expected = [row for row in rows if row["expected"] is not None]
    summary = {
        "questions": len(rows),
        "complete": sum(row["route"] == "complete" for row in rows),
        "needs_review": sum(row["route"] == "needs_review" for row in rows),
        "expected_found": sum(row["rank_of_expected"] is not None for row in with_expected),
        "with_expected": len(with_expected),
        "route": node_input["route"],
        "index": {**index_report, "skipped": len(skipped)},
    }
    run = {
        key: ctx.state.get(f"airflow:{key}") for key in ("run_id", "logical_date", "data_interval_start", "data_interval_end")
    }
    full = {"run": run, "summary": summary, "questions": rows, "skipped": skipped}
    return {
        "summary": summary,
        "table": [_table_row(row) for row in rows],
        "skipped": skipped[:20],
        "artifacts": await _save_artifacts(ctx, full),
    }


async def _save_artifacts(ctx: Context, full_report: dict[str, Any]) -> dict[str, int]:
    if ctx.get_invocation_context().artifact_service is None:
        return {}
    contents = {
        "report.md": (to_markdown(full_report), "text/markdown"),
        "report.json": (json.dumps(full_report, ensure_ascii=False, indent=2), "application/json"),
    }
    return {
        # A lone surrogate (YAML and JSON can hold one) has no UTF-8 form; a report is better than an error.
        name: await ctx.save_artifact(name, types.Part.from_bytes(data=text.encode("utf-8", "replace"), mime_type=mime_type))
        for name, (text, mime_type) in contents.items()
    }


def _table_row(row: dict[str, Any]) -> dict[str, Any]:
    best = row["passages"][0] if row["passages"] else {"document": None, "score": None}
    return {
        "question": shorten(row["question"], 80),
        "document": best["document"],
        "score": best["score"],
        "rank_of_expected": row["rank_of_expected"],
        "route": row["route"],
    }


def _data_path(data_dir: str | None) -> Path:
    if data_dir:
        return Path(data_dir).expanduser().absolute()
    return Path(tempfile.gettempdir()) / "adk_airflow_batch_retrieval"


def _index_dir(data_path: Path, directory: Path, embed_model: str | None) -> Path:
    # One per directory and model: going back and forth between two would otherwise rebuild each time.
    digest = hashlib.sha256(str(directory).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return data_path / "indexes" / f"{digest}-{embed_model or 'bm25'}"


root_agent = Workflow(
    name="batch_retrieval",
    description="Answers a batch of questions from a directory of documents and writes a report.",
    edges=[
        (START, (collect_documents, load_questions)),
        (collect_documents, refresh_index),
        ((refresh_index, load_questions), ready, each_question, retrieve, grade),
        (
            grade,
            {"complete": accept, "needs_review": flag_weak_answers, DEFAULT_ROUTE: nothing_to_answer},
        ),
        ((accept, flag_weak_answers, nothing_to_answer), report),
    ],
)
