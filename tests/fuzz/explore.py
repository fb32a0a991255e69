"""Draws workflows one after another, judges each, and shrinks the first that disagrees."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz.code import script
from tests.fuzz.graphs import Flow
from tests.fuzz.strategy import flows
from tests.fuzz.verdict import AGREED, UNSTABLE, Verdict, judge


@dataclass
class Report:
    """What came of it.

    Attributes:
        counts: How many workflows got each verdict, those seen while shrinking left out.
        disagreements: The smallest workflows found whose difference is not documented, and what differs.
    """

    counts: Counter[str] = field(default_factory=Counter)
    disagreements: list[tuple[Flow, Verdict]] = field(default_factory=list)

    def __add__(self, other: Report) -> Report:
        return Report(self.counts + other.counts, [*self.disagreements, *other.disagreements])

    def summary(self) -> str:
        """One line: how many agreed, differed as documented, and disagreed."""
        documented = {kind: n for kind, n in sorted(self.counts.items()) if kind and kind not in (AGREED, UNSTABLE)}
        kinds = f" ({', '.join(f'{kind} {n}' for kind, n in documented.items())})" if documented else ""
        return (
            f"{self.counts.total()} workflows: {self.counts[AGREED]} agreed, {sum(documented.values())} differ as documented"
            f"{kinds}, {self.counts[UNSTABLE]} left out because {UNSTABLE}, {self.counts['']} undocumented"
        )

    def explanation(self) -> str:
        """Each disagreement as a program that a person can paste, and what differs."""
        lines = []
        for flow, verdict in self.disagreements:
            differs = [f"# {line}" for text in verdict.details for line in text.split("\n")]
            lines += [script(flow), "# What differs:", *differs, ""]
        return "\n".join(lines)


class _Disagreement(AssertionError):
    """Tells Hypothesis that this is one to shrink."""


def prepare(homes: str) -> None:
    """Gives a new process an Airflow of its own in the folder ``homes``, and silence."""
    os.environ["AIRFLOW__LOGGING__LOGGING_LEVEL"] = "CRITICAL"
    warnings.simplefilter("ignore")
    from adk_airflow.testing import use_airflow_home

    use_airflow_home(tempfile.mkdtemp(dir=homes))
    logging.disable(logging.CRITICAL)


def explore(count: int, *, seed_number: int, most_nodes: int = 25) -> Report:
    """Judges random workflows until one disagrees.

    Args:
        count: How many.
        seed_number: The same number draws the same workflows.
        most_nodes: How many nodes a workflow has at most, those in nested ones left out.
    """
    report = Report()
    smallest: tuple[Flow, Verdict] | None = None

    @seed(seed_number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
    )
    @given(flows(most_nodes))
    def agrees(flow: Flow) -> None:
        nonlocal smallest
        try:
            verdict = judge(flow)
        except Exception:
            verdict = Verdict("", (traceback.format_exc(),))
        if smallest is None:
            report.counts[verdict.kind] += 1
        if not verdict.kind:
            smallest = (flow, verdict)
            raise _Disagreement

    with contextlib.suppress(_Disagreement):
        agrees()
    report.disagreements += [smallest] if smallest else []
    return report
