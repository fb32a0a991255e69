"""Looks at each line that is logged while a task runs, before it is written: ADK logs an error before a task could mask it."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator
from typing import Any

from adk_airflow.runtime import failures


@contextlib.contextmanager
def telling_the_masker() -> Iterator[None]:
    """Tells Airflow's masker what looks like a secret in a line, or in the error that it shows; Airflow then masks it there."""
    before = logging.getLogRecordFactory()
    busy = threading.local()

    def make(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = before(*args, **kwargs)
        if not getattr(busy, "now", False):  # to tell may log
            busy.now = True
            try:
                failures.tell_masker("\n".join(_texts(record)))
            except Exception:  # a line whose arguments do not fit, say: that is for its handler to tell
                pass
            finally:
                busy.now = False
        return record

    logging.setLogRecordFactory(make)
    try:
        yield
    finally:
        if logging.getLogRecordFactory() is make:
            logging.setLogRecordFactory(before)


def _texts(record: logging.LogRecord) -> Iterator[str]:
    yield record.getMessage()
    if record.exc_info and record.exc_info[1]:
        for error in failures.chain(record.exc_info[1]):
            yield str(error)
            yield from getattr(error, "__notes__", ())
