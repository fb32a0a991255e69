"""The drop-in for ADK's FilesRetrieval: what it finds, and when it reads."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path

import pytest
from adk_airflow_llama_index import FilesRetrieval, IndexSourceError
from google.adk.tools.retrieval.files_retrieval import FilesRetrieval as AdkFilesRetrieval


def ask(tool, query):
    return asyncio.run(tool.run_async(args={"query": query}, tool_context=None))


def make(documents, model, **options):
    return FilesRetrieval(name="search", description="Searches.", input_dir=str(documents), embedding_model=model, **options)


def test_it_takes_adks_arguments_and_declares_adks_function(documents, new_embedding):
    adk = inspect.signature(AdkFilesRetrieval.__init__).parameters
    ours = inspect.signature(FilesRetrieval.__init__).parameters
    assert [name for name in ours if name != "index_dir"] == list(adk)

    arguments = {"name": "search", "description": "Searches.", "input_dir": str(documents), "embedding_model": new_embedding()}
    assert FilesRetrieval(**arguments)._get_declaration() == AdkFilesRetrieval(**arguments)._get_declaration()


def test_it_finds_what_adks_finds(documents, new_embedding):
    adk = AdkFilesRetrieval(name="s", description="d", input_dir=str(documents), embedding_model=new_embedding())

    for query in (
        "cron",
        "What reads cron expressions?",
        "date",
        "dates, and the date of a database",
        "database database date",
    ):
        assert ask(make(documents, new_embedding()), query) == ask(adk, query)


def test_nothing_is_read_before_the_first_call_and_each_file_is_embedded_once_for_all(documents, new_embedding):
    model = new_embedding()
    tool = make(documents, model)
    assert model.embedded == []
    assert [path.name for path in documents.parent.iterdir()] == [documents.name]

    ask(tool, "cron")
    ask(tool, "date")
    assert len(model.embedded) == 4
    assert (documents.parent / f"{documents.name}.index").is_dir()

    other = new_embedding()
    ask(make(documents, other), "cron")  # as in another task
    assert other.embedded == []


def test_another_task_embeds_only_the_files_that_changed(documents, new_embedding, tmp_path):
    where = str(tmp_path / "elsewhere")
    ask(make(documents, new_embedding(), index_dir=where), "cron")
    (documents / "new.txt").write_text("Pools: a pool for each pool.")

    model = new_embedding()
    assert ask(make(documents, model, index_dir=where), "pool") == "Pools: a pool for each pool."
    assert model.embedded == ["Pools: a pool for each pool."]
    assert not (documents.parent / f"{documents.name}.index").exists()


def test_files_that_are_no_text_are_named(documents, new_embedding, caplog):
    (documents / "photo.jpg").write_bytes(b"\xff\xd8\xff\xe0")

    ask(make(documents, new_embedding()), "cron")
    assert "search: photo.jpg is not searched: " in caplog.text


def test_a_directory_that_is_missing_is_named(tmp_path, new_embedding):
    tool = make(tmp_path / "absent", new_embedding())

    with pytest.raises(IndexSourceError, match="absent"):
        ask(tool, "cron")


def test_parsing_a_module_with_it_imports_no_llama_index(start, tmp_path):
    program = (
        "import sys; from adk_airflow_llama_index import FilesRetrieval;"
        " FilesRetrieval(name='s', description='d', input_dir='absent');"
        " print(sorted(name for name in sys.modules if name.startswith('llama_index')))"
    )
    process = start(program)
    assert process.communicate(timeout=120)[0].strip() == "[]"
    assert Path("absent.index").exists() is False
