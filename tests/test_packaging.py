"""The package as Airflow and Python see it: entry points, what an import costs, and which way imports point."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "adk_airflow"

# Each imports only from itself and from those before it. `adk.cli` imports nothing of ours, so that services may call it.
ROOMS = [
    "errors",
    "runtime.wire",
    "runtime.answers",
    "runtime.error_kinds",
    "runtime.failures",
    "runtime.sealing",
    "runtime.log_watch",
    "runtime.record",
    "runtime.adk.cli",
    "runtime.adk.missing_a2a",
    "runtime.start",
    "runtime.airflow_state",
    "runtime.services",
    "runtime.adk",
    "runtime.source",
    "runtime.tool_source",
    "runtime.project",
    "runtime.event_loop",
    "runtime.envelopes",
    "runtime.sending",
    "runtime.run_usage",
    "runtime.inbox",
    "runtime.outbox",
    "runtime.transcribing",
    "runtime.task",
    "preload",
    "plugin",
    "operators",
    "translator",
    "dag",
    "decorators",
    "agents_folder",
    "records",
    "record_commands",
    "testing",
    "workflow_commands",
    "doctor",
    "local",
    "cli",
]
APART = {"get_provider_info"}
PROJECT = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["project"]
LOCAL = ("httpx", "psutil", "rich")  # what only `adk_airflow/local` imports


def test_airflow_finds_the_providers() -> None:
    from airflow.providers_manager import ProvidersManager

    providers = ProvidersManager().providers

    assert providers["adk-airflow"].data["name"] == "Google ADK workflows"
    assert "adk-airflow-llama-index" in providers


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


def names_imported_by(path: Path) -> set[str]:
    """What a module imports, in functions too; type-checking imports as well."""
    found = set()
    for statement in ast.walk(ast.parse(path.read_text())):
        if isinstance(statement, ast.ImportFrom) and statement.module:
            found |= {f"{statement.module}.{alias.name}" for alias in statement.names}
        elif isinstance(statement, ast.Import):
            found |= {alias.name for alias in statement.names}
    return found


def imports_of(path: Path) -> set[str]:
    """The rooms that a module imports from."""
    return {room_of(name.partition(".")[2]) for name in names_imported_by(path) if name.startswith("adk_airflow.")}


def local_imports_of_the_core(package: Path) -> list[str]:
    """Each import of what the extra `local` brings, and of `local` itself by others than the command."""
    return sorted(
        f"{path.relative_to(package).as_posix()}: {name}"
        for path in package.rglob("*.py")
        if path.relative_to(package).parts[0] != "local"
        for name in names_imported_by(path)
        if name.partition(".")[0] in LOCAL or (name.startswith("adk_airflow.local") and path.name != "cli.py")
    )


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


def test_the_core_needs_nothing_of_the_extra_local() -> None:
    assert {re.split("[>=]", line)[0] for line in PROJECT["optional-dependencies"]["local"]} == set(LOCAL)
    assert [line for line in PROJECT["dependencies"] if line.startswith(LOCAL)] == []
    assert local_imports_of_the_core(PACKAGE) == []


def test_an_import_of_the_extra_local_is_found(tmp_path: Path) -> None:
    sources = {
        "operators/base.py": "def f():\n    import rich.console\nfrom adk_airflow.local.run import watch_run",
        "runtime/adk/runner.py": "from psutil import Process",
        "local/run.py": "import httpx",
        "cli.py": "from adk_airflow.local import commands",
    }
    for name, source in sources.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(source)

    assert local_imports_of_the_core(tmp_path) == [
        "operators/base.py: adk_airflow.local.run.watch_run",
        "operators/base.py: rich.console",
        "runtime/adk/runner.py: psutil.Process",
    ]


@pytest.mark.parametrize("command", ["demo", "up", "down"])
@pytest.mark.parametrize("missing", LOCAL)
def test_without_the_extra_a_command_says_what_to_install(command: str, missing: str, tmp_path: Path) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; from adk_airflow.cli import main; main([{command!r}])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)

    assert done.returncode == 1
    assert done.stderr == (
        f"adk-airflow: `adk-airflow {command}` needs the Python package {missing!r}, which is not installed here."
        ' Install the extra that it comes with, in a clone of adk-airflow: pip install -c constraints.txt ".[local]"\n'
    )


def test_the_retrieval_provider_imports_neither_airflow_nor_this_package() -> None:
    for path in (PACKAGE.parent / "providers" / "llama_index" / "adk_airflow_llama_index").glob("*.py"):
        modules = {
            statement.module or ""
            for statement in ast.walk(ast.parse(path.read_text()))
            if isinstance(statement, ast.ImportFrom)
        }
        assert not {module for module in modules if module.split(".")[0] in ("airflow", "adk_airflow")}, path
