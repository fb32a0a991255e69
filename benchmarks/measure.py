"""How a row is measured: what is compared runs alternately in one session, so that a busy machine is busy for both."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        name: What is measured.
        against: What it is compared with; empty for a figure that is compared with nothing.
        unit: Of the figures, such as ``s``.
        ours: The figure of each round.
        theirs: Of what it is compared with, in the same rounds.
        at_most: The bound of the ratio; of the figure where nothing is compared.
    """

    name: str
    against: str
    unit: str
    ours: Sequence[float]
    theirs: Sequence[float]
    at_most: float

    @property
    def figure(self) -> float:
        """What the bound is for: the median ratio of the rounds; or the median figure."""
        if not self.theirs:
            return statistics.median(self.ours)
        return statistics.median(ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=True))

    @property
    def least(self) -> float:
        """The ratio of the least figures, which a busy machine disturbs least; or the least figure."""
        return min(self.ours) / min(self.theirs) if self.theirs else min(self.ours)

    def as_json(self) -> dict[str, Any]:
        """All that is known of it."""
        return {**asdict(self), "median": self.figure, "least": self.least, "within": self.figure <= self.at_most}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Row:
        """What ``as_json`` gave."""
        return cls(**{field.name: data[field.name] for field in fields(cls)})


def alternate(sides: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """The figures of each side, round by round; each is measured once before, for nothing."""
    for measure in sides.values():
        measure()
    found: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        for name in sorted(sides, reverse=bool(number % 2)):
            found[name].append(sides[name]())
    return found


def table(rows: Sequence[Row]) -> str:
    """The rows as a table in Markdown."""
    lines = ["| row | against | ours | theirs | median | least | at most |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        ours, theirs = (f"{statistics.median(side):.3g} {row.unit}" if side else "" for side in (row.ours, row.theirs))
        lines.append(
            f"| {row.name} | {row.against} | {ours} | {theirs} | {row.figure:.2f} | {row.least:.2f} | {row.at_most:g} |"
        )
    return "\n".join(lines)
