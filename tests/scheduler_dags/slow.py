"""A DAG with a step that outlasts the test (airflow)."""

from adk_airflow_toolbox import ConnectionToolboxToolset
from google.adk.workflow import Workflow, node

from adk_airflow import AdkDag

slow = node(ConnectionToolboxToolset("shop_toolbox").tool("slow_query"))
dag = AdkDag(Workflow(name="slow", edges=[("START", slow)]), dag_id="slow", schedule=None)
