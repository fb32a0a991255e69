"""The package itself: cheap to import, complete, and a provider that Airflow accepts."""

from __future__ import annotations

import json
from importlib.metadata import distribution
from pathlib import Path

import adk_airflow_llama_index
import pytest


def test_importing_the_package_imports_no_library_and_opens_no_socket(start):
    process = start(
        """
import sys
sockets = []
sys.addaudithook(lambda event, args: sockets.append(event) if event.startswith("socket.") else None)
import adk_airflow_llama_index
heavy = ("airflow", "bm25s", "filelock", "google", "llama_index", "numpy", "pydantic")
print([name for name in heavy if name in sys.modules], sockets)
"""
    )
    output, errors = process.communicate(timeout=60)
    assert (output.strip(), errors) == ("[] []", "")


def test_opening_an_index_that_is_not_there_needs_neither_llama_index_nor_airflow(start, tmp_path):
    process = start(
        """
import sys
from adk_airflow_llama_index import open_index
try:
    open_index(sys.argv[1])
except LookupError as error:
    print(type(error).__name__, [name for name in ("airflow", "llama_index") if name in sys.modules])
""",
        tmp_path / "nothing",
    )
    output, _ = process.communicate(timeout=60)
    assert output.strip() == "IndexNotFoundError []"


def test_every_public_name_can_be_imported_and_others_are_refused():
    for name in adk_airflow_llama_index.__all__:
        assert getattr(adk_airflow_llama_index, name).__name__ == name
    assert set(adk_airflow_llama_index.__all__) <= set(dir(adk_airflow_llama_index))
    assert not hasattr(adk_airflow_llama_index, "VectorIndex")


def test_airflow_accepts_the_provider_info_of_the_entry_point():
    airflow = pytest.importorskip("airflow", reason="Airflow is not a dependency of this package")
    jsonschema = pytest.importorskip("jsonschema", reason="comes with Airflow")

    entry_points = distribution("adk-airflow-llama-index").entry_points
    (entry_point,) = entry_points.select(group="apache_airflow_provider")
    info = entry_point.load()()
    schema = Path(airflow.__file__).with_name("provider_info.schema.json")
    jsonschema.validate(info, json.loads(schema.read_text(encoding="utf-8")))
    assert info["package-name"] == "adk-airflow-llama-index"
    assert info["versions"] == [adk_airflow_llama_index.__version__]
