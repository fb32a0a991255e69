"""State merges the same way every time, and a lost update is never silent."""

from __future__ import annotations

import pytest

from adk_airflow.errors import EnvelopeError
from adk_airflow.runtime.wire import lineage


def values(state: lineage.State) -> dict[str, object]:
    return {key: entry.value for key, entry in state.items()}


def test_a_later_write_replaces_the_one_it_has_seen_whatever_the_order_of_the_merge() -> None:
    first = lineage.write({}, {"k": 1}, "a")
    second = lineage.write(first, {"k": 2}, "b")

    for order in ([first, second], [second, first]):
        merged = lineage.merge(order)
        assert values(merged.state) == {"k": 2}
        assert merged.lost == []


def test_two_branches_that_wrote_one_key_side_by_side_lose_an_update_and_say_so() -> None:
    base = lineage.write({}, {"k": 0, "only": 1}, "start")
    left, right = lineage.write(base, {"k": "left"}, "a"), lineage.write(base, {"k": "right"}, "b")

    merged = lineage.merge([left, right])

    assert values(merged.state) == {"k": "right", "only": 1}
    assert merged.lost == [lineage.LostUpdate("k", kept="b", lost="a")]


def test_two_branches_that_wrote_the_same_value_lose_nothing() -> None:
    left, right = (lineage.write({}, {"k": value}, name) for value, name in [({"x": 1, "y": 2}, "a"), ({"y": 2, "x": 1}, "b")])

    assert lineage.merge([left, right]).lost == []


@pytest.mark.parametrize(("one", "other"), [(1, True), ([1], [True]), ({"x": [1.0]}, {"x": [1]}), (1, "1")])
def test_values_that_python_takes_for_equal_are_two(one: object, other: object) -> None:
    left, right = lineage.write({}, {"k": one}, "a"), lineage.write({}, {"k": other}, "b")

    assert lineage.merge([left, right]).lost == [lineage.LostUpdate("k", kept="b", lost="a")]


def test_a_decided_conflict_stays_decided_downstream() -> None:
    left, right = lineage.write({}, {"k": "left"}, "a"), lineage.write({}, {"k": "right"}, "b")
    joined = lineage.merge([left, right]).state

    again = lineage.merge([joined, left])

    assert values(again.state) == {"k": "right"}
    assert again.lost == []


def test_keys_of_both_branches_are_kept() -> None:
    left, right = lineage.write({}, {"l": 1}, "a"), lineage.write({}, {"r": 2}, "b")

    assert values(lineage.merge([left, right]).state) == {"l": 1, "r": 2}


def test_an_entry_survives_json() -> None:
    entry = lineage.write(lineage.write({}, {"k": [1]}, "a"), {"k": [2]}, "b")["k"]

    assert lineage.Entry.from_json(entry.to_json()) == entry


@pytest.mark.parametrize(
    "data",
    [
        None,
        "abc",
        {},
        [1, "a"],
        [1, "a", [], []],
        [1, 2, []],
        [1, ["a"], []],
        [1, "a", "bc"],
        [1, "a", None],
        [1, "a", {"b": 1}],
        [1, "a", ["b", 1]],
        [1, "a", ["b", None]],
        [1, "a", [["b"]]],
    ],
)
def test_something_else_is_no_entry(data: object) -> None:
    with pytest.raises(EnvelopeError, match="a state entry"):
        lineage.Entry.from_json(data)
