"""What Airflow asks for through the entry point ``apache_airflow_provider``."""

from __future__ import annotations

from typing import Any


def get_provider_info() -> dict[str, Any]:
    """The description of this provider that ``airflow providers`` shows, with the form of its connection type."""
    object_or_null = {"type": ["object", "null"]}
    return {
        "package-name": "adk-airflow-toolbox",
        "name": "ADK MCP Toolbox",
        "description": "MCP Toolbox servers as Airflow connections, their tools in Google ADK workflows.",
        "versions": ["0.1.0"],
        "hooks": [{"integration-name": "MCP Toolbox", "python-modules": ["adk_airflow_toolbox.hook"]}],
        "integrations": [
            {
                "integration-name": "MCP Toolbox",
                "external-doc-url": "https://github.com/googleapis/mcp-toolbox",
                "tags": ["service"],
            }
        ],
        "connection-types": [
            {
                "connection-type": "mcp_toolbox",
                "hook-class-name": "adk_airflow_toolbox.hook.ToolboxHook",
                "hook-name": "MCP Toolbox",
                "ui-field-behaviour": {
                    "hidden-fields": ["schema", "login", "extra"],
                    "relabeling": {"host": "URL", "password": "Password"},
                    "placeholders": {
                        "host": "https://toolbox.example.com",
                        "password": "what {password} stands for below",
                        "port": "443 (Airflow's Test button needs a port)",
                    },
                },
                "conn-fields": {
                    "headers": {
                        "label": "Headers",
                        "description": "Sent with every request, by name: a text in which {password} stands for the password,"
                        ' such as {"Authorization": "Bearer {password}"}, or {"google_audience": "https://..."} for a'
                        " Google ID token of the worker's default credentials.",
                        "schema": object_or_null,
                    },
                    "auth_services": {
                        "label": "Auth services",
                        "description": "The tokens that tools ask for, by the name of the server's auth service:"
                        ' "{password}", {"token": "..."} or {"google_audience": "https://..."}.',
                        "schema": object_or_null,
                    },
                    "bound_params": {
                        "label": "Bound parameters",
                        "description": "Values that no model chooses, by the name of a parameter; for every tool that has it.",
                        "schema": object_or_null,
                    },
                },
            }
        ],
    }
