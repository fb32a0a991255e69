"""The private names of google-adk that this package needs, each with the reason; tests/test_adk_private.py checks them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from google.adk.agents.readonly_context import ReadonlyContext
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.base_toolset import BaseToolset


def keep_no_tools(toolset: BaseToolset) -> None:
    """Lets ``get_tools_with_prefix`` ask the toolset each time.

    ADK keeps the tools of an invocation in the toolset, and would go on handing them out when the toolset was closed and
    opened again meanwhile.
    """
    toolset._use_invocation_cache = False


def passes_filter(toolset: BaseToolset, tool: BaseTool, readonly_context: ReadonlyContext | None) -> bool:
    """Whether the toolset's ``tool_filter``, a predicate or a list of names, lets the tool through."""
    return toolset._is_tool_selected(tool, readonly_context)
