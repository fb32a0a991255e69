"""Every conformance case gives ADK's result in a DAG run, or is on the list of documented differences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
DOCUMENTED = json.loads((HERE / "documented.json").read_text())


@pytest.mark.parametrize("mode", ["tasks", "embedded"])
def test_all_cases_agree_but_the_documented_ones(runner: Any, mode: str) -> None:
    expected = json.loads((HERE / "expected.json").read_text())["cases"]
    cases = [
        case
        for case in runner.load_module(HERE / "cases.py").CASES
        if "hitl" not in case.tags and expected[case.id]["status"] != "paused"
    ]

    found = runner.compare(cases, expected, mode)

    assert len(cases) >= 120
    assert found.keys() == set(DOCUMENTED[mode]), found


@pytest.mark.parametrize("mode", ["tasks", "embedded"])
def test_all_of_the_other_cases_agree(runner: Any, mode: str) -> None:
    expected = json.loads((HERE / "more_expected.json").read_text())["cases"]
    cases = runner.load_module(HERE / "more_cases.py").CASES

    assert {case.id for case in cases} == expected.keys()
    assert runner.compare(cases, expected, mode) == {}


def test_each_documented_difference_is_in_the_docs() -> None:
    text = (HERE.parents[1] / "docs" / "differences.md").read_text()

    missing = [name for names in DOCUMENTED.values() for name in names if f"`{name}`" not in text]

    assert missing == []
