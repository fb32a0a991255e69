"""Which ids Airflow takes for tasks and task groups: google-adk's names may be longer, and of more letters."""

from __future__ import annotations

import re
from collections.abc import Iterator

from adk_airflow.errors import UnsupportedWorkflowError
from adk_airflow.translator.plan import Plan, path_of

# Of a task's id with those of its groups, of one group's own, of a DAG's.
MOST_OF_TASK = 250
MOST_OF_GROUP = 200
MOST_OF_DAG = 250

_TAKEN = re.compile(r"[\w.-]+")


def check_ids(plan: Plan, prefix: str = "") -> None:
    """Refuses a plan with an id that Airflow refuses.

    Args:
        plan: The plan.
        prefix: What stands before the ids of its tasks: the id of a task group, with a dot.

    Raises:
        UnsupportedWorkflowError: A name is too long, or has a letter that no id may have.
    """
    for task in plan.tasks:
        where = f"workflow {shown(plan.workflow)}, node {shown(path_of(task.scope, task.node))}"
        for problem in _problems(prefix + task.task_id, groups=task.task_id.split(".")[:-1]):
            raise UnsupportedWorkflowError(f"{where}: {problem}")


def dag_id_fault(name: str) -> str:
    """Why a workflow's name can be no DAG's id, and what to do; empty where it can."""
    return _fault(name, MOST_OF_DAG, "a DAG", "dag_id")


def group_id_fault(name: str) -> str:
    """Why a workflow's name can be no task group's id, and what to do; empty where it can."""
    return _fault(name, MOST_OF_GROUP, "a task group", "group_id")


def _fault(name: str, most: int, what: str, argument: str) -> str:
    if len(name) > most:
        return f"its name has {len(name)} characters, and the id of {what} at most {most}: give {argument}"
    odd = _odd(name)
    return f"its name has {odd}, and the id of {what} only letters, digits and underscores: give {argument}" if odd else ""


def _problems(task_id: str, groups: list[str]) -> Iterator[str]:
    for group in groups:
        if len(group) > MOST_OF_GROUP:
            yield (
                f"the name {shown(group)} has {len(group)} characters, and Airflow takes at most {MOST_OF_GROUP} for a task"
                " group. Shorten it, or give the node mode='embedded'."
            )
    if len(task_id) > MOST_OF_TASK:
        yield (
            f"its task's id {shown(task_id)} has {len(task_id)} characters, with the groups around it, and Airflow takes at"
            f" most {MOST_OF_TASK}. Shorten the names."
        )
    if odd := _odd(task_id):
        yield f"its task's id {shown(task_id)} has {odd}, and Airflow takes letters, digits and underscores. Rename the node."


def _odd(text: str) -> str:
    rest = _TAKEN.sub("", text)
    return repr(rest[0]) if rest else ""


def shown(text: str) -> str:
    """A long name, cut in the middle."""
    return repr(text if len(text) <= 60 else f"{text[:28]}...{text[-28:]}")
