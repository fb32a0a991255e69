"""A DAG that a command switches on for one run, and switches off again however the command ends.

What was switched on stands in a file of the home folder until it is off again: the next start finds there what a command that
was killed left on, before there is a scheduler that would start a run that nobody asked for.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from adk_airflow.local.client import AirflowClient
from adk_airflow.local.errors import AirflowApiError
from adk_airflow.local.run import FINISHED_RUN
from adk_airflow.local.state import writable

_FILE = "switched-on.json"


@contextlib.contextmanager
def switched_on(client: AirflowClient, home: Path, dag_id: str, run: Mapping[str, Any]) -> Iterator[str]:
    """Starts a run of a DAG that may be paused; afterwards a DAG that was paused is so again, and nothing of it runs.

    While it is on, Airflow may start the run that is due by its schedule, too: that is ended with it, since in a paused DAG it
    would stay where it is.

    Args:
        client: Speaks to the Airflow.
        home: Its home folder.
        dag_id: The DAG.
        run: As ``AirflowClient.trigger`` takes it.

    Yields:
        The run's id.

    Raises:
        AirflowStartError: Nothing can be written in the home folder.
        AirflowApiError: Airflow does not answer, or refuses it.
    """
    if not (client.dag(dag_id) or {}).get("is_paused", False):
        yield str(client.trigger(dag_id, **run)["dag_run_id"])
        return
    others = [other["dag_run_id"] for other in client.runs(dag_id)]
    # Made while the DAG is off, so that it is known before anything of it runs.
    run_id = str(client.trigger(dag_id, **run)["dag_run_id"])
    with writable(home):
        (home / _FILE).write_text(json.dumps({"dag_id": dag_id, "run_id": run_id, "others": others}), encoding="utf-8")
    try:
        client.unpause(dag_id)
        yield run_id
    finally:
        switch_off(client, home)


def switch_off(client: AirflowClient, home: Path) -> None:
    """Pauses the DAG that is still on for one run, and ends what runs of it; harmless when there is none.

    Raises:
        AirflowStartError: Nothing can be written in the home folder.
        AirflowApiError: Airflow does not answer, or refuses it.
    """
    try:
        found = json.loads((home / _FILE).read_text(encoding="utf-8"))
        dag_id, run_id, others = str(found["dag_id"]), str(found["run_id"]), set(found["others"])
    except FileNotFoundError:
        return
    except (OSError, ValueError, KeyError, TypeError):
        dag_id = ""
    if dag_id:
        try:
            client.pause(dag_id)
            for run in client.runs(dag_id):
                due = run["run_type"] == "scheduled" and run["dag_run_id"] not in others
                if (due or run["dag_run_id"] == run_id) and run["state"] not in FINISHED_RUN:
                    client.end_run(dag_id, run["dag_run_id"])
        except AirflowApiError as error:
            if error.status != 404:  # the DAG, or a run, was deleted meanwhile
                raise
    with writable(home):
        (home / _FILE).unlink(missing_ok=True)
