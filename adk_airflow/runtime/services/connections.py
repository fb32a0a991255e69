"""Airflow connections, and what the provider for a connection's type makes of one: an entry point named like the type."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from adk_airflow.runtime.failures import hide_connection

if TYPE_CHECKING:
    from airflow.sdk import Connection


# What the packages of this repository make things of: they are on no index, so an error says where they are.
_PACKAGES = {
    ("adk_airflow.llm", "google_genai"): "google_genai",
    ("adk_airflow.llm", "google_genai_vertex"): "google_genai",
    ("adk_airflow.memory", "google_genai_vertex"): "google_genai",
}


def _from_here(package: str) -> str:
    return f"adk-airflow-{package.replace('_', '-')} (providers/{package} of adk-airflow's repository)"


def read(conn_id: str, where: str, raises: type[Exception]) -> Connection:
    """The connection, its secrets masked; to be read before a task's event loop runs, on which this could hang.

    Raises:
        Exception: ``raises``, beginning with ``where``: there is none.
    """
    from airflow.sdk import BaseHook
    from airflow.sdk.exceptions import AirflowNotFoundException

    try:
        connection = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        raise raises(
            f"{where}: there is no Airflow connection {conn_id!r}. Add it under Admin, Connections, or correct its id."
        ) from None
    hide_connection(connection)
    return connection


def maker(connection: Connection, group: str, what: str, where: str, raises: type[Exception]) -> Any:
    """The function of the provider for the connection's type.

    Args:
        connection: The connection.
        group: The group of entry points.
        what: What the function does, as a verb with its object.
        where: Who asks, for the error.
        raises: Class of the error when no installed provider has one.
    """
    found = list(entry_points(group=group, name=str(connection.conn_type)))
    if not found:
        known = ", ".join(sorted({entry.name for entry in entry_points(group=group)}))
        package = _PACKAGES.get((group, str(connection.conn_type)))
        if package is not None:
            advice = f"Install {_from_here(package)} where the tasks run."
        elif known:
            advice = f"Types that are known here: {known}."
        else:
            ours = {name: of for (of_group, name), of in _PACKAGES.items() if of_group == group}
            types = f"; {' and '.join(map(_from_here, dict.fromkeys(ours.values())))} is for {', '.join(ours)}" if ours else ""
            advice = f"No package that does is installed here{types}."
        raise raises(
            f"{where}: no installed provider {what} connection {connection.conn_id!r}, whose type is"
            f" {connection.conn_type!r}. {advice}"
        )
    return found[0].load()
