"""Tasks of every kind, each of which writes down what was imported since its process began to read this file (airflow)."""

import json
import os
import sys
from pathlib import Path

BEFORE = set(sys.modules)

from airflow.sdk import DAG  # noqa: E402

from adk_airflow import AdkAgentOperator, AdkTaskGroup, AdkToolOperator  # noqa: E402


def write_down(context):
    ti = context["ti"]
    folder = Path(os.environ["AIRFLOW_HOME"], "imports")
    folder.mkdir(exist_ok=True)
    new = [name for name in sys.modules if name not in BEFORE]
    origins = {name: getattr(getattr(sys.modules[name], "__spec__", None), "origin", None) for name in new}
    (folder / f"{ti.task_id}{ti.map_index}.json").write_text(json.dumps(origins))


with DAG("imports", schedule=None, params={"input": "hello"}, default_args={"on_success_callback": write_down}):
    AdkTaskGroup("imports_flow:root_agent", group_id="tasks")
    AdkTaskGroup("imports_flow:root_agent", group_id="whole", mode="embedded")
    AdkAgentOperator(task_id="agent", agent="imports_flow:agent", prompt="the weather?")
    AdkToolOperator(task_id="tool", tool="imports_flow:tool", arguments={"city": "Oslo"})
