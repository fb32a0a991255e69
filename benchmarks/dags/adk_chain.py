"""The chain of ``chain_flow`` as a DAG (airflow)."""

from adk_airflow import AdkDag

AdkDag("chain_flow:root_agent", dag_id="adk_chain", schedule=None)
