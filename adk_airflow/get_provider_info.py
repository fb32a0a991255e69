"""What Airflow asks of an installed provider."""

from __future__ import annotations

import sys
from typing import Any

from adk_airflow.preload import connect_celery


def get_provider_info() -> dict[str, Any]:
    """The provider's name, its task decorators and its configuration section.

    It is also the only thing of ours that Airflow calls in a Celery worker before that forks; see ``adk_airflow.preload``.
    """
    connect_celery(sys.argv)
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
                    "preload": {
                        "description": "Whether processes that fork tasks or parse DAG files (a scheduler with LocalExecutor, a"
                        " Celery worker, the DAG processor) import google-adk and what else nodes need once, as they start."
                        " Without it each task imports them anew, for 2 seconds or so.",
                        "version_added": "0.1.0",
                        "type": "boolean",
                        "example": "False",
                        "default": "True",
                    },
                    "save_plans": {
                        "description": "Whether what a DAG file needs of a workflow given by name is kept in AIRFLOW_HOME, so"
                        " that parsing the file imports neither google-adk nor the workflow. Switch it off for workflows"
                        " whose nodes depend on something else than their files, such as the environment.",
                        "version_added": "0.1.0",
                        "type": "boolean",
                        "example": "False",
                        "default": "True",
                    },
                    "artifacts_uri": {
                        "description": "Where ADK artifacts are kept: any URI that Airflow's object storage knows, with an"
                        " absolute path or a bucket, shared by all workers. Empty: the folder adk_artifacts in AIRFLOW_HOME.",
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "s3://my-bucket/adk_artifacts",
                        "default": "",
                    },
                    "memory_service_uri": {
                        "description": "The memory that agents search: a URI of google-adk (agentengine://, rag://, sqlite://,"
                        " or a scheme of your own registration), or a place of Airflow's object storage for files."
                        " Empty: the folder adk_memory in AIRFLOW_HOME.",
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
                    "prices": {
                        "description": "What a million tokens of a model cost, for XCom usage and max_cost: a JSON object, the"
                        " path of a file with one, or genai-prices (adk-airflow[prices]). Empty: no costs.",
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": '{"gemini-2.5-flash": {"input": 0.3, "output": 2.5, "cached": 0.03}}',
                        "default": "",
                    },
                    "memory_conn_id": {
                        "description": "Airflow connection for memory_service_uri where that is a place for files; without"
                        " memory_service_uri, one whose type an installed provider makes a memory of.",
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "google_genai_default",
                        "default": "",
                    },
                    "remember_runs": {
                        "description": "Whether each task that ends well adds what was said in it to the memory, without a"
                        " callback of the agent's own.",
                        "version_added": "0.1.0",
                        "type": "boolean",
                        "example": "True",
                        "default": "False",
                    },
                    "session_service_uri": {
                        "description": "Where ADK sessions with a session_id are kept between runs: a URI of google-adk, such"
                        " as sqlite:////data/adk/sessions.db, postgresql+asyncpg://... or agentengine://...",
                        "version_added": "0.1.0",
                        "type": "string",
                        "sensitive": True,
                        "example": "sqlite:////data/adk/sessions.db",
                        "default": "",
                    },
                    "session_conn_id": {
                        "description": "Instead of session_service_uri: an Airflow connection of type postgres or mysql, or"
                        " one whose type an installed provider makes a session service of.",
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "adk_sessions",
                        "default": "",
                    },
                    "transcripts_uri": {
                        "description": "Where the records of tasks are kept, what agents said and called: any URI that"
                        " Airflow's object storage knows, with an absolute path or a bucket, reached by all workers."
                        " Empty: the folder adk_records beside the artifacts.",
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "s3://my-bucket/adk_records",
                        "default": "",
                    },
                    "transcripts_conn_id": {
                        "description": "Airflow connection for transcripts_uri, where it needs one.",
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "aws_default",
                        "default": "",
                    },
                    "log_content": {
                        "description": "Whether the records of tasks hold what was said, asked and answered. False: names,"
                        " times, sizes and usage only.",
                        "version_added": "0.1.0",
                        "type": "boolean",
                        "example": "False",
                        "default": "True",
                    },
                    "keep_records_days": {
                        "description": "After how many days `adk-airflow clean-records` removes the record of a task."
                        " 0: never.",
                        "version_added": "0.1.0",
                        "type": "float",
                        "example": "30",
                        "default": "0",
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
