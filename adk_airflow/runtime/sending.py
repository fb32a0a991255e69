"""XComs that reach Airflow also when its API server is away for some minutes, as at a restart."""

from __future__ import annotations

import time
from typing import Any

from adk_airflow.runtime import failures
from adk_airflow.runtime.record.attempt import PATIENCE, Standing, is_away

_PAUSE = 2.0


def push(ti: Any, key: str, value: Any, *, where: str, log: Any, standing: Standing | None = None) -> None:
    """Pushes an XCom; again and again while the API server is away, since what it holds was paid for.

    Args:
        ti: The task instance.
        key: The XCom's key.
        value: What it holds.
        where: The workflow and node, for the log.
        log: The task's log.
        standing: Whether the try still counts; None: nobody knows.

    Raises:
        OvertakenError: The try no longer counts.
        AirflowRuntimeError: The server refuses it, or is away for longer than ``PATIENCE``.
    """
    until = time.monotonic() + PATIENCE
    while True:
        try:
            ti.xcom_push(key=key, value=value)
            return
        except Exception as error:
            if standing is not None:
                standing.check()
            if not is_away(error) or time.monotonic() > until:
                raise
            log.warning(
                "%s: its result (XCom %r) cannot be sent now and is sent again, for up to %d minutes: %s",
                where[:1].upper() + where[1:], key, PATIENCE // 60, failures.one_line(error),
            )  # fmt: skip
            time.sleep(_PAUSE)
