"""Gemini API and Vertex AI as Airflow connections, for ADK agents that name nothing but a model.

The names below are imported when they are first used, so that importing this package (a DAG file may) costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adk_airflow_google_genai.errors import GoogleGenAIConnectionError as GoogleGenAIConnectionError
    from adk_airflow_google_genai.hook import GoogleGenAIHook as GoogleGenAIHook
    from adk_airflow_google_genai.hook import GoogleGenAIVertexHook as GoogleGenAIVertexHook
    from adk_airflow_google_genai.llm import make_llm as make_llm
    from adk_airflow_google_genai.memory import memory_service as memory_service
    from adk_airflow_google_genai.search import VertexAiSearchConnectionTool as VertexAiSearchConnectionTool

__version__ = "0.1.0"

_MODULE_OF = {
    "GoogleGenAIConnectionError": "errors",
    "GoogleGenAIHook": "hook",
    "GoogleGenAIVertexHook": "hook",
    "VertexAiSearchConnectionTool": "search",
    "make_llm": "llm",
    "memory_service": "memory",
}

__all__ = [
    "GoogleGenAIConnectionError",
    "GoogleGenAIHook",
    "GoogleGenAIVertexHook",
    "VertexAiSearchConnectionTool",
    "make_llm",
    "memory_service",
]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
