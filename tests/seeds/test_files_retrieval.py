"""Seed 000, section 5: FilesRetrieval, as DAG runs; the embeddings come from the local Gemini server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from adk_airflow_llama_index import FilesRetrieval
from google.adk.agents.llm_agent import LlmAgent
from google.adk.workflow import START, Workflow, node

from adk_airflow import AdkDag
from adk_airflow.testing import run_workflow
from tests.seeds import files_retrieval as seed
from tests.seeds.as_dag import StartServer, parameters_of, run_agent, run_both
from tests.servers.gemini import GeminiRequest, call

TEXTS = {
    "bread.md": "Knead the dough, let it rise, and bake the loaf in a hot oven.",
    "tyre.md": "Patch a bicycle tyre: find the puncture, glue, press, pump.",
}


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., str]:
    """Makes a folder of files and gives its path."""

    def make(name: str = "docs", **texts: str) -> str:
        path = tmp_path / name
        path.mkdir()
        for file, text in ({f"{name}.md": text for name, text in texts.items()} or TEXTS).items():
            (path / file).write_text(text)
        return str(path)

    return make


def searching(request: GeminiRequest) -> Any:
    """A model that searches with the user's words in the tool that the words name, and quotes what it found."""
    if not request.method.startswith("generate"):
        return None
    if request.function_responses:
        return f"It says: {request.function_responses[0]['response']['result']}"
    tool = next((name for name in request.tools if name.removeprefix("search_") in request.last_text), None)
    return call(tool or next(iter(request.tools)), {"query": request.last_text})


def embedded(requests: list[GeminiRequest]) -> list[str]:
    return [text for request in requests if "mbed" in request.method for text in request.texts]


def test_example_1_the_folder_is_embedded_when_the_tool_is_made_and_searched_in_the_task(
    gemini: StartServer, folder: Callable[..., str]
) -> None:
    server = gemini(searching)
    agent = seed.docs_agent(folder())
    at_first = list(server.requests)

    run = run_agent(agent, "How do I patch a bicycle tyre?")

    assert {request.model for request in at_first} == {"gemini-embedding-2-preview"}
    assert all(len(request.texts) == 1 for request in at_first)
    assert sorted(text for text in embedded(at_first) for part in TEXTS.values() if part in text) != []
    in_the_task = embedded(server.requests[len(at_first) :])
    assert [text for text in in_the_task if "patch" in text] != []
    assert [text for text in in_the_task if "Knead" in text] == []
    assert TEXTS["tyre.md"] in run.output


def test_example_1_the_model_sees_a_function_with_a_query(gemini: StartServer, folder: Callable[..., str]) -> None:
    both = run_both(gemini(searching), seed.docs_agent(folder()), "How do I bake a loaf?")

    asked = next(request for request in both.requests if request.method == "generateContent")
    assert list(parameters_of(asked, "search_docs")) == ["query"]
    assert TEXTS["bread.md"] in both.run.output
    both.assert_same()


def test_example_2_another_embedding_model_in_batches(gemini: StartServer, folder: Callable[..., str]) -> None:
    server = gemini(searching)
    agent = seed.policy_agent(folder())
    at_first = list(server.requests)

    run = run_agent(agent, "bake a loaf")

    assert {request.model for request in at_first} == {"text-embedding-005"}
    assert len(at_first) == 1
    assert len(at_first[0].texts) == 2
    assert TEXTS["bread.md"] in run.output


@pytest.mark.parametrize(("topic", "found"), [("legal", "contract"), ("technical", "bolt")])
def test_example_3_two_folders_are_two_tools(gemini: StartServer, folder: Callable[..., str], topic: str, found: str) -> None:
    gemini(searching)
    agent = seed.knowledge_agent(folder("legal", a="The contract ends in May."), folder("technical", b="Turn the bolt."))

    run = run_agent(agent, f"a {topic} question")

    assert found in run.output


def test_example_4_made_inside_a_node_nothing_is_embedded_until_the_task_runs(
    gemini: StartServer, folder: Callable[..., str]
) -> None:
    server = gemini(searching)
    AdkDag(seed.lazy_retrieval, schedule=None)
    assert server.requests == []

    both = run_both(server, seed.lazy_retrieval, "How do I bake a loaf?", {"docs_dir": folder()})

    assert TEXTS["bread.md"] in both.run.output
    both.assert_same(nodes=False)


def test_example_5_without_llama_index_the_import_says_what_to_install() -> None:
    program = """
import sys
sys.modules["llama_index"] = None  # Python's way to say that there is no such package
try:
    from google.adk.tools.retrieval import FilesRetrieval
except ImportError as error:
    print(f"missing: {error}")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert "missing: FilesRetrieval requires additional dependencies" in done.stdout
    assert "google-adk[extensions]" in done.stdout


def test_the_drop_in_embeds_in_the_task_and_once_for_all_mapped_tasks(gemini: StartServer, folder: Callable[..., str]) -> None:
    server = gemini(searching)
    tool = FilesRetrieval(name="search_docs", description="Search the documentation files.", input_dir=folder())
    agent = LlmAgent(name="docs_agent", model=seed.MODEL, instruction="Search first.", tools=[tool])

    def questions(node_input: str) -> list[str]:
        return ["bake a loaf", "patch a bicycle tyre", "knead the dough"]

    workflow = Workflow(name="many", edges=[(START, questions), (questions, node(agent, parallel_worker=True))])
    assert server.requests == []

    run = run_workflow(workflow)

    assert [next(name for name in TEXTS if TEXTS[name] in text) for text in run.output] == ["bread.md", "tyre.md", "bread.md"]
    assert [text for text in embedded(server.requests) if text in TEXTS.values()] == list(TEXTS.values())
