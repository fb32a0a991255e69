"""The same graph of plain tasks (a DAG of airflow)."""

from airflow.sdk import dag, task


@dag(schedule=None)
def plain_100():
    @task
    def step(given=None):
        return given

    before = None
    for at in range(33):
        left = step.override(task_id=f"left_{at}")(before)
        right = step.override(task_id=f"right_{at}")(before)
        before = step.override(task_id=f"join_{at}")([left, right])
    step.override(task_id="end")(before)


plain_100()
