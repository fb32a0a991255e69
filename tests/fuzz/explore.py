"""Draws workflows one after another, judges each, and shrinks the first that disagrees."""

from __future__ import annotations

import contextlib
import traceback
from collections import Counter
from collections.abc import Callable
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
        disagreement: The smallest workflow found whose difference is not documented, and what differs.
    """

    counts: Counter[str] = field(default_factory=Counter)
    disagreement: tuple[Flow, Verdict] | None = None

    def summary(self) -> str:
        """One line: how many agreed, differed as documented, and disagreed."""
        documented = {kind: n for kind, n in sorted(self.counts.items()) if kind and kind not in (AGREED, UNSTABLE)}
        kinds = f" ({', '.join(f'{kind} {n}' for kind, n in documented.items())})" if documented else ""
        return (
            f"{self.counts.total()} workflows: {self.counts[AGREED]} agreed, {sum(documented.values())} differ as documented"
            f"{kinds}, {self.counts[UNSTABLE]} left out because {UNSTABLE}, {self.counts['']} undocumented"
        )

    def explanation(self) -> str:
        """The disagreement as a program that a person can paste, and what differs."""
        if self.disagreement is None:
            return ""
        flow, verdict = self.disagreement
        differs = [f"# {line}" for text in verdict.details for line in text.split("\n")]
        return "\n".join([script(flow), "# What differs:", *differs])


class _Disagreement(AssertionError):
    """Tells Hypothesis that this is one to shrink."""


def explore(count: int, *, seed_number: int, most_nodes: int = 25, tell: Callable[[str], None] | None = None) -> Report:
    """Judges random workflows until one disagrees.

    Args:
        count: How many.
        seed_number: The same number draws the same workflows.
        most_nodes: How many nodes a workflow has at most, those in nested ones left out.
        tell: Called with a line now and then.
    """
    report = Report()

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
        try:
            verdict = judge(flow)
        except Exception:
            verdict = Verdict("", (traceback.format_exc(),))
        if report.disagreement is None:
            report.counts[verdict.kind] += 1
            if tell is not None and report.counts.total() % 50 == 0:
                tell(report.summary())
        if not verdict.kind:
            if report.disagreement is None and tell is not None:
                tell(f"a workflow of {len(flow.nodes)} nodes disagrees; looking for a smaller one")
            report.disagreement = (flow, verdict)
            raise _Disagreement

    with contextlib.suppress(_Disagreement):
        agrees()
    return report
