"""What Airflow loads as a plugin, in every process that has plugins: so nothing is imported here that costs anything."""

from __future__ import annotations

import sys
from typing import Any

from airflow.plugins_manager import AirflowPlugin

from adk_airflow.preload import preload_in_parent


class AdkAirflowPlugin(AirflowPlugin):
    """Has the scheduler and the DAG processor import the libraries of nodes before they fork."""

    name = "adk_airflow"

    @classmethod
    def on_load(cls, *args: Any, **kwargs: Any) -> None:
        """Airflow calls this when it has found the plugin: in those two processes before anything is forked."""
        preload_in_parent(sys.argv)
