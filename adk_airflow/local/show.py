"""What the commands print: the progress of a run, its report, its tasks; on a terminal or into a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from adk_airflow.local.run import RunView, TaskView

_STYLES = {
    "success": "green",
    "failed": "red",
    "upstream_failed": "red",
    "skipped": "magenta",
    "running": "cyan",
}
_WIDTH_OF_A_FILE = 120


def make_console() -> Console:
    """A console for standard output; wide enough for the table when it is no terminal."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_WIDTH_OF_A_FILE)


class RunProgress:
    """Shows a run while it goes on: a bar over all tasks on a terminal, a line per finished task everywhere.

    Where there is no terminal, a mapped task also gets a line for each further quarter of its items.
    """

    def __init__(self, console: Console, bar: Progress, bar_id: TaskID) -> None:
        self._console = console
        self._bar = bar
        self._bar_id = bar_id
        self._done: set[str] = set()
        self._quarters: dict[str, int] = {}

    def update(self, view: RunView) -> None:
        """Shows what has changed since the last look."""
        for task in view.tasks:
            if task.task_id in self._done:
                continue
            # A mapped task is one unfinished instance until Airflow has expanded it.
            if task.is_finished:
                self._done.add(task.task_id)
                self._console.print(task_line(task))
            elif task.is_mapped and not self._console.is_terminal:
                self._say_quarter(task)
        running = [task.task_id for task in view.tasks if "running" in task.states]
        self._bar.update(
            self._bar_id,
            completed=sum(task.finished for task in view.tasks),
            total=sum(max(1, len(task.instances)) for task in view.tasks),
            description=escape(", ".join(running) or view.state),
        )

    def _say_quarter(self, task: TaskView) -> None:
        quarter = 4 * task.finished // len(task.instances)
        if quarter > self._quarters.get(task.task_id, 0):
            self._quarters[task.task_id] = quarter
            self._console.print(f"  {task.task_id:<28} {task.finished}/{len(task.instances)} done")


@contextmanager
def run_progress(console: Console) -> Iterator[RunProgress]:
    """A ``RunProgress`` whose bar stands below everything that is printed meanwhile."""
    with Progress(
        TextColumn("  "),
        BarColumn(bar_width=40),
        MofNCompleteColumn(),
        TextColumn("tasks"),
        TimeElapsedColumn(),
        TextColumn("[cyan]{task.description}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        yield RunProgress(console, bar, bar.add_task("queued", total=None))


def task_line(task: TaskView) -> str:
    """One task with its state and seconds, in rich markup."""
    states = task.states
    main = next((state for state in _STYLES if state in states and state != "success"), "success")
    seconds = f"{task.seconds:6.1f} s" if task.seconds is not None else ""
    return f"  {escape(task.task_id):<28} [{_STYLES[main]}]{task.text:<28}[/] {seconds}".rstrip()


def show_report(console: Console, output: Any) -> None:
    """Prints what a workflow gave: a dict with ``table``, ``summary`` and ``artifacts``, or else as JSON."""
    if not isinstance(output, dict) or not isinstance(output.get("table"), list):
        if output is not None:
            text = json.dumps(output, ensure_ascii=False, indent=1, default=str)
            console.print(text if len(text) <= 4000 else f"{text[:4000]} ...", markup=False)
        return
    rows = [row for row in output["table"] if isinstance(row, dict)]
    if rows:
        console.print(_table(rows))
    else:
        console.print("The report has no rows.")
    summary = output.get("summary")
    if isinstance(summary, dict):
        for line in summary_lines(summary):
            console.print(line, markup=False)
    skipped = output.get("skipped")
    if isinstance(skipped, list) and skipped:
        names = ", ".join(str(item.get("document", item) if isinstance(item, dict) else item) for item in skipped)
        console.print(f"Skipped: {names}", markup=False)
    artifacts = output.get("artifacts")
    if isinstance(artifacts, dict) and artifacts:
        parts = (f"{name} ({where if isinstance(where, str) else f'version {where}'})" for name, where in artifacts.items())
        console.print(f"Artifacts: {', '.join(parts)}", markup=False)


def summary_lines(summary: dict[str, Any]) -> list[str]:
    """The report's summary and the index's counts, a sentence each."""
    lines = []
    index = summary.get("index")
    if isinstance(index, dict):
        counts = ", ".join(f"{index[name]} {name}" for name in ("added", "changed", "removed", "reused") if name in index)
        lines.append(f"Index: {index.get('documents', '?')} documents: {counts or 'no counts'}")
    if "questions" in summary:
        parts = [f"{summary['questions']} questions"]
        parts += [f"{summary[name]} {name.replace('_', ' ')}" for name in ("complete", "needs_review") if name in summary]
        if summary.get("with_expected"):
            found = summary.get("expected_found", "?")
            parts.append(f"the expected document found for {found} of {summary['with_expected']}")
        lines.append(f"Answers: {', '.join(parts)}; route: {summary.get('route', '?')}")
    return lines


def _table(rows: list[dict[str, Any]]) -> Table:
    columns = [name for name in dict.fromkeys(key for row in rows for key in row) if name != "passage"]
    table = Table(show_lines=False, header_style="bold")
    for name in columns:
        number = all(isinstance(row.get(name), int | float | None) for row in rows)
        title = {"document": "best document", "rank_of_expected": "expected at"}.get(name, name)
        table.add_column(title, justify="right" if number else "left", overflow="fold", no_wrap=number)
    for row in rows:
        table.add_row(*(escape(_cell(row.get(name))) for name in columns))
    return table


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.2f}"
    return " ".join(str(value).split())
