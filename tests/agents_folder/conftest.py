"""Folders of ADK projects, and how Airflow's DAG processor and task processes read the DAG file beside them."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from airflow.dag_processing.dagbag import BundleDagBag

_NUMBERS = itertools.count()


class Folder:
    """A DAGs folder with ADK projects in ``agents/``; project names are made unique, since all tests share a process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._suffix = f"_{next(_NUMBERS)}"

    def name(self, project: str) -> str:
        """The project's name in this test."""
        return project + self._suffix

    def project(self, project: str, **files: str) -> Path:
        """Writes a project; the names of files have ``__`` for a dot, and ``NAME`` in them is the project's name."""
        place = self.path / "agents" / self.name(project)
        place.mkdir(parents=True)
        for name, text in files.items():
            file = "__init__.py" if name == "init" else ".env" if name == "env" else name.replace("__", ".")
            (place / file).write_text(dedent(text).replace("NAME", self.name(project)))
        return place

    def bag(self, code: str = 'dags = load_agents("agents/")') -> BundleDagBag:
        """What Airflow's DAG processor makes of a DAG file with this code."""
        file = self.path / "all_agents.py"
        file.write_text(f"from adk_airflow import load_agents\n{dedent(code)}\n")
        return BundleDagBag(dag_folder=str(file), bundle_path=self.path, bundle_name="dags-folder", load_op_links=False)


# google-adk keeps what is set before it reads the first `.env` of a process, in whichever test that is.
os.environ["SET_BEFORE"] = "by Airflow"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    before = (list(sys.path), dict(os.environ))
    yield Folder(tmp_path)
    sys.path[:] = before[0]
    for name in os.environ.keys() - before[1].keys():
        del os.environ[name]


@pytest.fixture
def echo() -> Callable[..., str]:
    """The source of a project whose workflow returns the value of an expression."""

    def source(expression: str, imports: str = "") -> str:
        return (
            f"from google.adk import Workflow\n{imports}\ndef echo(node_input: str) -> str:\n    return str({expression})\n"
            + ("root_agent = Workflow(name='flow', description='Echoes.', edges=[('START', echo)])\n")
        )

    return source


@pytest.fixture
def in_task() -> Callable[[str, str], Any]:
    """What a task's process sees while it parses its DAG file."""
    from airflow.sdk.definitions._internal.dag_parsing_context import _airflow_parsing_context_manager

    return _airflow_parsing_context_manager


@pytest.fixture
def as_anyone() -> Callable[[Path], contextlib.AbstractContextManager[None]]:
    """Reads files as a user who is not root: root reads everything."""

    @contextlib.contextmanager
    def run(path: Path) -> Iterator[None]:
        if os.geteuid() != 0:
            yield
            return
        for folder in (path, *path.parents[:-2]):
            folder.chmod(folder.stat().st_mode | 0o055)
        os.seteuid(65534)
        try:
            yield
        finally:
            os.seteuid(0)

    return run
