"""What Airflow asks for through the entry point ``apache_airflow_provider``."""

from __future__ import annotations

from typing import Any


def get_provider_info() -> dict[str, Any]:
    """The description of this provider that ``airflow providers`` shows."""
    return {
        "package-name": "adk-airflow-llama-index",
        "name": "ADK LlamaIndex",
        "description": "Persisted LlamaIndex indexes as an ADK retrieval tool for batch pipelines.",
        "versions": ["0.1.0"],
    }
