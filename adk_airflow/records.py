"""What happened in a task that ran ADK: node runs, what agents said, called and were answered, and what it cost.

The record is read from ``[adk_airflow] transcripts_uri``, in a task, in Airflow's API server or on any machine that reaches it;
google-adk is not needed. ``docs/records.md`` says what is in an entry.
"""

from __future__ import annotations

from typing import Any

from adk_airflow.errors import RecordError

__all__ = ["RecordError", "read", "read_uri", "tries"]


def read(dag_id: str, run_id: str, task_id: str, map_index: int = -1, try_number: int | None = None) -> list[dict[str, Any]]:
    """The entries of one try of a task, in the order in which they ended; also while the task runs.

    Args:
        dag_id: The DAG.
        run_id: Its run.
        task_id: The task, with the ids of its task groups.
        map_index: Of a mapped task: which instance.
        try_number: Which try, from 1; None for the last that there is a record of.

    Raises:
        RecordError: There is no such record, or another version of adk-airflow made it.
        ServiceConfigurationError: The setting names no place.
    """
    from adk_airflow.runtime.services import settings, transcripts

    folder = transcripts.task_folder(settings.transcripts_place(), dag_id, run_id, task_id, map_index)
    if try_number is None:
        try_number = max(transcripts.tries(folder), default=1)
    return transcripts.read_try(folder / str(try_number))


def tries(dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> list[int]:
    """The numbers of the tries of a task that there are records of, ascending.

    Args:
        dag_id: As for ``read``, as the others.
        run_id: See there.
        task_id: See there.
        map_index: See there.

    Raises:
        ServiceConfigurationError: The setting names no place.
    """
    from adk_airflow.runtime.services import settings, transcripts

    return transcripts.tries(transcripts.task_folder(settings.transcripts_place(), dag_id, run_id, task_id, map_index))


def read_uri(uri: str, conn_id: str | None = None) -> list[dict[str, Any]]:
    """The entries of the record that the XCom ``adk_record`` of a task refers to.

    Args:
        uri: Its ``uri``.
        conn_id: Airflow connection for it, or None.

    Raises:
        RecordError: As by ``read``.
    """
    from adk_airflow.runtime.services import storage, transcripts

    return transcripts.read_try(storage.open_place(uri, conn_id))
