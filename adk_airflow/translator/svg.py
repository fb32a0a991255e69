"""Draws a Plan as a picture: one self-contained SVG file, without Airflow and without ADK."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

from rich.cells import cell_len

from adk_airflow.translator.layers import Layout, Point, arrange
from adk_airflow.translator.plan import Plan, PlannedTask
from adk_airflow.translator.show import COLORS, by_group, color_of, colored_kinds, notes_of, subtitle_of

MARGIN = 24.0
TITLE = 40.0
LEGEND = 44.0
FRAME = 16.0
FRAME_TITLE = 30.0
BOX_HEIGHT = 48.0
COLUMN_GAP = 56.0
NAME_SIZE, SMALL_SIZE = 13.0, 11.0
# A letter of a monospaced font, in its font size: what makes widths certain without measuring a font.
LETTER = 0.61
START = "__START__"  # ADK's own name for it: a node may be named START

_STYLE = """
text { font-family: ui-monospace, "SF Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #111827; }
.name { font-size: 13px; font-weight: 600; } .small { font-size: 11px; fill: #374151; }
.label { font-size: 11px; fill: #9a3412; stroke: #ffffff; stroke-width: 5px; paint-order: stroke; }
.arrow { fill: none; stroke: #6b7280; stroke-width: 1.4; } .frame { fill: #00000008; stroke: #9ca3af; stroke-dasharray: 5 3; }
""".strip()


@dataclass
class _Unit:
    """A box of the drawing: START, a task, or a group, which has a drawing of its own inside."""

    name: str
    task: PlannedTask | None = None
    units: list[_Unit] = field(default_factory=list)
    layout: Layout | None = None
    edges: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    size: Point = (0.0, 0.0)


def as_svg(plan: Plan) -> str:
    """The plan as SVG: boxes coloured by kind, frames around task groups, routes on the arrows, details as tooltips.

    An arrow to or from a task in a group ends at the group's frame.
    """
    root = _Unit(plan.workflow, units=_units(plan.tasks, 0))
    root.units.insert(0, _Unit(START))
    for task in plan.tasks:
        if task.starts:
            root.edges.setdefault((START, task.task_id.split(".")[0]), [])
        for before in task.upstream:
            _connect(root, before.task_id.split("."), task.task_id.split("."), before.label)
    _arrange(root)
    assert root.layout is not None
    title = f"{plan.workflow}: {len(plan.tasks)} task{'s' if len(plan.tasks) != 1 else ''}, mode {plan.mode}"
    legend = list(_legend(plan, MARGIN, MARGIN + TITLE + root.layout.height + LEGEND - 14))
    width = max(root.layout.width, _width(title, 15.0), _legend_width(plan)) + 2 * MARGIN
    height = root.layout.height + 2 * MARGIN + TITLE + LEGEND
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
            f' viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label={quoteattr(title)}>',
            f"<style>{escape(_STYLE)}</style>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
            '<path d="M0 0L8 4L0 8z" fill="#6b7280"/></marker></defs>',
            f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
            _text(MARGIN, MARGIN + 12, title, "name", 'style="font-size:15px"'),
            *_draw(root, (MARGIN, MARGIN + TITLE), plan.result),
            *legend,
            "</svg>",
        ]
    )


def _units(tasks: Sequence[PlannedTask], depth: int) -> list[_Unit]:
    return [
        _Unit(name, units=_units(members, depth + 1)) if name else _Unit(members[0].task_id.split(".")[-1], members[0])
        for name, members in by_group(tasks, depth)
    ]


def _connect(root: _Unit, source: list[str], target: list[str], label: str) -> None:
    """Adds an arrow where the two paths part: between tasks, or frames around them."""
    unit = root
    while source[0] == target[0]:
        unit = next(inner for inner in unit.units if inner.name == source[0] and inner.units)
        source, target = source[1:], target[1:]
    labels = unit.edges.setdefault((source[0], target[0]), [])
    if label and label not in labels:
        labels.append(label)


def _arrange(unit: _Unit) -> None:
    """Gives a unit and all units inside their sizes and places."""
    if unit.task is not None:
        # Room for the stack that a mapped task is drawn as.
        stack = 8.0 if unit.task.kind == "item" else 0.0
        width = max(_width(unit.name, NAME_SIZE), _width(subtitle_of(unit.task), SMALL_SIZE)) + 24
        unit.size = (width + stack, BOX_HEIGHT)
    elif not unit.units:
        unit.size = (_width("START", NAME_SIZE) + 24, 30.0)
    else:
        for inner in unit.units:
            _arrange(inner)
        room = {edge: max(COLUMN_GAP, _width(", ".join(labels), SMALL_SIZE) + 64) for edge, labels in unit.edges.items()}
        unit.layout = arrange({inner.name: inner.size for inner in unit.units}, room)
        width = max(unit.layout.width, _width(unit.name, NAME_SIZE)) + 2 * FRAME
        unit.size = (width, unit.layout.height + FRAME + FRAME_TITLE)


def _draw(unit: _Unit, at: Point, result: str) -> Iterator[str]:
    """What is inside a unit, arrows first, from its top left corner ``at``."""
    assert unit.layout is not None
    labels = []
    for edge, points in unit.layout.routes.items():
        moved = [(x + at[0], y + at[1]) for x, y in points]
        yield f'<path class="arrow" marker-end="url(#head)" d="{_path(moved)}"/>'
        if unit.edges[edge]:
            (x0, y0), (x1, y1) = moved[1], moved[2]
            text = ", ".join(unit.edges[edge])
            labels.append(_text((x0 + x1) / 2, (y0 + y1) / 2 + 4, text, "label", 'text-anchor="middle"'))
    for inner in unit.units:
        x, y = unit.layout.boxes[inner.name][0] + at[0], unit.layout.boxes[inner.name][1] + at[1]
        if inner.task is not None:
            yield from _task_box(inner.task, inner.name, (x, y), inner.size, bold=inner.task.task_id == result)
        elif inner.units:
            yield _rect((x, y), inner.size, 'class="frame" rx="8"')
            yield _text(x + FRAME, y + 19, inner.name, "name")
            yield from _draw(inner, (x + FRAME, y + FRAME_TITLE), result)
        else:
            yield _rect((x, y), inner.size, 'rx="15" fill="#ffffff" stroke="#111827"')
            yield _text(x + inner.size[0] / 2, y + 20, "START", "name", 'text-anchor="middle"')
    yield from labels


def _task_box(task: PlannedTask, name: str, at: Point, size: Point, *, bold: bool) -> Iterator[str]:
    fill, border = COLORS[color_of(task)]
    look = f'rx="6" fill="{fill}" stroke="{border}" stroke-width="{3 if bold else 1.3}"'
    stack = 8.0 if task.kind == "item" else 0.0
    details = [task.task_id, f"trigger rule: {task.trigger_rule}", *notes_of(task), task.description]
    if bold:
        details.insert(1, "returns the workflow's output")
    yield f"<g><title>{escape(chr(10).join(detail for detail in details if detail))}</title>"
    box = (size[0] - stack, size[1])
    for step in (stack, stack / 2) if stack else ():
        yield _rect((at[0] + step, at[1] - step), box, look)
    yield _rect(at, box, look)
    yield _text(at[0] + 12, at[1] + 21, name, "name")
    yield _text(at[0] + 12, at[1] + 38, subtitle_of(task), "small")
    yield "</g>"


def _legend(plan: Plan, x: float, y: float) -> Iterator[str]:
    for kind in colored_kinds(plan):
        fill, border = COLORS[kind]
        yield _rect((x, y - 10), (14.0, 12.0), f'rx="3" fill="{fill}" stroke="{border}"')
        yield _text(x + 20, y, kind, "small")
        x += _width(kind, SMALL_SIZE) + 40
    yield _text(x, y, "bold border: the workflow's output", "small")


def _legend_width(plan: Plan) -> float:
    kinds = sum(_width(kind, SMALL_SIZE) + 40 for kind in colored_kinds(plan))
    return kinds + _width("bold border: the workflow's output", SMALL_SIZE)


def _path(points: Sequence[Point]) -> str:
    """Level across columns, a curve between them."""
    parts = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for number, (x, y) in enumerate(points[1:], start=1):
        before_x, before_y = points[number - 1]
        middle = (before_x + x) / 2
        level = abs(before_y - y) < 0.05
        parts.append(f"L{x:.1f} {y:.1f}" if level else f"C{middle:.1f} {before_y:.1f} {middle:.1f} {y:.1f} {x:.1f} {y:.1f}")
    return "".join(parts)


def _rect(at: Point, size: Point, attributes: str) -> str:
    return f'<rect x="{at[0]:.1f}" y="{at[1]:.1f}" width="{size[0]:.1f}" height="{size[1]:.1f}" {attributes}/>'


def _text(x: float, y: float, text: str, css_class: str, attributes: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{css_class}" {attributes}>{escape(text)}</text>'


def _width(text: str, size: float) -> float:
    return cell_len(text) * size * LETTER
