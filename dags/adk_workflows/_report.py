"""The report of a run as Markdown: whatever people asked and documents hold is shown as plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

MAX_SKIPPED_SHOWN = 100

_MARKDOWN = re.compile(r"[\\`*_\[\]<>|~#$&]")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def shorten(text: str, width: int) -> str:
    """Puts `text` on one line of at most `width` characters, with an ellipsis where it was cut."""
    line = " ".join(_UNPRINTABLE.sub(" ", text).split())
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"


def to_markdown(report: dict[str, Any]) -> str:
    """Renders a report (the content of `report.json`) as GitHub-flavoured Markdown."""
    summary, run, rows = report["summary"], report["run"], report["questions"]
    lines = ["# Batch retrieval report", ""]
    lines += [f"* {label}: {_escape(run[key], 200)}" for key, label in _RUN_LABELS.items() if run[key]]
    lines += [f"* {_summary_line(summary)}", f"* {_index_line(summary['index'])}", ""]
    lines += ["## Answers", ""]
    if rows:
        lines += _table(
            ("#", "Question", "Document", "Score", "Rank of the expected document", "Route"),
            [
                (
                    str(number),
                    _escape(row["question"], 200),
                    _escape(row["passages"][0]["document"], 120) if row["passages"] else "nothing found",
                    f"{row['passages'][0]['score']:.3f}" if row["passages"] else "",
                    _rank(row),
                    row["route"],
                )
                for number, row in enumerate(rows, start=1)
            ],
        )
    else:
        lines.append("No questions were asked.")
    for number, row in enumerate(rows, start=1):
        lines += ["", f"### {number}. {_escape(row['question'], 200)}", ""]
        if note := row.get("note"):
            lines += [f"Needs review: {_escape(note, 400)}", ""]
        lines += [f"{rank}. {_passage(passage)}" for rank, passage in enumerate(row["passages"], start=1)] or ["Nothing found."]
    lines += _skipped_section(report["skipped"])
    return "\n".join(lines) + "\n"


_RUN_LABELS = {
    "run_id": "Run",
    "logical_date": "Logical date",
    "data_interval_start": "Data interval start",
    "data_interval_end": "Data interval end",
}


def _summary_line(summary: dict[str, Any]) -> str:
    line = (
        f"Questions: {summary['questions']}, of which {summary['complete']} complete and"
        f" {summary['needs_review']} in need of review. Route: `{summary['route']}`."
    )
    if summary["with_expected"]:
        line += f" Expected document found for {summary['expected_found']} of {summary['with_expected']}."
    return line


def _index_line(index: dict[str, Any]) -> str:
    counts = ", ".join(f"{index[key]} {key}" for key in ("added", "changed", "removed", "reused"))
    skipped = f", {index['skipped']} skipped" if index["skipped"] else ""
    return f"Index: {index['documents']} documents ({counts}{skipped}), {index['passages']} passages."


def _passage(passage: dict[str, Any]) -> str:
    document, text = _escape(passage["document"], 120), _escape(passage["text"], 300)
    return f"**{document}** ({passage['score']:.3f}): {text}"


def _rank(row: dict[str, Any]) -> str:
    if row["expected"] is None:
        return ""
    return str(row["rank_of_expected"] or "not found")


def _skipped_section(skipped: Sequence[dict[str, str]]) -> list[str]:
    if not skipped:
        return []
    shown = [(_escape(item["document"], 200), _escape(item["reason"], 200)) for item in skipped[:MAX_SKIPPED_SHOWN]]
    lines = ["", "## Skipped files", "", *_table(("File", "Reason"), shown)]
    if more := len(skipped) - len(shown):
        lines += ["", f"And {more} more; report.json names them all."]
    return lines


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(header)} |",
        f"|{' --- |' * len(header)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def _escape(text: str, width: int) -> str:
    return _MARKDOWN.sub(r"\\\g<0>", shorten(text, width))
