"""How `pytest -n` divides the tests among its processes."""

from __future__ import annotations

from typing import Any

import pytest

# On a real scheduler: one after the other, and one Airflow for those that can share it.
_SCHEDULER = (
    "tests/local/",
    "tests/preload/test_real_tasks.py",
    "tests/test_real_runs.py",
    "tests/dags/test_scheduled.py",
    "tests/toolbox/test_toolbox_real.py",
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The tests of a file run in one process, in their order, and all those with a scheduler too."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return "scheduler" if file.startswith(_SCHEDULER) else file

    return ByFile(config, log)
