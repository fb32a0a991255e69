"""What a case really cost, and whether that is what it may cost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from tests.faults.dags.fault_calls import folder_of, round_of

Call = tuple[str, str]
"""The line, and the call of it."""

FAULTS = frozenset({"kill", "fail", "orphan", "limit", "cut", "never", "outage"})
"""The events after which a call that was under way may be made again."""

# Seconds after the end of a process in which the model may still hear what it had asked; no retry begins as soon.
_STILL_HEARD = 0.1
# Seconds for which the last call of a line may have ended and not be kept, when another line ends the process; the next call of
# its own line shows that it is.
_JUST_NOW = 5.0


@dataclass(frozen=True)
class Verdict:
    """The calls of a case.

    Attributes:
        made: How often each was begun.
        kills: How often a process was ended, or a call failed.
        wrong: What may not be, in words; empty when all is well.
    """

    made: Counter[Call]
    kills: int
    wrong: tuple[str, ...]

    @property
    def counted(self) -> int:
        return self.made.total()


def calls_of_agent(name: str, tools: int) -> list[Call]:
    """What an agent calls that looks up so many numbers."""
    return [(name, f"M{at}") for at in range(1, tools + 2)] + [(name, f"T{at}") for at in range(1, tools + 1)]


def judge(case: str, expected: Collection[Call], *, at_once: int = 0) -> Verdict:
    """Whether each expected call was made once, and once more at most for each kill or failure that found it under way.

    Args:
        case: The case.
        expected: All calls of a first run.
        at_once: Of lines that have one call each (items): how many are under way at once. 0: a line is what has its calls in
            their order.
    """
    made: Counter[Call] = Counter()
    ended: dict[Call, float] = {}
    last: dict[str, Call] = {}
    may: Counter[Call] = Counter(dict.fromkeys(expected, 1))
    kills = 0
    for entry in sorted(events(case), key=lambda entry: entry["time"] + _STILL_HEARD * (entry["event"] == "kill")):
        call = (entry["line"], entry["call"])
        if entry["event"] == "begin":
            made[call] += 1
            ended.pop(call, None)
            last[call[0]] = call
        elif entry["event"] == "end":
            ended[call] = entry["time"]
        elif entry["event"] in FAULTS:
            kills += 1
            may.update(call for call in last.values() if entry["time"] - ended.get(call, entry["time"]) < _JUST_NOW)
    wrong = []
    if never := [call for call in expected if not made[call]]:
        wrong.append(f"never made: {_named(never)}")
    repeated = sum(made[call] - 1 for call in expected if made[call])
    if at_once and repeated > kills * at_once:
        wrong.append(f"{repeated} calls were made again, but at most {kills * at_once} were under way")
    if again := [call for call in expected if made[call] > may[call] and not at_once]:
        wrong.append(f"made again: {', '.join(f'{_named([call])} {made[call]} times' for call in again)}")
    if other := [call for call in made if call not in may]:
        wrong.append(f"no calls of this case: {_named(other)}")
    return Verdict(made, kills, tuple(wrong))


def events(case: str) -> list[dict[str, Any]]:
    """What was written down, in its order."""
    path = folder_of(case) / "calls"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def plan(case: str, *points: Call, what: str = "kill") -> None:
    """Has the process end (or the call ``fail``) at each of these calls, once."""
    folder = folder_of(case) / what
    folder.mkdir(parents=True, exist_ok=True)
    for line, call in points:
        (folder / f"{line}.{call}").touch()


def next_round(case: str) -> None:
    """A person clears the case: its calls count anew, and have other results."""
    folder, past = folder_of(case), round_of(case)
    (folder / "calls").rename(folder / f"calls-{past}")
    (folder / "round").write_text(str(past + 1))


def _named(calls: Collection[Call]) -> str:
    return ", ".join(map(" ".join, calls))
