"""Seed 000, section 7: JoinNode, as DAG runs."""

from __future__ import annotations

from adk_airflow.testing import run_workflow
from tests.seeds import s000_join_node as seed
from tests.seeds.in_process import assert_same, run_in_process


def test_example_2_the_join_gives_a_dict_by_predecessor() -> None:
    run = run_workflow(seed.score_aggregator)

    assert run.outputs["join"] == [
        {"branch_a": {"score": 0.9, "label": "positive"}, "branch_b": {"score": 0.3, "label": "negative"}}
    ]
    assert run.output == {"average_score": 0.6}
    assert_same(run, run_in_process(seed.score_aggregator))
