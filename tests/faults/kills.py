"""Processes of tasks that are killed while they work, many runs at once."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from typing import Any

from tests.faults.rows import Scenario, Table
from tests.faults.stand import Stand
from tests.faults.verdict import Call, calls_of_agent

ALONE = calls_of_agent("alone", 5)
PAIR = calls_of_agent("left", 3) + calls_of_agent("right", 3)
LOOP = [("loop", str(at)) for at in range(1, 41)]
ITEMS = [(f"item{at}", "work") for at in range(200)]
AT_ONCE = 4
CHILDREN = [("children", str(at)) for at in range(1, 11)]


def found(line: str, *values: int) -> str:
    """What an agent answers that has looked up these values."""
    return f"{line} found {list(values)}"


def kills(stand: Stand, table: Table) -> list[Scenario]:
    """A scenario per row; all may run side by side."""

    def killed(name: str, dag_id: str, calls: Collection[Call], at: Collection[Call], task: str, output: Any) -> Scenario:
        case = "".join(letter if letter.isalnum() else "-" for letter in name)

        def scenario() -> None:
            with table.row(name) as row:
                run, view = stand.run(dag_id, case, *at)
                row.check(view.state == "success", f"the run {view.state}")
                row.judge(case, calls, at_once=AT_ONCE if calls is ITEMS else 0)
                row.check(row.kills == len(at), f"only {row.kills} of {len(at)} processes were killed")
                answer = stand.output(run, task)
                row.check(answer == output, f"the answer is {answer!r}")

        return scenario

    def each(what: str, dag_id: str, line: str, task: str) -> list[Scenario]:
        calls = calls_of_agent(line, 5)
        order = [call for at in range(1, 7) for call in ((line, f"M{at}"), (line, f"T{at}"))][:11]
        answer = found(line, 7, 14, 21, 28, 35)
        return [
            killed(f"{what}, killed after {k} finished call{'s' * (k > 1)}", dag_id, calls, [order[k]], task, answer)
            for k in range(1, 11)
        ]

    draw = random.Random(10)
    points = [PAIR[at] for at in draw.sample(range(len(PAIR)), 10)]
    answers = {"left": found("left", 7, 14, 21), "right": found("right", 7, 14, 21)}
    square = sum(range(200))
    scenarios: list[Callable[[], None]] = [
        *each("agent as a task", "fault_agent", "alone", "ask"),
        *each("agent as a node", "fault_agent_node", "as_node", "as_node"),
        *(
            killed(f"two agents side by side, killed in {line} {call}", "fault_pair", PAIR, [(line, call)], "pair", answers)
            for line, call in points
        ),
    ]
    three = [("loop", at) for at in ("7", "25", "39")]
    batch = [(f"item{at}", "work") for at in (20, 90, 170)]
    children = [("children", at) for at in ("2", "6", "10")]
    scenarios += [
        killed("loop of 40 in one task, killed 3 times", "fault_loop", LOOP, three, "finish", "ended after 40"),
        killed(
            "embedded loop of 40, killed 3 times", "fault_loop_embedded", LOOP, three, "fault_loop_embedded", "ended after 40"
        ),
        killed("batch of 200 items, killed 3 times", "fault_batch", ITEMS, batch, "total", square),
        killed("node with 10 children, killed 3 times", "fault_dynamic", CHILDREN, children, "parent", 165),
    ]
    return scenarios
