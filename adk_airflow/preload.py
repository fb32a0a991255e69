"""Imports the libraries that nodes use once, in the process that forks the tasks, instead of anew in every task.

Which process that is, and who calls this:

* the scheduler with a ``LocalExecutor``, and the DAG processor, which forks a process for every file that it parses: Airflow
  loads its plugins there before it forks anything, and with them ``adk_airflow.plugin``;
* a Celery worker, which loads no plugins: it asks ``get_provider_info`` before it starts, and that connects ``preload`` to
  Celery's signal ``worker_init``.

In no other process anything is imported. Only libraries are: an edited DAG file or workflow is read anew by each task.
Importing them starts no thread, opens nothing and changes no setting, so that a fork is as safe after it as before.

The modules are listed in ``preload.txt``, which ``python -m tests.preload`` writes from what real tasks import. A provider
lists its own under the entry point ``adk_airflow.preload``: a function without arguments that returns names of modules.
"""

from __future__ import annotations

import gc
import importlib
import logging
import multiprocessing
import os
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

LIST = Path(__file__).with_name("preload.txt")
ENTRY_POINTS = "adk_airflow.preload"

_done = False


def preload() -> None:
    """Imports the libraries, once in a process and those that it forks. What is not installed, or fails, is left out."""
    global _done
    if _done:
        return
    _done = True
    from adk_airflow.runtime.adk.missing_a2a import fail_at_once

    fail_at_once()
    for name in module_names():
        try:
            importlib.import_module(name)
        except Exception as error:  # a task that needs it will say so itself
            log.debug("not preloaded: %s (%s: %s)", name, type(error).__name__, error)
    log.info("adk-airflow: libraries imported once for all tasks ([adk_airflow] preload)")


def module_names() -> list[str]:
    """The modules to import, in the order in which tasks import them."""
    names = [line for line in LIST.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    for point in entry_points(group=ENTRY_POINTS):
        try:
            names += point.load()()
        except Exception as error:
            log.debug("not preloaded: %s (%s: %s)", point.value, type(error).__name__, error)
    return names


def preload_in_parent(arguments: Sequence[str]) -> None:
    """Imports the libraries if this process is one that forks tasks, or processes that parse DAG files.

    Args:
        arguments: Those of the ``airflow`` command, beginning with its name: ``["airflow", "scheduler"]``.
    """
    if _forks(arguments) and _wanted():
        preload()


def connect_celery(arguments: Sequence[str]) -> None:
    """Has a Celery worker import the libraries before it forks; nothing where this process has nothing to do with Celery.

    Args:
        arguments: Those of the command, beginning with its name.
    """
    if list(arguments[1:3]) != ["celery", "worker"] and "celery.signals" not in sys.modules:
        return
    try:
        from celery.signals import worker_init  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return
    worker_init.connect(_preload_in_celery, dispatch_uid=__name__)


def _preload_in_celery(**_: Any) -> None:
    if _wanted():
        preload()
        importlib.import_module("adk_airflow.plugin")  # each task loads its plugins
        # As Airflow's Celery provider does for what it imports itself, before the pool forks; it unfreezes when that is done.
        gc.freeze()


def _forks(arguments: Sequence[str]) -> bool:
    command = "".join(arguments[1:2])
    if command == "dag-processor":
        return hasattr(os, "fork")
    if command != "scheduler":
        return False
    from airflow.sdk import conf

    # On macOS a task's process begins anew, with nothing of its parent.
    forks = sys.platform != "darwin" and multiprocessing.get_start_method() == "fork"
    return forks and "LocalExecutor" in conf.get("core", "executor", fallback="")


def _wanted() -> bool:
    from airflow.sdk import conf

    return bool(conf.getboolean("adk_airflow", "preload", fallback=True))
