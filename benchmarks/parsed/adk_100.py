"""The workflow of ``flow_100`` as a DAG (airflow)."""

from adk_airflow import AdkDag

AdkDag("flow_100:root_agent", dag_id="adk_100", schedule=None)
