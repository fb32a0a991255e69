"""What Airflow asks for through the entry point ``apache_airflow_provider``: above all the forms of the connections."""

from __future__ import annotations

from typing import Any

# The Test button of Airflow 3.3.2 sends port 0 for a connection without one, and the API server then takes it for a test of
# another address and wants the key again, which the button cannot give (apache/airflow#73298).
_PORT = "443 (Airflow's Test button needs a port)"


def get_provider_info() -> dict[str, Any]:
    """The provider's name and its two connection types; field names are those that ``account.py`` reads."""
    return {
        "package-name": "adk-airflow-google-genai",
        "name": "ADK Google GenAI",
        "description": "Gemini API and Vertex AI connections for Google ADK agents.",
        "versions": ["0.1.0"],
        "connection-types": [
            {
                "connection-type": "google_genai",
                "hook-class-name": "adk_airflow_google_genai.hook.GoogleGenAIHook",
                "hook-name": "Gemini API",
                "ui-field-behaviour": {
                    "hidden-fields": ["login", "schema", "extra"],
                    "relabeling": {"password": "API key", "host": "Base URL"},
                    "placeholders": {"host": "Empty: Google's own address", "port": _PORT},
                },
            },
            {
                "connection-type": "google_genai_vertex",
                "hook-class-name": "adk_airflow_google_genai.hook.GoogleGenAIVertexHook",
                "hook-name": "Vertex AI (Gemini)",
                "ui-field-behaviour": {
                    "hidden-fields": ["login", "schema", "extra"],
                    "relabeling": {"password": "Service account key (JSON)", "host": "Base URL"},
                    "placeholders": {
                        "password": "Empty: the default credentials of the worker",
                        "host": "Empty: Google's own address",
                        "port": _PORT,
                    },
                },
                "conn-fields": {
                    "project": {
                        "label": "Project id",
                        "schema": {"type": ["string", "null"]},
                        "description": "Empty: the project of the service account key.",
                    },
                    "location": {
                        "label": "Location",
                        "schema": {"type": ["string", "null"], "default": "global"},
                        "description": "Region that serves the models, such as us-central1, or global.",
                    },
                    "agent_engine": {
                        "label": "Agent engine of the memory bank",
                        "schema": {"type": ["string", "null"]},
                        "description": "Its id, or projects/.../locations/.../reasoningEngines/... for one elsewhere.",
                    },
                    "data_store": {
                        "label": "Data store of Vertex AI Search",
                        "schema": {"type": ["string", "null"]},
                        "description": "projects/.../locations/.../collections/.../dataStores/...",
                    },
                    "search_engine": {
                        "label": "Search engine of Vertex AI Search",
                        "schema": {"type": ["string", "null"]},
                        "description": "Instead of a data store: projects/.../locations/.../collections/.../engines/...",
                    },
                },
            },
        ],
    }
