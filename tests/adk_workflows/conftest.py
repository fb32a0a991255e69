"""Loads the demo's workflow from the DAG folder and runs it by hand, with ADK's in-memory runner."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from google.adk.runners import InMemoryRunner, Runner
from google.genai import types

WORKFLOWS_DIR = Path(__file__).parents[2] / "dags" / "adk_workflows"

PACKAGE = "batch_retrieval_workflows"
"""The package's name here. The folder's own name would not do: LlamaIndex has a top-level `workflows`."""


def _load(module: str) -> ModuleType:
    if PACKAGE not in sys.modules:
        spec = importlib.util.spec_from_file_location(PACKAGE, WORKFLOWS_DIR / "__init__.py")
        assert spec is not None
        assert spec.loader is not None
        package = importlib.util.module_from_spec(spec)
        sys.modules[PACKAGE] = package
        spec.loader.exec_module(package)
    return importlib.import_module(f"{PACKAGE}.{module}")


@dataclass
class Outcome:
    """What one run left behind."""

    outputs: dict[str, Any] = field(default_factory=dict)
    """The last output of each node, by the node's name."""
    state: dict[str, Any] = field(default_factory=dict)
    markdown: str | None = None
    json: dict[str, Any] | None = None

    @property
    def report(self) -> Any:
        return self.outputs["report"]


async def _run(runner: Runner, state: dict[str, Any]) -> Outcome:
    outcome = Outcome()
    session = await runner.session_service.create_session(app_name=runner.app_name, user_id="u", state=state)
    message = types.Content(role="user", parts=[types.Part(text="go")])
    async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message):
        if event.output is not None:
            outcome.outputs[event.node_name] = event.output
    after = await runner.session_service.get_session(app_name=runner.app_name, user_id="u", session_id=session.id)
    assert after is not None
    outcome.state = dict(after.state)
    if runner.artifact_service is not None:
        texts = {}
        for name in ("report.md", "report.json"):
            part = await runner.artifact_service.load_artifact(
                app_name=runner.app_name, user_id="u", session_id=session.id, filename=name
            )
            assert part is not None
            assert part.inline_data is not None
            assert part.inline_data.data is not None
            texts[name] = part.inline_data.data.decode()
        outcome.markdown, outcome.json = texts["report.md"], json.loads(texts["report.json"])
    return outcome


@pytest.fixture
def workflows_dir() -> Path:
    return WORKFLOWS_DIR


@pytest.fixture
def load() -> Callable[[str], ModuleType]:
    """Imports a module of the DAG folder's workflow package."""
    return _load


@pytest.fixture
def run(tmp_path: Path, documents_dir: Path) -> Callable[..., Outcome]:
    """Runs the workflow on `documents_dir`; keyword arguments are the session's initial state."""

    def run_workflow(*, runner: Runner | None = None, **state: Any) -> Outcome:
        runner = runner or InMemoryRunner(node=_load("batch_retrieval").root_agent)
        defaults = {"documents_dir": str(documents_dir), "data_dir": str(tmp_path / "data")}
        return asyncio.run(_run(runner, {**defaults, **state}))

    return run_workflow


@pytest.fixture
def questions_file(tmp_path: Path) -> Callable[[str], str]:
    """Writes the text of a questions file and gives its path."""

    def write(text: str) -> str:
        path = tmp_path / "questions.yaml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


@pytest.fixture
def documents_dir(tmp_path: Path) -> Path:
    directory = tmp_path / "documents"
    directory.mkdir()
    texts = {
        "bread.md": "Knead the dough for ten minutes, let it rise, and bake the loaf in a hot oven.",
        "bicycle.md": "Patch a bicycle tyre: find the puncture, roughen the rubber, glue, press, pump.",
        "chess.md": "The knight jumps over other pieces; castling moves the king and a rook together.",
        "garden/tomato.md": "Tomatoes want sun and a stake. Water the soil, not the leaves.",
        "kite.md": "A kite needs a light frame, a sail of thin paper and a tail that keeps it steady.",
        "stars.md": "Polaris stays nearly still while the other stars turn around the northern sky.",
    }
    for name, text in texts.items():
        path = directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return directory
