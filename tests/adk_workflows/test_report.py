"""The Markdown report with texts that are Markdown themselves."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console
from rich.markdown import Markdown


@pytest.fixture
def report(load: Callable[[str], ModuleType]) -> ModuleType:
    return load("_report")


NASTY = "a | b\nnew `line` <b>bold</b> **x** [link](http://x) \x1b[31m # $1 \\| & café"


def full_report(*rows: dict[str, Any], skipped: list[dict[str, str]] | None = None) -> dict[str, Any]:
    skipped = skipped or []
    return {
        "run": dict.fromkeys(("run_id", "logical_date", "data_interval_start", "data_interval_end")),
        "summary": {
            "questions": len(rows),
            "complete": len(rows),
            "needs_review": 0,
            "expected_found": 0,
            "with_expected": 0,
            "route": "complete",
            "index": {
                "documents": 3,
                "passages": 4,
                "added": 3,
                "changed": 0,
                "removed": 0,
                "reused": 0,
                "skipped": len(skipped),
            },
        },
        "questions": list(rows),
        "skipped": skipped,
    }


def row(question: str, text: str = "text", document: str = "a.md") -> dict[str, Any]:
    return {
        "question": question,
        "expected": None,
        "rank_of_expected": None,
        "route": "complete",
        "passages": [{"document": document, "text": text, "score": 1.5}],
    }


def test_pipes_newlines_and_backticks_stay_inside_their_cell(report: ModuleType) -> None:
    markdown = report.to_markdown(full_report(row(NASTY, text=NASTY, document="we|ird`.md"), row("plain?")))

    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    assert len(lines) == 4
    cells = [line.replace("\\|", "").count("|") for line in lines[:2] + lines[3:]]
    assert cells == [7, 7, 7]
    assert "\x1b" not in markdown


def test_a_reader_sees_the_text_as_it_was_written(report: ModuleType) -> None:
    console = Console(width=300, record=True, file=None, no_color=True)
    with console.capture() as capture:
        console.print(Markdown(report.to_markdown(full_report(row("Is `a*b*c` <x> & [y](z)?")))))

    assert "Is `a*b*c` <x> & [y](z)?" in capture.get()


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("short", 10, "short"),
        ("exactly ten", 11, "exactly ten"),
        ("a  b\n\tc\x00d", 20, "a b c d"),
        ("many words here", 11, "many words…"),
        ("x" * 100_000, 5, "xxxx…"),
    ],
)
def test_shortening_keeps_one_line_within_the_width(report: ModuleType, text: str, width: int, shown: str) -> None:
    assert report.shorten(text, width) == shown
    assert len(report.shorten(text, width)) <= width


def test_skipped_files_are_named_up_to_a_limit_and_the_rest_counted(report: ModuleType) -> None:
    skipped = [{"document": f"f{number}.bin", "reason": "not text"} for number in range(103)]

    markdown = report.to_markdown(full_report(row("q?"), skipped=skipped))

    assert "103 skipped" in markdown
    assert "| f0.bin | not text |" in markdown
    assert "f100.bin" not in markdown
    assert "And 3 more; report.json names them all." in markdown
