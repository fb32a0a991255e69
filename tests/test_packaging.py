"""The package as Airflow and Python see it: entry points, what an import costs, and which way imports point."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "adk_airflow"

# A folder imports from those below it only (and from `errors`, which everything may use).
FLOORS = ["runtime", "operators", "translator"]


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


def imports_of(path: Path) -> set[str]:
    """The folders (or modules) of adk_airflow that a module imports, in functions too; type-checking imports as well."""
    found = set()
    for statement in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(statement, ast.ImportFrom) and statement.module:
            names = [f"{statement.module}.{alias.name}" for alias in statement.names]
        elif isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        found |= {name.split(".")[1] for name in names if name.startswith("adk_airflow.") and name.count(".")}
    return found


@pytest.mark.parametrize("floor", FLOORS)
def test_imports_point_one_way(floor: str) -> None:
    allowed = {"errors", *FLOORS[: FLOORS.index(floor) + 1]}

    for path in (PACKAGE / floor).glob("*.py"):
        assert imports_of(path) <= allowed, path


def test_the_standalone_airflow_knows_nothing_of_the_rest() -> None:
    for path in (PACKAGE / "standalone").glob("*.py"):
        assert imports_of(path) <= {"standalone"}, path


def test_the_retrieval_provider_imports_neither_airflow_nor_this_package() -> None:
    for path in (PACKAGE.parent / "providers" / "llama_index" / "adk_airflow_llama_index").glob("*.py"):
        modules = {
            statement.module or ""
            for statement in ast.walk(ast.parse(path.read_text()))
            if isinstance(statement, ast.ImportFrom)
        }
        assert not {module for module in modules if module.split(".")[0] in ("airflow", "adk_airflow")}, path


def test_only_one_room_imports_private_names_of_adk() -> None:
    private = []
    for path in PACKAGE.rglob("*.py"):
        for statement in ast.walk(ast.parse(path.read_text())):
            module = getattr(statement, "module", None) or ""
            if isinstance(statement, ast.ImportFrom) and module.startswith("google.adk"):
                names = [*module.split("."), *(alias.name for alias in statement.names)]
                if any(name.startswith("_") for name in names):
                    private.append(path.relative_to(PACKAGE).as_posix())

    assert private
    assert {path.rpartition("/")[0] for path in private} == {"runtime/adk"}
