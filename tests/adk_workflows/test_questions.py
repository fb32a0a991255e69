"""The questions file: the shapes it takes, and what it says about the ones it does not."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture
def questions(load: Callable[[str], ModuleType]) -> ModuleType:
    return load("_questions")


def read(questions: ModuleType, tmp_path: Path, content: str | bytes) -> list[Any]:
    path = tmp_path / "asked.yaml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return [question.model_dump() for question in questions.read_questions(path)]


def test_an_entry_is_a_text_or_a_mapping(questions: ModuleType, tmp_path: Path) -> None:
    assert read(questions, tmp_path, "- Who?\n- question: ' What? '\n  document: a/b.md\n- question: Why?\n") == [
        {"question": "Who?", "document": None},
        {"question": "What?", "document": "a/b.md"},
        {"question": "Why?", "document": None},
    ]


@pytest.mark.parametrize("content", ["", "[]", "# nothing yet\n"])
def test_no_entries_are_no_questions(questions: ModuleType, tmp_path: Path, content: str) -> None:
    assert read(questions, tmp_path, content) == []


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("question: Who?", "holds a dict; expected a list of questions"),
        ("just text", "holds a str; expected a list of questions"),
        ("- Who?\n- 42", "entry 2: "),
        ("- Who?\n- question: 42", "entry 2: question: Input should be a valid string"),
        ("- document: a.md", "entry 1: question: Field required"),
        ("- question: Who?\n  documnet: a.md", "entry 1: documnet: Extra inputs are not permitted"),
        ("- question: Who?\n  document: [a.md]", "entry 1: document: Input should be a valid string"),
        ("- Who?\n- '  '", "entry 2: question: String should have at least 1 character"),
        ("- Who?\n- null", "entry 2: "),
        ("- Who?\n- What?\n- ' who?'", "entry 3: the same question as entry 1. Remove one."),
        ("- [unclosed", "is not a readable YAML file"),
        ("- 2026-99-99", "is not a readable YAML file"),
        (b"- caf\xe9?", "is not a readable YAML file"),
        ("- !!python/object/apply:os.getcwd []", "is not a readable YAML file"),
    ],
)
def test_a_malformed_file_is_named_with_its_entry(
    questions: ModuleType, tmp_path: Path, content: str | bytes, problem: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)) as error:
        read(questions, tmp_path, content)
    assert str(tmp_path / "asked.yaml") in str(error.value)


def test_a_missing_file_and_a_directory_are_named(questions: ModuleType, tmp_path: Path) -> None:
    for path in (tmp_path / "missing.yaml", tmp_path):
        with pytest.raises(ValueError, match="cannot be read") as error:
            questions.read_questions(path)
        assert str(path) in str(error.value)


def test_the_bundled_questions_expect_packages_that_are_installed(questions: ModuleType, workflows_dir: Path) -> None:
    bundled = questions.read_questions(workflows_dir / "questions.yaml")
    installed = {
        re.sub(r"[-_.]+", "-", name).lower() + ".md"
        for distribution in importlib.metadata.distributions()
        if (name := distribution.metadata["Name"])
    }

    assert len(bundled) >= 27
    assert {question.document for question in bundled} <= installed
