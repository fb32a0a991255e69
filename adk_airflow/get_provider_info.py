"""What Airflow asks of an installed provider."""

from __future__ import annotations

from typing import Any


def get_provider_info() -> dict[str, Any]:
    """The provider's name, its task decorators and its configuration section."""
    return {
        "package-name": "adk-airflow",
        "name": "Google ADK workflows",
        "description": "Run Google ADK workflows as Apache Airflow DAGs.",
        "task-decorators": [
            {"class-name": "adk_airflow.decorators.adk_agent", "name": "adk_agent"},
            {"class-name": "adk_airflow.decorators.adk_tool", "name": "adk_tool"},
        ],
        "config": {
            "adk_airflow": {
                "description": "Settings of adk-airflow.",
                "options": {
                    "artifacts_uri": {
                        "description": "Where ADK artifacts are kept: any URI that Airflow's object storage knows,"
                        " shared by all workers. Empty: the folder adk_artifacts in AIRFLOW_HOME.",
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "s3://my-bucket/adk_artifacts",
                        "default": "",
                    },
                    "memory_service_uri": {
                        "description": "The ADK memory service that agents search, as a URI that ADK knows, such as"
                        " agentengine://... or one of your own registration. Empty: none.",
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "agentengine://1234567890",
                        "default": "",
                    },
                    "llm_conn_id": {
                        "description": "Airflow connection whose credentials agents use where no llm_conn_id is given."
                        " Empty: the credentials that the task's process has.",
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "google_genai_default",
                        "default": "",
                    },
                    "artifacts_conn_id": {
                        "description": "Airflow connection for artifacts_uri, where it needs one.",
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "aws_default",
                        "default": "",
                    },
                },
            }
        },
    }
