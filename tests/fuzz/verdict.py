"""Says whether the three ways agree on a workflow and, when they do not, which documented difference it is.

ADK's own result may depend on how long nodes take. So a run as tasks is right when it gives, part by part, what ADK gives in
some timing, and a difference is put down to timing only where the graph allows for it. What no timing gives must vanish
when the cause is taken out of the workflow: the state keys that parallel branches share, the join whose runs are paired, or
``max_concurrency``, which makes of the order of the runs one that no timing changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.fuzz.graphs import Flow, Loop, Node, change, everywhere, without
from tests.fuzz.shape import FAILURE, PAIRING, RUN_ORDER, STATE, Shape, written
from tests.fuzz.ways import Result, Timing, run_in_adk, run_in_airflow

# The verdicts besides AGREED and UNSTABLE are differences of docs/differences.md.
AGREED = "agreed"
UNSTABLE = "ADK differs between two runs"
IN_PARTS = ", in parts"
RANDOM_TIMINGS = 8


@dataclass(frozen=True)
class Verdict:
    """``kind`` is AGREED, UNSTABLE, a documented difference, or empty for a disagreement; ``details`` say what differs."""

    kind: str
    details: tuple[str, ...] = ()


def judge(flow: Flow) -> Verdict:
    """Runs the workflow three ways and compares."""
    adk = run_in_adk(flow)
    if run_in_adk(flow).differs_from(adk):
        return Verdict(UNSTABLE)
    embedded = run_in_airflow(flow, "embedded")
    if embedded.differs_from(adk):
        return Verdict("", _lines("embedded", adk, embedded))
    tasks = run_in_airflow(flow, "tasks")
    if not tasks.differs_from(adk):
        return Verdict(AGREED)
    return Verdict(documented(flow, adk, tasks), _lines("tasks", adk, tasks))


def documented(flow: Flow, adk: Result, tasks: Result) -> str:
    """Which documented difference explains that a run as tasks gave ``tasks`` and ADK ``adk``; nothing when none does."""
    shape = Shape(flow)
    kind = _by_timing(shape, adk, tasks)
    if kind:
        return kind
    if STATE in shape.warnings and (keys := shape.shared_keys()) and judge(_without_state(flow, keys)).kind:
        return STATE
    if PAIRING in shape.warnings:
        joins = shape.paired_joins()
        rest = without(flow, joins | flow.after(joins))
        if rest.nodes and judge(rest).kind:
            return PAIRING
    order = next((kind for kind in (PAIRING, RUN_ORDER, STATE) if kind in shape.warnings), "")
    if flow.at_once is not None and order and judge(replace(flow, at_once=None)).kind:
        return order
    return ""


def _lines(way: str, adk: Result, got: Result) -> tuple[str, ...]:
    return tuple(
        f"{way}: {part}:\n    ADK  {adk.parts.get(part, '-')}\n    here {got.parts.get(part, '-')}"
        for part in got.differs_from(adk)
    )


def _by_timing(shape: Shape, adk: Result, tasks: Result) -> str:
    """The documented difference that explains why ADK gives this result in another timing, or nothing."""
    if failed := shape.units(tasks.failed):
        fits = FAILURE in shape.warnings and any(not _unlike(shape, unit, failed, tasks) for unit in sorted(failed))
        return FAILURE if fits else ""
    kind = next((kind for kind in (PAIRING, RUN_ORDER) if kind in shape.warnings), STATE if shape.shared_keys() else "")
    if not kind:
        return ""
    seen = [adk, run_in_adk(shape.flow, Timing(shape.ends()))]
    if not seen[-1].differs_from(tasks):
        return kind
    seen.append(run_in_adk(shape.flow, Timing(shape.ends(), rounds=True)))
    seen += [run_in_adk(shape.flow, Timing(seed=seed)) for seed in range(RANDOM_TIMINGS)]
    names = {*tasks.parts, *adk.parts}
    found = all(any(one.parts.get(name) == tasks.parts.get(name) for one in seen) for name in names)
    return kind + IN_PARTS if found else ""


def _unlike(shape: Shape, last: str, failed: set[str], tasks: Result) -> list[str]:
    """What differs from an ADK run in which all that does not depend on a failure ends before the unit ``last`` fails.

    Other units that failed beside it are left out of the comparison, and so are the items of a parallel worker that failed:
    they are tasks, of which those that come after the failure run too.
    """
    others = {name for name, unit in shape.unit_of.items() if unit in failed and unit != last}
    items = {name for name, unit in shape.unit_of.items() if unit == last and unit in shape.mapped}
    adk = run_in_adk(
        change(shape.flow, lambda node: _silent(node) if node.name in others else replace(node, limit=None)),
        Timing(shape.ends(last=last, failed=failed)),
    )
    nodes = [inner for top in shape.flow.nodes for inner in everywhere(top) if inner.name in others | items]
    keys = {f"state {key}" for node in nodes for inner in everywhere(node) for key in written(inner)}
    paths = tuple(f"outputs {shape.flow.name}/{shape.path_of[name]}/" for name in others | items)
    return [
        part
        for part in tasks.differs_from(adk)
        if part not in keys and not f"{part}/".startswith(paths) and not (part == "error" and others)
    ]


def _silent(node: Node) -> Node:
    return node if node.kind == "join" else Node(node.name, output=("value", None))


def _without_state(flow: Flow, keys: set[str]) -> Flow:
    """The workflow in which no node reads or writes the keys."""

    def alter(node: Node) -> Node:
        if node.kind == "wait" and not keys.isdisjoint(written(node)):
            return Node(node.name)
        if isinstance(node.route, Loop) and not keys.isdisjoint(written(replace(node, writes=()))):
            node = replace(node, route=("value", node.route.done))
        return replace(
            node,
            reads=tuple(key for key in node.reads if key not in keys),
            writes=tuple(write for write in node.writes if write.key not in keys),
        )

    return change(flow, alter)
