"""One real Airflow for all tests here, with a DAGs folder of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from adk_airflow.local import StandaloneAirflow

DAGS = {
    "sums.py": '''
"""A DAG with a mapped task and a branch."""
from airflow.sdk import Param, dag, task

@dag(dag_id="sums", schedule=None, params={"numbers": Param([1, 2, 3], type="array")})
def sums():
    @task
    def numbers(params=None):
        return params["numbers"]

    @task
    def double(number):
        return 2 * number

    @task.branch
    def choose(doubled):
        return "large" if sum(doubled) > 100 else "small"

    @task
    def small():
        pass

    @task
    def large():
        pass

    @task(trigger_rule="none_failed_min_one_success")
    def report():
        return {
            "table": [{"question": "how [bold]much[/bold]?", "document": "sums.md", "score": 1.5, "route": "complete"}],
            "summary": {"index": {"documents": 3, "added": 0, "changed": 0, "removed": 0, "reused": 3}},
        }

    route = choose(double.expand(number=numbers()))
    ways = [small(), large()]
    route >> ways
    ways >> report()

sums()
''',
    "failing.py": '''
"""A DAG with an item that fails."""
from airflow.sdk import dag, task

@dag(dag_id="failing", schedule=None)
def failing():
    @task
    def divide(number):
        print("dividing by", number)
        return 1 // number

    divide.expand(number=[1, 0])

failing()
''',
    "endless.py": '''
"""A DAG that outlasts every test."""
import time
from airflow.sdk import dag, task

@dag(dag_id="endless", schedule=None)
def endless():
    @task
    def sleep():
        time.sleep(600)

    sleep()

endless()
''',
    "daily.py": '''
"""A DAG with a schedule, for a backfill."""
import pendulum
from airflow.sdk import dag, task

@dag(dag_id="daily", schedule="@daily", start_date=pendulum.datetime(2026, 1, 1, tz="UTC"), catchup=False)
def daily():
    @task
    def day(logical_date=None):
        return logical_date.date().isoformat()

    day()

daily()
''',
    "dated.py": '''
"""A DAG whose task takes the day of the run."""
from airflow.sdk import dag, task

@dag(dag_id="dated", schedule=None)
def dated():
    @task
    def day(text):
        return text

    day("on {{ ds }}")

dated()
''',
    "pooled.py": '''
"""A DAG with tasks in a pool that nobody made."""
from airflow.sdk import dag, task

@dag(dag_id="pooled", schedule=None)
def pooled():
    @task(pool="own pool")
    def one(number):
        return number

    one.expand(number=[1, 2])

pooled()
''',
    "broken.py": '''
"""No dag of airflow comes from here."""
raise RuntimeError("this file is broken on purpose")
''',
}


@pytest.fixture(scope="session")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneAirflow]:
    """As `adk-airflow up` leaves it; ended after the last test, whatever the tests did to it."""
    folder: Path = tmp_path_factory.mktemp("stand alone")  # a blank in the path must not matter
    (folder / "dags").mkdir()
    for name, source in DAGS.items():
        (folder / "dags" / name).write_text(source, encoding="utf-8")
    started = StandaloneAirflow(folder / "home", folder / "dags")
    started.start(detach=True)
    try:
        yield started
    finally:
        started.stop()
