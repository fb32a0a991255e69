"""The package itself: cheap to import, complete, and a provider that Airflow accepts, with a form."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import adk_airflow_toolbox
import airflow
import jsonschema
from airflow.providers_manager import ProvidersManager
from airflow.sdk.providers_manager_runtime import ProvidersManagerTaskRuntime


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.strip()


def test_importing_the_package_imports_no_library_and_opens_no_socket() -> None:
    assert (
        run("""
import sys
sockets = []
sys.addaudithook(lambda event, args: sockets.append(event) if event.startswith("socket.") else None)
import adk_airflow_toolbox
heavy = ("aiohttp", "airflow", "google", "mcp", "pydantic", "toolbox_adk", "toolbox_core")
print([name for name in heavy if name in sys.modules], sockets)
""")
        == "[] []"
    )


def test_making_a_toolset_and_a_tool_of_it_reads_no_connection_and_opens_no_socket() -> None:
    assert (
        run("""
import sys
import google.adk.tools.base_toolset
sockets = []
sys.addaudithook(lambda event, args: sockets.append(event) if event.startswith("socket.") else None)
from adk_airflow_toolbox import ConnectionToolboxToolset
toolset = ConnectionToolboxToolset("nowhere", toolset_name="reading", bound_params={"customer": "Ada"})
tool = toolset.tool("count_orders")
print([name for name in ("airflow", "mcp", "toolbox_adk", "toolbox_core") if name in sys.modules], sockets, tool.name)
""")
        == "[] [] count_orders"
    )


def test_every_public_name_can_be_imported_and_others_are_refused() -> None:
    for name in adk_airflow_toolbox.__all__:
        assert getattr(adk_airflow_toolbox, name).__name__ == name
    assert set(adk_airflow_toolbox.__all__) <= set(dir(adk_airflow_toolbox))
    assert not hasattr(adk_airflow_toolbox, "ToolboxToolset")


def test_airflow_accepts_the_provider_info_of_the_entry_point() -> None:
    (entry_point,) = distribution("adk-airflow-toolbox").entry_points.select(group="apache_airflow_provider")
    info = entry_point.load()()
    schema = Path(airflow.__file__).with_name("provider_info.schema.json")
    jsonschema.validate(info, json.loads(schema.read_text(encoding="utf-8")))
    # The form has a schema of its own, which Airflow applies to its own providers only.
    whole = json.loads(Path(airflow.__file__).with_name("provider.yaml.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(info["connection-types"], whole["properties"]["connection-types"])
    assert info["versions"] == [adk_airflow_toolbox.__version__]


def test_airflow_shows_the_form_of_the_connection_type() -> None:
    hooks = ProvidersManagerTaskRuntime().hooks
    assert hooks["mcp_toolbox"].hook_name == "MCP Toolbox"
    manager = ProvidersManager()
    fields = [name for name in manager.connection_form_widgets if name.startswith("extra__mcp_toolbox__")]
    assert fields == [f"extra__mcp_toolbox__{name}" for name in ("headers", "auth_services", "bound_params")]
    assert manager.field_behaviours["mcp_toolbox"]["relabeling"]["host"] == "URL"
