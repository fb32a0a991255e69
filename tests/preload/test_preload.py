"""Which processes import the libraries of nodes beforehand, and that this changes nothing else in them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from adk_airflow.preload import LIST, module_names
from tests.preload.observed import is_library

HERE = "'google.adk.runners' in sys.modules"


def python(code: str, **environment: str) -> str:
    """The last line that a new Python process prints."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("command", [["scheduler", "--skip-serve-logs"], ["dag-processor"]])
def test_a_process_that_forks_imports_them_when_airflow_loads_its_plugins(command: list[str]) -> None:
    code = f"""
sys.argv = ["airflow", *{command!r}]
from airflow.plugins_manager import ensure_plugins_loaded
ensure_plugins_loaded()
print({HERE})"""
    assert python(code, AIRFLOW__CORE__EXECUTOR="LocalExecutor") == "True"


def test_no_other_command_does() -> None:
    code = f"""
from airflow.plugins_manager import ensure_plugins_loaded
ensure_plugins_loaded()
from adk_airflow.plugin import AdkAirflowPlugin
for command in ([], ["api-server"], ["triggerer"], ["dags", "list"], ["celery", "worker"], ["standalone"], ["db", "migrate"]):
    sys.argv = ["airflow", *command]
    AdkAirflowPlugin.on_load()
print({HERE})"""
    assert python(code, AIRFLOW__CORE__EXECUTOR="LocalExecutor") == "False"


@pytest.mark.parametrize(
    ("setting", "value"), [("AIRFLOW__CORE__EXECUTOR", "CeleryExecutor"), ("AIRFLOW__ADK_AIRFLOW__PRELOAD", "False")]
)
def test_nor_a_scheduler_whose_tasks_run_elsewhere_or_where_it_is_switched_off(setting: str, value: str) -> None:
    code = f"""
from adk_airflow.preload import preload_in_parent
preload_in_parent(["airflow", "scheduler"])
print({HERE})"""
    assert python(code, **{"AIRFLOW__CORE__EXECUTOR": "LocalExecutor", setting: value}) == "False"


CELERY = """
class Signal:
    receivers = {}
    def connect(self, receiver, dispatch_uid=None):
        self.receivers[dispatch_uid] = receiver
worker_init = Signal()
"""


@pytest.mark.parametrize(("preload", "expected"), [("True", "True"), ("False", "False")])
def test_a_celery_worker_imports_them_when_it_starts_and_not_before(preload: str, expected: str, tmp_path: Path) -> None:
    # What is used of Celery, which the tests do without; `make bench` runs a real worker.
    (tmp_path / "celery").mkdir()
    (tmp_path / "celery" / "__init__.py").write_text("")
    (tmp_path / "celery" / "signals.py").write_text(CELERY)
    code = f"""
sys.path.insert(0, {str(tmp_path)!r})
sys.argv = ["airflow", "celery", "worker"]
from airflow.providers_manager import ProvidersManager
ProvidersManager().initialize_providers_configuration()
from celery.signals import worker_init
before = "google.adk.runners" in sys.modules
for receiver in worker_init.receivers.values():
    receiver(sender=None)
print([before, len(worker_init.receivers), "google.adk.runners" in sys.modules])"""
    assert python(code, AIRFLOW__ADK_AIRFLOW__PRELOAD=preload) == f"[False, 1, {expected}]"


def test_without_celery_nothing_is_asked_of_it() -> None:
    code = """
sys.modules["celery"] = None
sys.argv = ["airflow", "celery", "worker"]
from adk_airflow.get_provider_info import get_provider_info
print(get_provider_info()["package-name"])"""
    assert python(code) == "adk-airflow"


def test_every_listed_module_is_there_and_brings_no_other_than_libraries() -> None:
    code = f"""
import importlib, json
missing = []
for name in {module_names()!r}:
    try:
        importlib.import_module(name)
    except Exception as error:
        missing.append(f"{{name}}: {{error}}")
origins = {{name: getattr(getattr(module, "__spec__", None), "origin", None) for name, module in sys.modules.items()}}
print(json.dumps([missing, origins]))"""
    missing, origins = json.loads(python(code))

    assert missing == [], f"write {LIST.name} anew: python -m tests.preload"
    assert [name for name, origin in origins.items() if not is_library(name, origin)] == []


def test_a_module_that_is_not_installed_or_fails_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "adk_airflow_extra.py").write_text(
        "def modules(): return ['is_not_there', 'fails', 'colorsys']\ndef broken(): raise RuntimeError('no')"
    )
    (tmp_path / "fails.py").write_text("raise RuntimeError('on purpose')")
    info = tmp_path / "adk_airflow_extra-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: adk-airflow-extra\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[adk_airflow.preload]\nbroken = adk_airflow_extra:broken\nextra = adk_airflow_extra:modules\n"
    )
    code = f"""
sys.path.insert(0, {str(tmp_path)!r})
from adk_airflow.preload import preload
preload()
print([name in sys.modules for name in ("google.adk.runners", "fails", "colorsys")])"""
    assert python(code) == "[True, False, True]"


STATE = """
import asyncio, gc, json, locale, logging, os, signal, socket, sys, threading
import airflow.sdk.execution_time.supervisor, airflow.sdk.execution_time.task_runner

def state():
    return {
        "threads": [thread.name for thread in threading.enumerate()],
        "open files": sorted(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else [],
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "path": list(sys.path),
        "signals": {str(number): str(signal.getsignal(number)) for number in signal.valid_signals()},
        "hooks": [str(hook) for hook in (sys.excepthook, threading.excepthook, sys.unraisablehook)],
        "log": [str(logging.root.handlers), logging.root.level, logging.root.manager.disable, str(logging.getLoggerClass())],
        "levels": {n: l.level for n, l in logging.root.manager.loggerDict.items() if getattr(l, "level", 0)},
        "event loop": [str(type(asyncio.get_event_loop_policy())), asyncio._get_running_loop() is None],
        "garbage": gc.isenabled(),
        "locale": locale.setlocale(locale.LC_ALL),
        "timeout": socket.getdefaulttimeout(),
    }

before = state()
from adk_airflow.preload import preload
preload()
print(json.dumps([before, state()]))"""


def test_importing_them_starts_opens_and_sets_nothing() -> None:
    before, after = json.loads(python(STATE))
    own = after["levels"].keys() - before["levels"].keys()  # libraries may set that of their own loggers
    assert not {name for name in own if name.startswith("airflow")}
    after["levels"] = {name: level for name, level in after["levels"].items() if name not in own}

    assert after == before
    assert before["threads"] == ["MainThread"]
