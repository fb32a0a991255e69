"""What a search answers."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
from adk_airflow_llama_index import EmbeddingModelError, Passage, open_index, refresh_index


@pytest.fixture
def index(documents, tmp_path):
    return open_index(refresh_index(documents, tmp_path / "index").location)


@pytest.fixture
def build(tmp_path, write):
    """An index of texts by name."""

    def build_index(texts, **options):
        return open_index(refresh_index(write(tmp_path / "made", texts), tmp_path / "made.index", **options).location)

    return build_index


def test_the_best_document_comes_first_with_its_passage_and_score(index):
    best, *_ = index.search("Which package parses cron expressions?")
    assert best.document == "croniter.md"
    assert best.text.startswith("A calendar helper.")
    assert best.score > 0


def test_words_are_found_in_other_forms(index):
    assert [passage.document for passage in index.search("limiting")] == ["guide/pools.md"]


@pytest.mark.parametrize("query", ["", " \n\t", "the of and", "zebra", "?!", "a"])
def test_a_query_that_matches_nothing_finds_nothing(query, index):
    assert index.search(query) == []


def test_no_more_than_top_k_documents_are_returned(index):
    assert len(index.search("task date database cron", top_k=10)) == 4
    assert len(index.search("task date database cron", top_k=2)) == 2
    with pytest.raises(ValueError, match="top_k is 0"):
        index.search("cron", top_k=0)


def test_a_document_is_returned_once_with_its_best_passage(build):
    long = " ".join(f"Part {number} is about zebras." for number in range(80))
    index = build(
        {"long.md": f"{long} Here zebras, zebras and again zebras.", "short.md": "A zebra among other animals."},
        chunk_size=12,
        chunk_overlap=0,
    )
    found = index.search("zebras", top_k=2)
    assert [passage.document for passage in found] == ["long.md", "short.md"]
    assert found[0].text == "Here zebras, zebras and again zebras."


def test_equal_scores_are_ordered_by_name(build):
    names = [f"copy-{number:02}.md" for number in range(40)]
    index = build(dict.fromkeys(names, "Every file says the same about zebras."))
    assert [passage.document for passage in index.search("zebras", top_k=5)] == names[:5]


def test_a_collection_of_one_document_can_be_searched(build):
    index = build({"only.md": "zebra"})
    assert [passage.document for passage in index.search("zebra", top_k=5)] == ["only.md"]
    assert index.search("lion") == []


def test_a_query_of_100_kb_is_answered(index):
    query = "Which package parses cron expressions, please? " * 2_200
    assert len(query) > 100_000
    assert index.search(query)[0].document == "croniter.md"


def test_the_documents_are_not_needed_any_more(index, documents):
    shutil.rmtree(documents)
    assert index.search("cron")[0].document == "croniter.md"


def test_a_process_loads_a_version_once_and_keeps_it(index):
    assert open_index(index.location) is index
    shutil.rmtree(index.location)
    assert open_index(index.location).search("cron")[0].document == "croniter.md"


def test_threads_share_an_index_and_get_the_same_answers(documents, tmp_path):
    location = refresh_index(documents, tmp_path / "index").location
    queries = ["cron expressions", "limiting tasks", "databases", "readable dates"] * 20

    def ask(query: str) -> list[Passage]:
        return open_index(location).search(query)

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(ask, queries))
    assert answers == [ask(query) for query in queries]


@pytest.mark.parametrize("mode", ["dense", "fused"])
def test_searching_embeddings_that_the_index_lacks_is_an_error(mode, index):
    with pytest.raises(EmbeddingModelError, match=rf"{mode!r} needs embeddings.*refresh_index with embed_model"):
        index.search("cron", mode=mode)


def test_an_unknown_mode_is_an_error(index):
    with pytest.raises(ValueError, match="Unknown search mode 'sparse'"):
        index.search("cron", mode="sparse")
