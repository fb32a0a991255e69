"""The descriptions of the installed distributions as files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def documents(load: Callable[[str], ModuleType]) -> ModuleType:
    return load("_documents")


def files(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in directory.iterdir() if not path.name.startswith(".")}


def test_installed_distributions_describe_themselves_under_their_normalized_names(
    documents: ModuleType,
) -> None:
    described, without_description = documents.installed_descriptions()

    assert len(described) >= 150
    assert without_description >= 1
    assert list(described) == sorted(described)
    assert "pyyaml.md" in described
    assert "pytest" in described["pytest.md"]
    assert min(map(len, described.values())) >= documents.MIN_DESCRIPTION_CHARS


def test_names_and_texts_come_from_the_metadata_wherever_it_keeps_them(
    documents: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "It does one thing. " * 20
    for folder, content in {
        "New_Style-1.0.dist-info": f"Metadata-Version: 2.1\nName: New_Style\n\n{text}\n",
        "old.style-1.0.dist-info": f"Metadata-Version: 1.1\nName: old.style\nDescription: {text}\n",
        "silent-1.0.dist-info": "Metadata-Version: 2.1\nName: silent\n",
        "left_over-1.0.dist-info": "",
    }.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "METADATA").write_text(content)
    before, without_before = documents.installed_descriptions()
    monkeypatch.syspath_prepend(tmp_path)

    described, without_description = documents.installed_descriptions()

    assert described == {**before, "new-style.md": text.strip(), "old-style.md": text.strip()}
    assert without_description == without_before + 1


def test_only_what_changed_is_written_and_what_is_gone_is_removed(documents: ModuleType, tmp_path: Path) -> None:
    directory = tmp_path / "documents"
    counts = documents.write_documents({"a.md": "one", "b.md": "two", "c.md": "three"}, directory)
    assert counts == {"documents": 3, "written": 3, "unchanged": 0, "removed": 0}
    untouched = (directory / "a.md").stat().st_ino

    counts = documents.write_documents({"a.md": "one", "b.md": "zwei", "d.md": "four"}, directory)

    assert counts == {"documents": 3, "written": 2, "unchanged": 1, "removed": 1}
    assert files(directory) == {"a.md": "one\n", "b.md": "zwei\n", "d.md": "four\n"}
    assert (directory / "a.md").stat().st_ino == untouched


def test_a_directory_with_files_of_somebody_else_is_left_alone(documents: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "diary.md").write_text("mine")

    with pytest.raises(ValueError, match="Choose another data_dir") as error:
        documents.write_documents({"a.md": "one"}, tmp_path)

    assert str(tmp_path) in str(error.value)
    assert files(tmp_path) == {"diary.md": "mine"}


def test_a_write_that_fails_leaves_the_old_file_and_no_other(documents: ModuleType, tmp_path: Path) -> None:
    directory = tmp_path / "documents"
    documents.write_documents({"a.md": "one"}, directory)
    (directory / "b.md").mkdir()  # nothing can be put in the place of a directory

    with pytest.raises(OSError, match=r"b\.md"):
        documents.write_documents({"a.md": "one", "b.md": "two"}, directory)

    assert sorted(path.name for path in directory.iterdir()) == [".installed_distributions", "a.md", "b.md"]
