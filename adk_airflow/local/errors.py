"""What can go wrong around a standalone Airflow; every message says who, where and what to do."""

from __future__ import annotations


class StandaloneError(Exception):
    """Base of all errors here; its text is meant for the person at the terminal."""


class AirflowStartError(StandaloneError):
    """Airflow could not be started, is already in use, or one of its components ended by itself."""


class AirflowApiError(StandaloneError):
    """A REST request was refused or not answered; ``status`` is the HTTP status, None without an answer."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class DagImportError(StandaloneError):
    """The DAG is not there: its file raised, or no file defines it."""


class RunTimeoutError(StandaloneError):
    """The DAG run did not finish in the time it was given."""
