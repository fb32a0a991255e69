"""The package as Airflow and Python see it: entry points, what an import costs, and which way imports point."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "adk_airflow"

# Each imports only from itself and from those before it. Two modules of `adk` stand before it, for `source` and `services`.
ROOMS = [
    "errors",
    "runtime.wire",
    "runtime.failures",
    "runtime.record",
    "runtime.adk.cli",
    "runtime.start",
    "runtime.airflow_state",
    "runtime.services",
    "runtime.adk",
    "runtime.source",
    "runtime.tool_source",
    "runtime.event_loop",
    "runtime.envelopes",
    "runtime.inbox",
    "runtime.outbox",
    "runtime.task",
    "operators",
    "translator",
    "dag",
    "decorators",
    "agents_folder",
    "testing",
    "workflow_commands",
    "local",
    "cli",
]
APART = {"get_provider_info", "plugin"}


def test_airflow_finds_the_provider_and_the_plugin() -> None:
    from airflow.providers_manager import ProvidersManager

    from adk_airflow.plugin import AdkAirflowPlugin

    providers = ProvidersManager().providers
    plugins = {point.name: point.load() for point in entry_points(group="airflow.plugins")}

    assert providers["adk-airflow"].data["name"] == "Google ADK workflows"
    assert "adk-airflow-llama-index" in providers
    assert plugins["adk_airflow"] is AdkAirflowPlugin


def test_the_configuration_options_have_their_defaults() -> None:
    from airflow.configuration import conf

    options = ("artifacts_uri", "artifacts_conn_id", "memory_service_uri")

    assert [conf.get("adk_airflow", option) for option in options] == ["", "", ""]


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        ("import adk_airflow", ("airflow", "google.adk", "pydantic")),
        ("import adk_airflow.translator.plan", ("airflow", "google.adk", "pydantic")),
        ("from adk_airflow import plan_workflow", ("airflow", "google.adk")),
        ("import adk_airflow_llama_index", ("airflow", "google.adk", "llama_index")),
    ],
)
def test_an_import_costs_nothing(code: str, unwanted: tuple[str, ...]) -> None:
    script = f"import sys\n{code}\nprint([m for m in sys.modules if m in {unwanted!r}])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_every_public_name_can_be_imported() -> None:
    import adk_airflow

    assert all(getattr(adk_airflow, name) is not None for name in adk_airflow.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'AdkDagg'"):
        adk_airflow.AdkDagg  # noqa: B018


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__").rstrip(".")


def room_of(module: str) -> str:
    """The room that a module, or a name in it, belongs to."""
    found = [room for room in ROOMS if f"{module}.".startswith(f"{room}.")]
    assert found, f"adk_airflow.{module} is in no room: say in ROOMS what it may import from"
    return max(found, key=len)


def imports_of(path: Path) -> set[str]:
    """The rooms that a module imports from, in functions too; type-checking imports as well."""
    found = set()
    for statement in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(statement, ast.ImportFrom) and statement.module:
            names = [f"{statement.module}.{alias.name}" for alias in statement.names]
        elif isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        found |= {room_of(name.partition(".")[2]) for name in names if name.startswith("adk_airflow.")}
    return found


MODULES = sorted(module for path in PACKAGE.rglob("*.py") if (module := module_of(path)) and module not in APART)


@pytest.mark.parametrize("module", [module for module in MODULES if module != "runtime"])
def test_imports_point_one_way(module: str) -> None:
    path = PACKAGE.joinpath(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")

    assert imports_of(path) <= set(ROOMS[: ROOMS.index(room_of(module)) + 1])


def test_the_local_airflow_knows_nothing_of_the_rest() -> None:
    modules = list((PACKAGE / "local").glob("*.py"))

    assert modules
    assert {room for path in modules for room in imports_of(path)} <= {"local"}


def test_the_retrieval_provider_imports_neither_airflow_nor_this_package() -> None:
    for path in (PACKAGE.parent / "providers" / "llama_index" / "adk_airflow_llama_index").glob("*.py"):
        modules = {
            statement.module or ""
            for statement in ast.walk(ast.parse(path.read_text()))
            if isinstance(statement, ast.ImportFrom)
        }
        assert not {module for module in modules if module.split(".")[0] in ("airflow", "adk_airflow")}, path
