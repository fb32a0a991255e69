"""MCP Toolbox servers as Airflow connections, their tools in Google ADK workflows.

A ``ConnectionToolboxToolset`` gives an agent the tools of the server that a connection names; its ``tool(...)``, or a
``ToolsetTool`` of any other ADK toolset, is one tool as a fixed step of a graph. The names below are imported when they are
first used, so that importing this package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adk_airflow_toolbox.errors import ToolboxConfigError as ToolboxConfigError
    from adk_airflow_toolbox.errors import ToolboxUnavailableError as ToolboxUnavailableError
    from adk_airflow_toolbox.errors import ToolNotFoundError as ToolNotFoundError
    from adk_airflow_toolbox.hook import ToolboxHook as ToolboxHook
    from adk_airflow_toolbox.tool import ToolsetTool as ToolsetTool
    from adk_airflow_toolbox.toolset import ConnectionToolboxToolset as ConnectionToolboxToolset

__version__ = "0.1.0"

_MODULE_OF = {
    "ConnectionToolboxToolset": "toolset",
    "ToolNotFoundError": "errors",
    "ToolboxConfigError": "errors",
    "ToolboxHook": "hook",
    "ToolboxUnavailableError": "errors",
    "ToolsetTool": "tool",
}

__all__ = [
    "ConnectionToolboxToolset",
    "ToolNotFoundError",
    "ToolboxConfigError",
    "ToolboxHook",
    "ToolboxUnavailableError",
    "ToolsetTool",
]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
