"""The ADK services and models that a task uses, by setting or by Airflow connection."""
