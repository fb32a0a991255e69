"""The Airflow UI plugin. It registers the package with Airflow, which lists it under Admin > Plugins."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin


class AdkAirflowPlugin(AirflowPlugin):
    """Makes adk-airflow known to Airflow."""

    name = "adk_airflow"
