"""Shows a Plan as text or as a Mermaid flowchart: pure functions of the Plan, without Airflow and without ADK."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from adk_airflow.translator import kinds
from adk_airflow.translator.names import dag_id_fault
from adk_airflow.translator.plan import Plan, PlannedTask, argument_text


def as_text(plan: Plan) -> str:
    """The plan for a terminal: a line per task, what is special about it below, then the warnings."""
    count = f"{len(plan.tasks)} task{'s' if len(plan.tasks) != 1 else ''}"
    lines = [f"Workflow {plan.workflow}, mode {plan.mode}: {count}"]
    lines += [plan.description.strip().splitlines()[0]] if plan.description.strip() else []
    rows = [("TASK", "KIND", "TRIGGER RULE", "UPSTREAM")]
    rows += [(task.task_id, kind_of(task), task.trigger_rule, _upstream(task)) for task in plan.tasks]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    table = [("  ".join([*map(str.ljust, row, widths), row[3]])).rstrip() for row in rows]
    lines += ["", table[0]]
    for task, line in zip(plan.tasks, table[1:], strict=True):
        lines += [line, *(f"    {note}" for note in notes_of(task))]
    lines += ["", f"Output: what {plan.result} returns"]
    if plan.max_active_tasks is not None:
        lines.append(f"At most {plan.max_active_tasks} tasks of a run at once: the workflow's max_concurrency")
    fault = dag_id_fault(plan.workflow)
    if plan.needs or fault:
        lines += ["", "Before it runs, Airflow needs:", *(f"* {need}" for need in plan.needs)]
        lines += [f"* another id for its DAG: {fault}"] if fault else []
    if plan.warnings:
        lines += ["", "What can differ from one ADK process:", *(f"* {warning}" for warning in plan.warnings)]
    else:
        lines += ["", "What can differ from one ADK process: nothing that is known."]
    return "\n".join(lines)


def as_mermaid(plan: Plan) -> str:
    """The plan as a Mermaid flowchart, left to right: groups are subgraphs, mapped tasks have double borders."""
    ids = {task.task_id: f"t{number}" for number, task in enumerate(plan.tasks)}
    lines = ["flowchart LR", '  START(["START"])']
    lines += _mermaid_boxes(plan.tasks, ids, depth=0)
    for task in plan.tasks:
        if task.starts:
            lines.append(f"  START --> {ids[task.task_id]}")
        for before in task.upstream:
            label = f'|"{_mermaid_text(before.label)}"|' if before.label else ""
            lines.append(f"  {ids[before.task_id]} -->{label} {ids[task.task_id]}")
    for kind in colored_kinds(plan):
        fill, border = kinds.of_name(kind).colors
        members = ",".join(ids[task.task_id] for task in plan.tasks if color_of(task) == kind)
        lines.append(f"  classDef adk_{kind} fill:{fill},stroke:{border},color:#111827")
        lines.append(f"  class {members} adk_{kind}")
    return "\n".join(lines)


def kind_of(task: PlannedTask) -> str:
    """ADK's kind of the node that the task runs, or ``region`` or ``result`` for tasks that no single node stands for."""
    return task.kind if task.kind in ("region", "result") else task.node_kind


def color_of(task: PlannedTask) -> str:
    """The name of the kind whose colours the task has."""
    return kinds.of_name(kind_of(task)).name


def colored_kinds(plan: Plan) -> list[str]:
    """The kinds that the plan uses, in the order of ``KINDS``."""
    used = {color_of(task) for task in plan.tasks}
    return [kind.name for kind in kinds.KINDS if kind.name in used]


def notes_of(task: PlannedTask) -> list[str]:
    """What is special about the task, a line each: mapped, batched, embedded and why, arguments that the user gave."""
    notes = kinds.of_task(task).notes(task)
    if task.arguments:
        notes.append("arguments: " + ", ".join(f"{key}={_shown(value)}" for key, value in task.arguments.items()))
    return notes


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, str) else argument_text(value)


def _upstream(task: PlannedTask) -> str:
    names = ["START"] if task.starts else []
    names += [before.task_id + (f" [{before.label}]" if before.label else "") for before in task.upstream]
    return ", ".join(names)


def _mermaid_boxes(tasks: Sequence[PlannedTask], ids: dict[str, str], depth: int) -> list[str]:
    """The boxes of tasks that share the first ``depth`` groups, subgraphs for the groups inside."""
    lines: list[str] = []
    indent = "  " * (depth + 1)
    for name, members in by_group(tasks, depth):
        if name:
            first = ids[members[0].task_id]
            lines.append(f'{indent}subgraph {first}_group["{_mermaid_text(name)}"]')
            lines += _mermaid_boxes(members, ids, depth + 1)
            lines += [f"{indent}end", f"{indent}style {first}_group fill:#f8fafc,stroke:#94a3b8,color:#111827"]
        else:
            task = members[0]
            name, subtitle = task.task_id.split(".")[-1], kinds.of_task(task).subtitle(task)
            text = f"{_mermaid_text(name)}<br/><small>{_mermaid_text(subtitle)}</small>"
            left, right = ("[[", "]]") if task.kind == "item" else ("[", "]")
            lines.append(f'{indent}{ids[task.task_id]}{left}"{text}"{right}')
    return lines


def by_group(tasks: Iterable[PlannedTask], depth: int) -> list[tuple[str, list[PlannedTask]]]:
    """Splits tasks that share their first ``depth`` groups: (group, its tasks), or ("", [task]) for one in no further group."""
    found: dict[str, tuple[str, list[PlannedTask]]] = {}
    for task in tasks:
        groups = task.task_id.split(".")[:-1]
        if len(groups) > depth:
            found.setdefault(f"{groups[depth]}.", (groups[depth], []))[1].append(task)
        else:
            found[task.task_id] = ("", [task])
    return list(found.values())


def _mermaid_text(text: str) -> str:
    """Mermaid's own entities: a quote would end the label, a backtick start Markdown, a tag be rendered."""
    return "".join(f"#{ord(char)};" if char in '#"`<>&' else char for char in " ".join(text.split()))
