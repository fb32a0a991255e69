"""The DAGs of the fault tests, as files that a worker finds, and their model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.model import FaultyModel
from tests.supervised import dag_files

DAGS = Path(__file__).parent / "dags"


@pytest.fixture(scope="module")
def dags(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    files = {path.name: path.read_text() for path in DAGS.glob("fault_*.py")}
    with FaultyModel() as model, pytest.MonkeyPatch.context() as patch, dag_files(files):
        patch.setenv("FAULTS_FOLDER", str(tmp_path_factory.mktemp("faults")))
        patch.setenv("NO_PROXY", "127.0.0.1")
        for name, value in model.environment.items():
            patch.setenv(name, value)
        yield
