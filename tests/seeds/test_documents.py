"""docs/seeds.md and docs/migration.md: every row names tests, every name is a test, and every test has its row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
TESTS = {path.name: re.findall(r"^def (test_\w+)\(", path.read_text(), re.M) for path in HERE.glob("test_*.py")}
KNOWN = {*TESTS, *(name for names in TESTS.values() for name in names)}


def tables(document: str) -> list[list[list[str]]]:
    """The tables of a document: their rows, without the head, as lists of cells."""
    found: list[list[list[str]]] = []
    for block in re.findall(r"(?:^\|.*\n?)+", (DOCS / document).read_text(), re.M):
        found.append([[cell.strip() for cell in line.strip("|").split(" | ")] for line in block.splitlines()[2:]])
    return found


def named(text: str) -> list[str]:
    return re.findall(r"`(test_\w+(?:\.py)?)`", text)


def test_there_is_a_row_for_each_class_of_the_seeds() -> None:
    classes, examples = tables("seeds.md")

    assert [row[0].replace("`", "") for row in classes] == [
        "TransferToAgentTool",
        "SetModelResponseTool",
        "PreloadMemoryTool",
        "VertexAiSearchTool",
        "FilesRetrieval",
        "ToolboxToolset",
        "JoinNode",
        "@node, FunctionNode, Node",
        "_ParallelWorker",
        "Workflow",
        "as_node",
        "Task delegation",
    ]
    assert len(examples) > 40


@pytest.mark.parametrize("document", ["seeds.md", "migration.md"])
def test_each_name_of_a_test_is_a_test(document: str) -> None:
    names = named((DOCS / document).read_text())

    assert names != []
    assert [name for name in names if name not in KNOWN] == []


def test_each_row_names_a_test() -> None:
    rows = [row for table in tables("seeds.md") for row in table]

    assert [row for row in rows if not named(" ".join(row))] == []


def test_each_test_of_a_seed_is_in_the_table() -> None:
    names = set(named((DOCS / "seeds.md").read_text()))
    of_seeds = [name for file, tests in TESTS.items() if re.match(r"test_s\d", file) for name in tests]

    assert [name for name in of_seeds if name not in names] == []
