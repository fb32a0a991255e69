"""Indexes with an embedding model."""

from __future__ import annotations

import pytest
from adk_airflow_llama_index import EmbeddingModelError, open_index, refresh_index


def found(index, query, **options):
    return [passage.document for passage in index.search(query, **options)]


def test_only_changed_documents_are_embedded_again(documents, tmp_path, write, new_embedding):
    first, second, third = new_embedding(), new_embedding(), new_embedding()
    refresh_index(documents, tmp_path / "index", embed_model=first)
    assert len(first.embedded) == 4

    write(documents, {"pendulum.md": "A new text about a task.", "rich.md": "Bars for a date."})
    report = refresh_index(documents, tmp_path / "index", embed_model=second)
    assert sorted(second.embedded) == ["A new text about a task.", "Bars for a date."]
    assert (report.added, report.changed, report.reused) == (1, 1, 3)

    (documents / "rich.md").unlink()
    report = refresh_index(documents, tmp_path / "index", embed_model=third)
    assert (report.built, report.removed, third.embedded) == (True, 1, [])
    assert found(open_index(report.location, embed_model=third), "task", mode="dense")[0] == "pendulum.md"


def test_dense_search_finds_what_is_near_and_nothing_else(documents, tmp_path, new_embedding):
    location = refresh_index(documents, tmp_path / "index", embed_model=new_embedding()).location
    index = open_index(location, embed_model=new_embedding())
    assert found(index, "the cron thing", mode="dense") == ["croniter.md"]
    assert found(index, "zebra", mode="dense") == []
    assert index.search("pool", mode="dense")[0].score == pytest.approx(2**-0.5, abs=1e-6)


def test_fused_search_is_the_default_and_ranks_by_both(tmp_path, write, new_embedding):
    source = write(
        tmp_path / "documents",
        {"both.md": "cron zebra", "dense.md": "cronology", "words.md": "zebra", "other.md": "lion"},
    )
    location = refresh_index(source, tmp_path / "index", embed_model=new_embedding()).location
    index = open_index(location, embed_model=new_embedding())

    assert found(index, "cron zebra", mode="bm25") == ["both.md", "words.md"]
    assert found(index, "cron zebra", mode="dense") == ["both.md", "dense.md"]
    fused = index.search("cron zebra")
    assert [passage.document for passage in fused] == ["both.md", "dense.md", "words.md"]
    assert fused[0].score == pytest.approx(2 / 61)
    assert fused[1].score == fused[2].score == pytest.approx(1 / 62)
    assert fused == index.search("cron zebra", mode="fused")
    assert found(index, "cron zebra", top_k=1) == ["both.md"]
    assert index.search("  ") == []


def test_a_query_of_100_kb_is_answered_by_both(documents, tmp_path, new_embedding):
    location = refresh_index(documents, tmp_path / "index", embed_model=new_embedding()).location
    index = open_index(location, embed_model=new_embedding())
    assert found(index, "cron expressions " * 6_000)[0] == "croniter.md"


def test_a_model_object_has_to_be_passed_again(documents, tmp_path, new_embedding):
    location = refresh_index(documents, tmp_path / "index", embed_model=new_embedding()).location
    index = open_index(location)
    with pytest.raises(EmbeddingModelError, match=r"WordEmbedding.*pass it as embed_model"):
        index.search("cron")
    assert found(index, "cron", mode="bm25") == ["croniter.md"]


@pytest.mark.parametrize("change", [{"model_name": "words-2"}, {"embed_dim": 3}, "mock"])
def test_another_model_is_refused_and_makes_another_version(change, documents, tmp_path, new_embedding):
    from llama_index.core.embeddings import MockEmbedding

    report = refresh_index(documents, tmp_path / "index", embed_model=new_embedding())
    if change == "mock":
        other = MockEmbedding(embed_dim=5)
    elif "embed_dim" in change:
        report = refresh_index(documents, tmp_path / "index", embed_model=MockEmbedding(embed_dim=5))
        other = MockEmbedding(embed_dim=3)
    else:
        other = new_embedding(**change)

    with pytest.raises(EmbeddingModelError, match="was built with the embedding model"):
        open_index(report.location, embed_model=other)
    assert refresh_index(documents, tmp_path / "index", embed_model=other).location != report.location


def test_a_model_that_changed_its_length_under_the_same_name_is_noticed(documents, tmp_path, write, new_embedding):
    location = refresh_index(documents, tmp_path / "index", embed_model=new_embedding()).location
    shorter = new_embedding(vocabulary=("cron", "pool"))
    with pytest.raises(EmbeddingModelError, match="gave 2 numbers"):
        open_index(location, embed_model=shorter).search("cron")

    write(documents, {"rich.md": "Bars."})
    with pytest.raises(EmbeddingModelError, match="of another length than before"):
        refresh_index(documents, tmp_path / "index", embed_model=shorter)


def test_embeddings_that_arrived_before_a_failure_are_not_asked_for_again(documents, tmp_path, new_embedding):
    failing = new_embedding(fail_after=3, embed_batch_size=1)
    with pytest.raises(ConnectionError):
        refresh_index(documents, tmp_path / "index", embed_model=failing)
    (journal,) = (tmp_path / "index").glob(".embeddings-*")
    journal.write_bytes(journal.read_bytes()[:-5])  # as a kill in the middle of a write leaves it

    model = new_embedding()
    report = refresh_index(documents, tmp_path / "index", embed_model=model)

    assert len(model.embedded) == 2  # the one that failed and the one that was cut short
    assert found(open_index(report.location, embed_model=model), "cron", mode="dense") == ["croniter.md"]
    assert not journal.exists()


def test_what_is_no_model_is_refused(documents, tmp_path):
    with pytest.raises(EmbeddingModelError, match=r"Unknown embedding model 'gpt'.*'gemini'"):
        refresh_index(documents, tmp_path / "index", embed_model="gpt")
    with pytest.raises(EmbeddingModelError, match="not int"):
        refresh_index(documents, tmp_path / "index", embed_model=7)
