"""The package itself: cheap to import, complete, and a provider that Airflow accepts."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import distribution, entry_points
from pathlib import Path

import adk_airflow_google_genai
import airflow
import jsonschema
import pytest
from adk_airflow_google_genai import GoogleGenAIHook, GoogleGenAIVertexHook, make_llm, memory_service
from airflow.providers_manager import ProvidersManager


@pytest.mark.parametrize("module", ["adk_airflow_google_genai", "adk_airflow_google_genai.hook"])
def test_importing_imports_no_google_library_and_opens_no_socket(module):
    program = f"""
import sys
sockets = []
sys.addaudithook(lambda event, args: sockets.append(event) if event == "socket.connect" else None)
import {module}
heavy = ("google.adk", "google.genai", "google.auth", "google.oauth2", "requests")
print([name for name in heavy if name in sys.modules], sockets)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines()[-1] == "[] []"


def test_every_public_name_can_be_imported_and_others_are_refused():
    for name in adk_airflow_google_genai.__all__:
        assert getattr(adk_airflow_google_genai, name).__name__ == name
    assert set(adk_airflow_google_genai.__all__) <= set(dir(adk_airflow_google_genai))
    assert not hasattr(adk_airflow_google_genai, "Account")


def test_the_entry_points_make_models_and_memory_of_the_types():
    made = {entry.name: entry.load() for entry in entry_points(group="adk_airflow.llm") if "google" in entry.name}
    assert made == {"google_genai": make_llm, "google_genai_vertex": make_llm}
    (memory,) = entry_points(group="adk_airflow.memory", name="google_genai_vertex")
    assert memory.load() is memory_service


def test_airflow_accepts_the_provider_info_of_the_entry_point():
    (entry_point,) = distribution("adk-airflow-google-genai").entry_points.select(group="apache_airflow_provider")
    info = entry_point.load()()
    schema = Path(airflow.__file__).with_name("provider_info.schema.json")
    jsonschema.validate(info, json.loads(schema.read_text(encoding="utf-8")))
    assert info["versions"] == [adk_airflow_google_genai.__version__]


def test_airflow_knows_the_types_their_hooks_and_forms():
    manager = ProvidersManager()
    hooks = {name: manager.hooks[name].hook_class_name for name in ("google_genai", "google_genai_vertex")}
    assert hooks == {
        "google_genai": f"{GoogleGenAIHook.__module__}.GoogleGenAIHook",
        "google_genai_vertex": f"{GoogleGenAIVertexHook.__module__}.GoogleGenAIVertexHook",
    }
    assert manager.field_behaviours["google_genai"]["relabeling"] == {"password": "API key", "host": "Base URL"}
    fields = {name for name in manager.connection_form_widgets if name.startswith("extra__google_genai_vertex__")}
    assert {name.rpartition("__")[2] for name in fields} == {
        "project",
        "location",
        "agent_engine",
        "data_store",
        "search_engine",
    }
