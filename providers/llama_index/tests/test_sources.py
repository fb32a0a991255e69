"""Which files of a directory are documents."""

from __future__ import annotations

import os

import pytest
from adk_airflow_llama_index import IndexSourceError, open_index, refresh_index


def names_and_reasons(report):
    skipped = {entry["document"]: entry["reason"] for entry in report.skipped}
    return open_index(report.location).documents, skipped


def test_text_files_at_any_depth_are_documents_named_by_their_path(documents, tmp_path):
    names, skipped = names_and_reasons(refresh_index(documents, tmp_path / "index"))
    assert names == ["croniter.md", "guide/pools.md", "pendulum.md", "sqlalchemy.md"]
    assert skipped == {}


def test_what_is_not_text_is_skipped_and_named_with_the_reason(documents, tmp_path):
    (documents / "logo.png").write_bytes(b"\x89PNG\0\0")
    (documents / "latin.txt").write_bytes("Grüße".encode("latin-1"))
    (documents / "blank.md").write_text(" \n\n")
    (documents / "gone.md").symlink_to(documents / "nowhere.md")
    (documents / "loop.md").symlink_to(documents / "loop.md")
    os.mkfifo(documents / "pipe")

    names, skipped = names_and_reasons(refresh_index(documents, tmp_path / "index"))

    assert len(names) == 4
    assert skipped == {
        "blank.md": "empty",
        "gone.md": "not readable (No such file or directory)",
        "latin.txt": "not text (it is not UTF-8)",
        "loop.md": "not readable (Too many levels of symbolic links)",
        "logo.png": "not text (it contains NUL bytes)",
        "pipe": "not a regular file",
    }


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission_is_skipped(documents, tmp_path):
    (documents / "pendulum.md").chmod(0)
    _, skipped = names_and_reasons(refresh_index(documents, tmp_path / "index"))
    assert skipped == {"pendulum.md": "not readable (Permission denied)"}


def test_hidden_files_are_ignored_without_a_word(documents, tmp_path, write):
    write(documents, {".hidden.md": "secret", ".git/config": "secret"})
    names, skipped = names_and_reasons(refresh_index(documents, tmp_path / "index"))
    assert (len(names), skipped) == (4, {})


def test_links_are_followed_inside_the_directory_only(documents, tmp_path, write):
    outside = write(tmp_path / "outside", {"secret.md": "not to be indexed"})
    (documents / "outside.md").symlink_to(outside / "secret.md")
    (documents / "folder").symlink_to(outside)
    (documents / "again.md").symlink_to(documents / "pendulum.md")

    names, skipped = names_and_reasons(refresh_index(documents, tmp_path / "index"))

    assert "again.md" in names
    assert skipped == {
        "folder": "a link that leads outside the directory",
        "outside.md": "a link that leads outside the directory",
    }


def test_a_byte_order_mark_is_not_part_of_the_text(documents, tmp_path):
    (documents / "marked.md").write_bytes(b"\xef\xbb\xbfzebra crossing")
    index = open_index(refresh_index(documents, tmp_path / "index").location)
    assert [passage.text for passage in index.search("zebra")] == ["zebra crossing"]


def test_a_name_that_is_not_utf_8_is_skipped(documents, tmp_path):
    (documents / os.fsdecode(b"caf\xe9.md")).write_text("coffee")
    _, skipped = names_and_reasons(refresh_index(documents, tmp_path / "index"))
    assert skipped == {"caf\ufffd.md": "its name is not UTF-8"}


def test_unusual_text_comes_back_as_it_was(documents, tmp_path):
    text = 'line separator \u2028 next\x85 "quotes" <|endoftext|> 漢字 \U0001f980 zebra'
    (documents / "odd.md").write_text(text, encoding="utf-8")
    index = open_index(refresh_index(documents, tmp_path / "index").location)
    assert [passage.text for passage in index.search("zebra")] == [text]


@pytest.mark.parametrize("kind", ["missing", "file", "empty", "pictures only", "stop words only"])
def test_a_directory_without_documents_is_refused_by_name_and_the_old_index_stays(kind, documents, tmp_path, write):
    before = refresh_index(documents, tmp_path / "index")
    source = tmp_path / "source"
    if kind == "file":
        source.write_text("text")
    elif kind != "missing":
        source.mkdir()
    if kind == "pictures only":
        (source / "logo.png").write_bytes(b"\0")
    if kind == "stop words only":
        write(source, {"the.md": "the a of"})

    with pytest.raises(IndexSourceError, match=str(source)):
        refresh_index(source, tmp_path / "index")

    assert open_index(before.location).search("cron")[0].document == "croniter.md"
    assert refresh_index(documents, tmp_path / "index").built is False


def test_the_index_must_not_lie_among_the_documents(documents):
    with pytest.raises(IndexSourceError, match="inside the document directory"):
        refresh_index(documents, documents / "index")
