"""Every conformance case gives ADK's result in a DAG run, or is on the list of documented differences.

A test per case and mode: ``-k pw_fail`` runs one case, ``-k "pw_fail and embedded"`` one of its modes.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conformance import run

HERE = Path(__file__).parent
MODES = ("tasks", "embedded")
DOCUMENTED = json.loads((HERE / "documented.json").read_text())
EXPECTED = {name: json.loads((HERE / f"{name}.json").read_text())["cases"] for name in ("expected", "more_expected")}
CASES = {
    name: {case.id: case for case in run.load_module(HERE / file).CASES}
    for name, file in (("expected", "cases.py"), ("more_expected", "more_cases.py"))
}
# The others wait for a person's answer.
WITHOUT_PEOPLE = [
    (name, case_id)
    for name, expected in EXPECTED.items()
    for case_id, record in expected.items()
    if record["status"] != "paused" and "hitl" not in CASES[name][case_id].tags
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "case_id"), WITHOUT_PEOPLE, ids=[case_id for _, case_id in WITHOUT_PEOPLE])
def test_a_case_gives_what_adk_gives_or_is_documented(name: str, case_id: str, mode: str) -> None:
    found = run.compare([CASES[name][case_id]], EXPECTED[name], mode)

    if case_id in DOCUMENTED[mode]:
        assert found, f"{case_id} agrees with ADK in mode {mode!r}: take it out of documented.json and docs/differences.md"
    else:
        assert found == {}


def test_each_case_has_an_expected_result_and_none_is_left_out() -> None:
    assert {name: cases.keys() for name, cases in CASES.items()} == {name: cases.keys() for name, cases in EXPECTED.items()}
    assert len({case_id for _, case_id in WITHOUT_PEOPLE}) == len(WITHOUT_PEOPLE) >= 122 + 31


def test_each_documented_difference_is_a_case_and_in_the_docs() -> None:
    text = (HERE.parents[1] / "docs" / "differences.md").read_text()
    documented = {name for names in DOCUMENTED.values() for name in names}

    assert DOCUMENTED.keys() == {*MODES, "tasks in processes"}
    assert documented <= {case_id for _, case_id in WITHOUT_PEOPLE}
    assert [name for name in documented if f"`{name}`" not in text] == []
