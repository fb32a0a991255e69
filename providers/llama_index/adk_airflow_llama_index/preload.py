"""What Airflow processes that fork tasks import once, so that a task need not: see ``adk_airflow.preload``."""

from __future__ import annotations


def modules() -> list[str]:
    """The names of the modules that refreshing and searching an index import."""
    return [
        "adk_airflow_llama_index.refresh",
        "adk_airflow_llama_index.search",
        "adk_airflow_llama_index.terms",
        "bm25s.tokenization",
        "llama_index.core",
        "llama_index.core.node_parser",
        "llama_index.core.vector_stores.utils",
    ]
