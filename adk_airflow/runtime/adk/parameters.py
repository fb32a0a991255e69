"""What google-adk does not say of a function whose parameter it finds no value for: where the function is, what there is."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from adk_airflow.runtime import failures
from adk_airflow.runtime.adk.graph import body_of, function_of, static_node

if TYPE_CHECKING:
    from google.adk.workflow import BaseNode

_MISSING = re.compile(r'Missing value for parameter "(?P<parameter>\w+)"')
# What google-adk gives a function besides the keys of the state.
_ALWAYS = ("node_input", "ctx")


def explain_parameter(error: BaseException, root: BaseNode, path: str, keys: Collection[str]) -> None:
    """Adds to google-adk's error of a parameter without a value, as a note, what to do about it; nothing to any other error.

    Args:
        error: What a node failed with.
        root: The outermost workflow.
        path: ADK's path of the node run.
        keys: The keys of the session state.
    """
    found = _MISSING.search(str(error)) if type(error).__name__ == "WorkflowDataError" else None
    if found is None:
        return
    parameter, own = found["parameter"], [str(key) for key in keys if not str(key).startswith(("airflow:", "temp:"))]
    near = difflib.get_close_matches(parameter, [*_ALWAYS, *own], n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    where = place_of_function(root, path)
    at = f"The function is at {where}. " if where else ""
    held = f"which has {', '.join(sorted(own))}" if own else "which is empty"
    failures.add_note(error, f"{at}A parameter is 'node_input', 'ctx' or a key of the state, {held}.{hint}")


def place_of_function(root: BaseNode, path: str) -> str:
    """Where the function is defined that a node run calls, ``file, line 12``; empty where it is no function."""
    _, node = static_node(root, path)
    function: Any = function_of(body_of(node))
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    return f"{code.co_filename}, line {code.co_firstlineno}" if code is not None else ""
