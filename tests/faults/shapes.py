"""Agents of every shape, killed once in each of their calls."""

from __future__ import annotations

import re
from collections import Counter

from tests.faults.rows import Scenario, Table
from tests.faults.stand import Stand
from tests.faults.verdict import Call, judge


def _calls(**lines: str) -> list[Call]:
    return [(line, call) for line, calls in lines.items() for call in calls.split()]


_ITEM = "M1 T1 M2"
SHAPES: dict[str, tuple[str, list[Call]]] = {
    "several calls in one turn": (
        "fault_several_calls",
        _calls(**{"several-T1": "T1", "several-T2": "T2", "several-T3": "T3", "several": "M1 M2 T4 M3"}),
    ),
    "an agent as a tool": ("fault_agent_tool", _calls(asker="M1 M2 T1 M3", helper="M1 T1 M2 T2 M3")),
    "a transfer": ("fault_transfer", _calls(router="M1", clerk="M1 T1 M2 T2 M3")),
    "a SequentialAgent": ("fault_sequence", _calls(first=_ITEM, then=_ITEM)),
    "a ParallelAgent": ("fault_parallel", _calls(here="M1 T1 M2 T2 M3", there="M1 T1 M2 T2 M3")),
    "a LoopAgent": ("fault_loop_agent", _calls(turning="M1 T1 M2 T2 M3 M4 M5")),
    "agents as items of a batch": ("fault_agent_items", _calls(item1=_ITEM, item2=_ITEM, item3=_ITEM)),
    "an agent in a loop": ("fault_agent_loop", _calls(turn1=_ITEM, turn2=_ITEM, turn3=_ITEM)),
    "an agent in an embedded loop": ("fault_agent_loop_embedded", _calls(turn1=_ITEM, turn2=_ITEM, turn3=_ITEM)),
    "agents that a node runs": ("fault_agent_children", _calls(child1=_ITEM, child2=_ITEM, child3=_ITEM)),
    "agents that a node runs at once": ("fault_agent_gathered", _calls(child1=_ITEM, child2=_ITEM, child3=_ITEM)),
    "agents of a nested workflow": ("fault_nested", _calls(inside=_ITEM, after=_ITEM)),
    "agents of an embedded nested workflow": ("fault_nested_embedded", _calls(inside=_ITEM, after=_ITEM)),
}


def shapes(stand: Stand, table: Table) -> list[Scenario]:
    """A scenario per row; all may run side by side."""

    def shape(name: str, dag_id: str, calls: list[Call]) -> Scenario:
        def scenario() -> None:
            with table.row(f"{name}, killed in each call") as row:
                case = dag_id.removeprefix("fault_")
                run, view = stand.run(dag_id, case, *calls)
                row.check(view.state == "success", f"the run {view.state}")
                row.judge(case, calls)
                row.check(row.kills == len(calls), f"only {row.kills} of {len(calls)} processes were killed")
                saved = stand.artifacts(run)
                made = judge(case, calls).made
                most = {f"{line}-{call[1:]}.txt": made[line, call] for line, call in calls if call.startswith("T")}
                versions = Counter(name for name, _, _ in saved)
                row.check(versions.keys() == most.keys(), f"the artifacts are {sorted(versions)}")
                # One whose call was under way at a kill may be there more often: it was saved by each.
                often = {name: count for name, count in versions.items() if count > max(1, most[name] - 1)}
                row.check(not often, f"artifacts were saved again: {often}")
                said = set(re.findall(r"[0-9a-f]{32}", str(re.findall(r"found \[[^]]*\]", str(stand.outputs(run))))))
                row.check(said <= {text for _, _, text in saved}, "the answers name values of which no artifact was kept")

        return scenario

    return [shape(name, dag_id, calls) for name, (dag_id, calls) in SHAPES.items()]
