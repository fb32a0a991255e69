"""Each private name of google-adk that this package touches: that it is there, and does what is relied on.

When one of these fails after an update of google-adk, `adk_airflow_toolbox/adk_private.py` is the one place to change.
"""

from __future__ import annotations

import asyncio
import inspect
from importlib.metadata import version
from typing import Any

import pytest
from adk_airflow_toolbox.adk_private import keep_no_tools, passes_filter
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset

ADK = f"google-adk {version('google-adk')}"


class Counting(BaseToolset):
    """Makes its one tool anew for each question."""

    async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
        return [BaseTool(name="count", description="Counts.")]


def asked_twice(toolset: BaseToolset) -> bool:
    first, second = (asyncio.run(toolset.get_tools_with_prefix()) for _ in range(2))
    return first[0] is not second[0]


def test_a_toolset_keeps_its_tools_unless_told_otherwise() -> None:
    toolset = Counting()
    assert vars(toolset).get("_use_invocation_cache") is True, (
        f"{ADK}: BaseToolset has no _use_invocation_cache; a ConnectionToolboxToolset that is closed and opened again within"
        " one invocation would hand out tools of the closed session"
    )
    assert not asked_twice(toolset)
    keep_no_tools(toolset)
    assert asked_twice(toolset)


def test_the_filter_of_a_toolset_takes_a_tool_and_a_context() -> None:
    method = getattr(BaseToolset, "_is_tool_selected", None)
    assert method is not None, f"{ADK}: BaseToolset has no _is_tool_selected; tool_filter would have no effect"
    assert list(inspect.signature(method).parameters) == ["self", "tool", "readonly_context"], ADK


@pytest.mark.parametrize(
    ("tool_filter", "passes"), [(None, True), (["count"], True), (["other"], False), (lambda tool, context: False, False)]
)
def test_the_filter_is_names_or_a_predicate(tool_filter: Any, passes: bool) -> None:
    tool = BaseTool(name="count", description="Counts.")
    assert passes_filter(Counting(tool_filter=tool_filter), tool, None) is passes
