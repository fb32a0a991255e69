"""The workflows behind the example DAGs: plain ADK, runnable without Airflow."""
