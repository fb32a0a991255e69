"""Two loops that outlast every test (airflow)."""

import asyncio
import os
import time
from pathlib import Path

from google.adk import Event
from google.adk.workflow import Workflow, node

from adk_airflow import AdkDag


async def waits():
    Path(os.environ["AIRFLOW_HOME"], "waits.pid").write_text(str(os.getpid()))
    await asyncio.sleep(0.5)
    return Event(route="again")


def blocks():
    Path(os.environ["AIRFLOW_HOME"], "blocks.pid").write_text(str(os.getpid()))
    time.sleep(600)


def loop(function):
    step = node(function, name="step")
    edges = [("START", step, {"again": step, "done": node(lambda: "ended", name="end")})]
    return AdkDag(Workflow(name=function.__name__, edges=edges), schedule=None)


dags = [loop(waits), loop(blocks)]
