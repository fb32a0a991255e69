"""Without the extra ``a2a`` of google-adk: lets what cannot be imported fail at once.

ADK tries to import ``google.adk.agents.remote_a2a_agent`` for every node that it builds, also for those made at run time.
Python remembers what it imported, not what it failed to: without the extra each try runs modules of ADK and searches all of
``sys.path``, for 1 to 15 ms. With this the same error is raised without the search.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

NEEDS_A2A = "google.adk.agents.remote_a2a_agent"


class _MissingA2a(MetaPathFinder):
    """Finds nothing, and says for the one module why it cannot be imported; searches anew when ``sys.path`` has changed."""

    def __init__(self) -> None:
        self._searched: tuple[str, ...] | None = None
        self._missing = False

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != NEEDS_A2A:
            return None
        if self._searched != (searched := tuple(sys.path)):
            self._searched, self._missing = searched, find_spec("a2a") is None
        if self._missing:
            raise ModuleNotFoundError("No module named 'a2a'", name="a2a")
        return None


_finder = _MissingA2a()


def fail_at_once() -> None:
    """From now on the import of what needs ``a2a`` fails at once while there is no ``a2a``, with Python's own error."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
