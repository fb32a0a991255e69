"""The Airflow run as session state: which run this is, and for which dates it works."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

PREFIX = "airflow:"


def run_state(context: Mapping[str, Any]) -> dict[str, str | None]:
    """The ``airflow:`` keys that every node finds in ``ctx.state``.

    ``airflow:dag_id``, ``airflow:run_id``, and as ISO 8601 text in UTC or None (a run without dates)
    ``airflow:logical_date``, ``airflow:data_interval_start``, ``airflow:data_interval_end``.
    """
    run = context["dag_run"]
    dates = {key: getattr(run, key, None) for key in ("logical_date", "data_interval_start", "data_interval_end")}
    return {
        f"{PREFIX}dag_id": run.dag_id,
        f"{PREFIX}run_id": run.run_id,
        **{PREFIX + key: None if value is None else value.isoformat() for key, value in dates.items()},
    }


def of_manual_run(dag_id: str, when: datetime) -> dict[str, str | None]:
    """The ``airflow:`` keys of a run that somebody starts by hand at ``when``, in UTC, as Airflow would make them."""
    date = when.isoformat()
    dates = dict.fromkeys(("logical_date", "data_interval_start", "data_interval_end"), date)
    return {PREFIX + key: value for key, value in {"dag_id": dag_id, "run_id": f"manual__{date}", **dates}.items()}


def initial_state(context: Mapping[str, Any]) -> dict[str, Any]:
    """The session state that a run starts with: its params (``input`` is the user message), then the ``airflow:`` keys."""
    params = {key: value for key, value in dict(context["params"]).items() if key != "input"}
    return {**params, **run_state(context)}
