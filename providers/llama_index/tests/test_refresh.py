"""A refresh does the work that changes ask for, and publishes immutable versions."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from adk_airflow_llama_index import IndexNotFoundError, open_index, refresh_index
from adk_airflow_llama_index.versions import KEPT_VERSIONS, Manifest


def counts(report):
    return {name: getattr(report, name) for name in ("added", "changed", "removed", "reused", "built")}


def versions(index_dir: Path) -> list[str]:
    return sorted(path.name for path in index_dir.iterdir() if not path.name.startswith("."))


def test_the_first_refresh_adds_every_document(documents, tmp_path):
    report = refresh_index(documents, tmp_path / "index")
    assert counts(report) == {"added": 4, "changed": 0, "removed": 0, "reused": 0, "built": True}
    assert (report.documents, report.passages, report.skipped) == (4, 4, [])
    assert Path(report.location).parent == tmp_path / "index"


def test_the_report_is_plain_json(documents, tmp_path):
    report = refresh_index(str(documents), str(tmp_path / "index")).to_dict()
    assert json.loads(json.dumps(report)) == report
    assert set(report) == {
        *("location", "documents", "passages", "added", "changed", "removed", "reused", "skipped"),
        *("built", "seconds"),
    }


def test_the_same_content_is_the_same_version_and_nothing_is_built(documents, tmp_path):
    first = refresh_index(documents, tmp_path / "index")
    stamp = (Path(first.location) / "manifest.json").stat().st_mtime_ns
    (documents / "pendulum.md").touch()

    second = refresh_index(documents, tmp_path / "index")

    assert counts(second) == {"added": 0, "changed": 0, "removed": 0, "reused": 4, "built": False}
    assert second.location == first.location
    assert (Path(first.location) / "manifest.json").stat().st_mtime_ns == stamp


def test_two_index_directories_agree_on_the_version_of_a_content(documents, tmp_path):
    here, there = (refresh_index(documents, tmp_path / name).location for name in ("here", "there"))
    assert Path(here).name == Path(there).name


def test_changed_added_and_removed_documents_are_counted_and_found(documents, tmp_path, write):
    before = refresh_index(documents, tmp_path / "index")
    write(documents, {"pendulum.md": "Clocks and zebras.", "new/rich.md": "Progress bars in a terminal."})
    (documents / "sqlalchemy.md").unlink()

    report = refresh_index(documents, tmp_path / "index")

    assert counts(report) == {"added": 1, "changed": 1, "removed": 1, "reused": 2, "built": True}
    index = open_index(report.location)
    assert [passage.document for passage in index.search("zebras")] == ["pendulum.md"]
    assert [passage.document for passage in index.search("progress bars")] == ["new/rich.md"]
    assert index.search("database toolkit") == []
    assert [passage.document for passage in index.search("cron")] == ["croniter.md"]
    # Whoever was given the version before goes on with it.
    assert [p.document for p in open_index(before.location).search("database")] == ["sqlalchemy.md"]


def test_a_refreshed_index_answers_like_one_that_is_built_anew(documents, tmp_path, write):
    refresh_index(documents, tmp_path / "index")
    write(documents, {"pendulum.md": "Dates of cron jobs, at any time."})
    refreshed = refresh_index(documents, tmp_path / "index")
    anew = refresh_index(documents, tmp_path / "other")
    for query in ("cron", "dates of jobs", "database tables", "how many tasks at once"):
        assert open_index(refreshed.location).search(query) == open_index(anew.location).search(query)


def test_content_that_comes_back_finds_its_version_again(documents, tmp_path, write):
    first = refresh_index(documents, tmp_path / "index")
    text = (documents / "pendulum.md").read_text()
    write(documents, {"pendulum.md": "Something else."})
    refresh_index(documents, tmp_path / "index")
    write(documents, {"pendulum.md": text})

    report = refresh_index(documents, tmp_path / "index")

    assert report.location == first.location
    assert counts(report) == {"added": 0, "changed": 1, "removed": 0, "reused": 3, "built": False}


def test_another_chunk_size_is_another_version(documents, tmp_path):
    whole = refresh_index(documents, tmp_path / "index")
    small = refresh_index(documents, tmp_path / "index", chunk_size=8, chunk_overlap=0)
    assert small.location != whole.location
    assert small.added == 4
    assert small.passages > whole.passages


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (10, 10), (10, -1)])
def test_a_chunk_size_that_makes_no_sense_is_refused(size, overlap, documents, tmp_path):
    with pytest.raises(ValueError, match=f"chunk_size={size}, chunk_overlap={overlap}"):
        refresh_index(documents, tmp_path / "index", chunk_size=size, chunk_overlap=overlap)


def test_the_newest_versions_are_kept_and_other_settings_have_their_own(documents, tmp_path, write):
    small = refresh_index(documents, tmp_path / "index", chunk_size=8, chunk_overlap=0)
    locations = []
    for number in range(KEPT_VERSIONS + 2):
        write(documents, {"count.md": f"edition {number}"})
        locations.append(refresh_index(documents, tmp_path / "index").location)

    kept = {Path(location).name for location in [*locations[-KEPT_VERSIONS:], small.location]}
    assert set(versions(tmp_path / "index")) == kept


def test_a_version_that_is_asked_for_again_counts_as_new(documents, tmp_path, write):
    used = refresh_index(documents, tmp_path / "index").location
    for number in range(KEPT_VERSIONS + 1):
        write(documents, {"count.md": f"edition {number}"})
        refresh_index(documents, tmp_path / "index")
        (documents / "count.md").unlink()
        assert refresh_index(documents, tmp_path / "index").built is False
    assert Path(used).is_dir()


def test_progress_is_told_in_words(documents, tmp_path):
    told: list[str] = []
    report = refresh_index(documents, tmp_path / "index", progress=told.append)
    assert told[0] == f"read 4 documents below {documents}, skipped 0 files"
    assert told[-1] == f"built {report.location}: 4 documents, 0 unchanged"


def damage_manifest(version: Path) -> None:
    manifest = version / "manifest.json"
    manifest.write_bytes(manifest.read_bytes()[:-20])


def damage_passages(version: Path) -> None:
    corpus = version / "bm25" / "corpus.jsonl"
    corpus.write_bytes(corpus.read_bytes()[:-20])


def damage_scores(version: Path) -> None:
    scores = version / "bm25" / "data.csc.index.npy"
    data = bytearray(scores.read_bytes())
    data[-1] ^= 1
    scores.write_bytes(data)


def lose_manifest(version: Path) -> None:
    (version / "manifest.json").unlink()


def lose_scores(version: Path) -> None:
    (version / "bm25" / "data.csc.index.npy").unlink()


def exchange_manifest(version: Path) -> None:
    manifest = version / "manifest.json"
    manifest.write_text(manifest.read_text().replace("croniter.md", "cronjob.md"))


@pytest.mark.parametrize(
    "damage",
    [damage_manifest, damage_passages, damage_scores, lose_manifest, lose_scores, exchange_manifest],
)
def test_a_damaged_version_is_never_served_and_built_again(damage, documents, tmp_path):
    report = refresh_index(documents, tmp_path / "index")
    damage(Path(report.location))

    with pytest.raises(IndexNotFoundError, match=report.location + r".*run refresh_index"):
        open_index(report.location)

    again = refresh_index(documents, tmp_path / "index")
    assert (again.location, again.built, again.added) == (report.location, True, 4)
    assert open_index(again.location).search("cron")[0].document == "croniter.md"


def test_a_refresh_builds_on_the_newest_version_that_is_intact(documents, tmp_path, write):
    good = refresh_index(documents, tmp_path / "index")
    write(documents, {"pendulum.md": "Something else."})
    damage_passages(Path(refresh_index(documents, tmp_path / "index").location))

    report = refresh_index(documents, tmp_path / "index")

    assert counts(report) == {"added": 0, "changed": 1, "removed": 0, "reused": 3, "built": True}
    assert open_index(good.location).documents == open_index(report.location).documents


def test_a_version_that_was_removed_is_reported_by_name(documents, tmp_path):
    report = refresh_index(documents, tmp_path / "index")
    shutil.rmtree(report.location)
    with pytest.raises(IndexNotFoundError, match=report.location + r".* does not exist; run refresh_index"):
        open_index(report.location)


def as_an_earlier_release_wrote_it(version: Path) -> Path:
    """The version with the terms of another release; its name says what it was made from, so it changes, too."""
    manifest = Manifest.model_validate_json((version / "manifest.json").read_bytes())
    del manifest.libraries["terms"]
    (version / "manifest.json").write_text(manifest.model_dump_json())
    return version.rename(version.with_name(manifest.name))


def test_a_version_with_terms_of_another_release_is_refused_and_built_anew(documents, tmp_path, write, new_embedding):
    model = new_embedding()
    report = refresh_index(documents, tmp_path / "index", embed_model=model)
    earlier = as_an_earlier_release_wrote_it(Path(report.location))
    embedded = list(model.embedded)

    with pytest.raises(IndexNotFoundError, match=rf"{earlier}.*other terms from texts; run refresh_index to build it"):
        open_index(earlier, embed_model=model)

    again = refresh_index(documents, tmp_path / "index", embed_model=model)
    assert counts(again) == {"added": 0, "changed": 0, "removed": 0, "reused": 4, "built": True}
    assert model.embedded == embedded
    assert open_index(again.location).search("cron", mode="bm25")[0].document == "croniter.md"
