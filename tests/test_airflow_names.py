"""What is imported of Airflow: the public name where there is one; of the others, what is relied on."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import attrs
import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = [ROOT / "adk_airflow", *(ROOT / "providers").glob("*/adk_airflow_*")]
AIRFLOW = f"apache-airflow {version('apache-airflow')}"

# The modules beside `airflow.sdk` that Airflow documents for providers and DAGs.
PUBLIC = {"airflow.sdk", "airflow.sdk.exceptions", "airflow.sdk.log", "airflow.plugins_manager"}

# Each name that Airflow does not make public: what breaks without it, and of a function the parameters that are relied on.
INTERNAL: dict[str, tuple[str, tuple[str, ...]]] = {
    "airflow.sdk.bases.decorator:DecoratedOperator": ("@task.adk_agent and @task.adk_tool", ("python_callable", "op_kwargs")),
    "airflow.sdk.bases.decorator:TaskDecorator": ("the types of @task.adk_agent and @task.adk_tool", ()),
    "airflow.sdk.bases.decorator:task_decorator_factory": (
        "@task.adk_agent and @task.adk_tool",
        ("python_callable", "multiple_outputs", "decorated_operator_class"),
    ),
    "airflow.sdk.definitions.context:context_merge": ("the arguments of a function under @task.adk_agent", ("context", "args")),
    "airflow.sdk.definitions.taskgroup:MappedTaskGroup": ("the refusal of a workflow's tasks in a mapped task group", ()),
    "airflow.sdk.observability.stats:incr": ("the metrics of what models cost", ("stat", "count", "tags")),
    "airflow.sdk.execution_time.xcom:XCom": ("the plain form of what a task returns, and testing", ()),
    "airflow.sdk.execution_time.comms:CommsDecoder": ("the end of a task whose body does not end at its time limit", ()),
    "airflow.listeners:hookimpl": ("testing: what a task failed with", ()),
    "airflow.sdk.listener:get_listener_manager": ("testing: what a task failed with", ()),
    "airflow.models.xcom:XComModel": ("testing: what the tasks left", ()),
    "airflow.utils:db": ("testing: an Airflow database", ()),
    "airflow.utils.session:create_session": ("testing: what the tasks left", ()),
}


def imported() -> list[tuple[str, str, str]]:
    """File, module and name of each import of Airflow."""
    found = []
    for path in sorted(path for package in PACKAGES for path in package.rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        for part in ast.walk(ast.parse(path.read_text())):
            if isinstance(part, ast.ImportFrom) and (part.module or "").partition(".")[0] == "airflow":
                found += [(file, str(part.module), alias.name) for alias in part.names]
            elif isinstance(part, ast.Import):
                found += [(file, alias.name, "") for alias in part.names if alias.name.partition(".")[0] == "airflow"]
    return found


def test_a_name_that_airflow_sdk_has_is_imported_from_there() -> None:
    import airflow.sdk

    names = airflow.sdk.__all__
    elsewhere = [(file, module, name) for file, module, name in imported() if name in names and module != "airflow.sdk"]

    assert elsewhere == []


def test_what_airflow_does_not_make_public_is_pinned() -> None:
    internal = {f"{module}:{name}" for _, module, name in imported() if module not in PUBLIC}

    assert internal - INTERNAL.keys() == set(), "use a public name, or pin it in INTERNAL"


@pytest.mark.parametrize("name", INTERNAL)
def test_it_is_there_and_takes_what_is_relied_on(name: str) -> None:
    breaks, parameters = INTERNAL[name]
    module, _, attribute = name.partition(":")
    try:
        found: Any = getattr(import_module(module), attribute)
    except (ImportError, AttributeError):
        pytest.fail(f"{AIRFLOW} has no {name}. What breaks: {breaks}", pytrace=False)
    taken = list(inspect.signature(found).parameters) if parameters else []
    assert set(parameters) <= set(taken), f"{AIRFLOW}: {name} takes {taken}. What breaks: {breaks}"


def test_a_request_of_a_thread_can_see_whether_the_event_loop_asks_too() -> None:
    comms = import_module("airflow.sdk.execution_time.comms").CommsDecoder

    found = {field.name for field in attrs.fields(comms)}
    assert "_loop_thread_id" in found, (
        f"{AIRFLOW}: a body that asks Airflow asynchronously could fail (runtime/record/store.py)"
    )


def test_a_task_says_under_the_key_of_skip_mixin_whom_it_skips() -> None:
    from airflow.sdk.bases import skipmixin

    assert (skipmixin.XCOM_SKIPMIXIN_KEY, skipmixin.XCOM_SKIPMIXIN_SKIPPED, skipmixin.XCOM_SKIPMIXIN_FOLLOWED) == (
        "skipmixin_key",
        "skipped",
        "followed",
    ), f"{AIRFLOW}: a task could not tell who skipped it (operators/graph.py)"
