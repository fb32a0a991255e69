"""Persisted LlamaIndex indexes, as an ADK retrieval tool for batch pipelines.

One task calls ``refresh_index``, which turns a directory of text files into an immutable version of an index;
the tasks that ask questions load that version with ``open_index`` or through the ADK tool ``IndexRetrieval``.
The names below are imported when they are first used, so that importing this package (a DAG file does)
costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adk_airflow_llama_index.errors import EmbeddingModelError as EmbeddingModelError
    from adk_airflow_llama_index.errors import IndexNotFoundError as IndexNotFoundError
    from adk_airflow_llama_index.errors import IndexSourceError as IndexSourceError
    from adk_airflow_llama_index.files_retrieval import FilesRetrieval as FilesRetrieval
    from adk_airflow_llama_index.refresh import RefreshReport as RefreshReport
    from adk_airflow_llama_index.refresh import refresh_index as refresh_index
    from adk_airflow_llama_index.search import Passage as Passage
    from adk_airflow_llama_index.search import PersistedIndex as PersistedIndex
    from adk_airflow_llama_index.search import open_index as open_index
    from adk_airflow_llama_index.tool import IndexRetrieval as IndexRetrieval

__version__ = "0.1.0"

_MODULE_OF = {
    "EmbeddingModelError": "errors",
    "FilesRetrieval": "files_retrieval",
    "IndexNotFoundError": "errors",
    "IndexRetrieval": "tool",
    "IndexSourceError": "errors",
    "Passage": "search",
    "PersistedIndex": "search",
    "RefreshReport": "refresh",
    "open_index": "search",
    "refresh_index": "refresh",
}

__all__ = [
    "EmbeddingModelError",
    "FilesRetrieval",
    "IndexNotFoundError",
    "IndexRetrieval",
    "IndexSourceError",
    "Passage",
    "PersistedIndex",
    "RefreshReport",
    "open_index",
    "refresh_index",
]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
