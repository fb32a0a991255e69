"""Writes ``adk_airflow/preload.txt``: the libraries that real tasks import, found on a real scheduler without the preload.

    python -m tests.preload

Of what the tasks imported only what is needed to get the rest is listed: importing a module imports others.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from adk_airflow.preload import LIST
from tests.preload.observed import imports_of_real_tasks

HEADER = """\
# The libraries that nodes import, in the order in which tasks import them; those that others import are left out.
# Written by `python -m tests.preload`; do not edit.
"""

# What a process that forks tasks has imported anyway.
BASELINE = "import airflow.sdk.execution_time.task_runner, airflow.sdk.execution_time.supervisor"

IMPORT = """
import importlib, json, sys
began = []
for name in json.load(sys.stdin):
    if name not in sys.modules:
        try:
            importlib.import_module(name)
        except ImportError:  # an alias
            continue
        began.append(name)
print(json.dumps([began, list(sys.modules)]))
"""


def imported(names: Iterable[str]) -> tuple[list[str], set[str]]:
    """Imports modules in a new process: those that the others before them had not imported, and all that are there then."""
    script = f"{BASELINE}\n{IMPORT}"
    done = subprocess.run(
        [sys.executable, "-c", script], input=json.dumps(list(names)), stdout=subprocess.PIPE, text=True, check=True
    )
    began, there = json.loads(done.stdout.splitlines()[-1])
    return began, set(there)


def needed(names: Sequence[str]) -> list[str]:
    """Those whose import imports all the others, in their order."""
    in_order, everything = imported(names)
    from_the_end, _ = imported(reversed(in_order))
    few = [name for name in in_order if name in from_the_end]
    missing = everything - imported(few)[1]
    return [name for name in in_order if name in from_the_end or name in missing]


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="preload-") as folder:
        found = imports_of_real_tasks(Path(folder), preload=False)
    names = dict.fromkeys(name for modules in found.values() for name in modules)
    few = needed(list(names))
    LIST.write_text(HEADER + "".join(f"{name}\n" for name in few), encoding="utf-8")
    print(f"{len(names)} modules are imported by {len(found)} tasks; {len(few)} of them import the others: {LIST}")


if __name__ == "__main__":
    main()
