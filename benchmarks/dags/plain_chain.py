"""The same chain without adk-airflow."""

from airflow.sdk import dag, task


@dag(schedule=None)
def plain_chain():
    @task
    def begin():
        return ""

    @task
    def step(given):
        return f"{given}."

    value = begin.override(task_id="step_0")()
    for at in range(1, 20):
        value = step.override(task_id=f"step_{at}")(value)


plain_chain()
