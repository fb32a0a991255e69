"""Measures what adk-airflow costs beside plain Airflow and plain ADK: ``make bench``, or ``python -m benchmarks``.

    python -m benchmarks [--only plans parse runs local celery] [--rounds 5]

Each row is a ratio measured in one run: both sides run alternately, and the bound is for the median of the rounds. The table is
printed, and all figures are written to ``benchmarks/results.json``. Each part has a process of its own. ``celery`` needs
``apache-airflow-providers-celery`` and a ``redis-server``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from benchmarks import celery, parse, plans, runs, tasks
from benchmarks.measure import Row, table

PARTS = {
    "plans": plans.rows,
    "parse": parse.rows,
    "runs": runs.rows,
    "local": lambda rounds: tasks.chain("LocalExecutor", rounds),
    "celery": lambda rounds: tasks.chain("CeleryExecutor", rounds),
}
RESULTS = Path(__file__).with_name("results.json")


def main() -> None:
    """Measures the parts and shows what they say."""
    parser = argparse.ArgumentParser(description="What adk-airflow costs beside plain Airflow and plain ADK.")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="these parts")
    parser.add_argument("--rounds", type=int, default=5, help="how often each side is measured")
    parser.add_argument("--as-json", metavar="FILE", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.as_json:
        rows = [row for part in options.only for row in PARTS[part](options.rounds)]
        options.as_json.write_text(json.dumps([row.as_json() for row in rows]))
        return
    found: list[Row] = []
    for part in options.only:
        if part == "celery" and (missing := celery.missing()):
            print(f"celery: not measured, {missing}", file=sys.stderr)
            continue
        print(f"measuring: {part}", file=sys.stderr)
        found += _in_a_process_of_its_own(part, options.rounds)
    packages = ("adk-airflow", "apache-airflow", "google-adk")
    report = {
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "versions": {name: version(name) for name in packages},
        "rows": [row.as_json() for row in found],
    }
    RESULTS.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(table(found))


def _in_a_process_of_its_own(part: str, rounds: int) -> list[Row]:
    path = RESULTS.with_suffix(".part")
    command = [sys.executable, "-m", "benchmarks", "--only", part, "--rounds", str(rounds), "--as-json", str(path)]
    try:
        subprocess.run(command, check=True, stdout=sys.stderr)
        return [Row.of_json(data) for data in json.loads(path.read_text())]
    finally:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
