"""The directory of an index: immutable versions beside each other, each complete or not there.

index_dir/
  .lock                         held while a version is built
  .embeddings-<settings>.jsonl  vectors of a build that has not been published yet
  .building-…                   a version being built, or the rest of a build that was killed
  <settings>-<content>/         a version: its name says what it was made from
    manifest.json               written last: settings, hashes of the documents, checksums of the files
    bm25/                       as bm25s saves it, with LlamaIndex's nodes as its corpus
    vectors.npy                 only with an embedding model: one row per passage
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from adk_airflow_llama_index.errors import IndexNotFoundError

KEPT_VERSIONS = 5
"""How many versions with the same settings stay; older ones are removed after a build. So a run
can use the version it was given until this many newer ones have been published or asked for."""

FORMAT = 1
"""Raised when the layout changes; versions of another format are not read."""

TERMS = "terms"
"""The name beside the libraries of a manifest under which it says how texts become terms (``terms.VERSION``)."""

MANIFEST = "manifest.json"
BM25_DIR = "bm25"
VECTORS = "vectors.npy"

_BUILDING = ".building-"
_VERSION_NAME = re.compile(r"[0-9a-f]{12}-[0-9a-f]{20}")


class Manifest(BaseModel):
    """What a version says about itself.

    Attributes:
        settings: What besides the documents decides the content, as ``refresh_index`` puts it together.
        documents: The SHA-256 of each document by its name.
        libraries: The releases that wrote it, and the version of ``terms``; with another one it is built anew from the same
            passages and vectors.
        passages: How many there are.
        files: The SHA-256 of each other file of the version by its path.
    """

    model_config = ConfigDict(extra="forbid")

    settings: dict[str, Any]
    documents: dict[str, str]
    libraries: dict[str, str]
    passages: int
    files: dict[str, str]

    @property
    def name(self) -> str:
        """The directory name of the version that this manifest describes."""
        return version_name(self.settings, self.documents, self.libraries)


def read_version(version: Path) -> Manifest:
    """The manifest of a version whose every byte is as it was published.

    Raises:
        IndexNotFoundError: It is missing, half-written, damaged or of another format.
    """
    try:
        manifest = Manifest.model_validate_json((version / MANIFEST).read_bytes())
    except FileNotFoundError as error:
        if version.is_dir():
            raise unusable_version(version, f"is not a complete index version ({MANIFEST} is missing)") from error
        raise unusable_version(version, "does not exist") from error
    except (OSError, ValidationError) as error:
        raise unusable_version(version, f"is damaged ({MANIFEST} cannot be read)") from error
    if manifest.settings.get("format") != FORMAT:
        raise unusable_version(version, f"has format {manifest.settings.get('format')}, this release reads {FORMAT}")
    if manifest.name != version.name:
        raise unusable_version(version, f"is damaged ({MANIFEST} does not belong to it)")
    for name, checksum in manifest.files.items():
        try:
            intact = _checksum(version / name) == checksum
        except OSError:
            intact = False
        if not intact:
            raise unusable_version(version, f"is damaged ({name} is not as it was published)")
    return manifest


def unusable_version(version: Path, problem: str) -> IndexNotFoundError:
    return IndexNotFoundError(f"The index version {str(version)!r} {problem}; run refresh_index to build it.")


def version_name(settings: Mapping[str, Any], documents: Mapping[str, str], libraries: Mapping[str, str]) -> str:
    return f"{_digest(settings)[:12]}-{_digest({'documents': documents, 'libraries': libraries})[:20]}"


def _digest(value: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class IndexDirectory:
    """The versions with the same settings below ``root``. Its methods are called with the refresh lock held."""

    def __init__(self, root: Path, settings: Mapping[str, Any], terms_version: str) -> None:
        self._root = root
        self._settings = dict(settings)
        self._libraries = {name: installed_version(name) for name in ("bm25s", "llama-index-core")} | {TERMS: terms_version}
        self._lineage = version_name(settings, {}, {}).partition("-")[0]

    @property
    def embedding_journal(self) -> Path:
        return self._root / f".embeddings-{self._lineage}.jsonl"

    def version(self, documents: Mapping[str, str]) -> Path:
        """Where the version of these documents (SHA-256 by name) is, or will be."""
        return self._root / version_name(self._settings, documents, self._libraries)

    def latest(self) -> tuple[Path, Manifest] | None:
        """The intact version that was published or asked for last. Damaged ones before it are removed."""
        for version in self._newest_first():
            try:
                return version, read_version(version)
            except IndexNotFoundError:
                self._remove(version)
        return None

    def reuse(self, version: Path) -> Manifest | None:
        """The manifest of an intact version, which becomes the latest one; None when it has to be built."""
        try:
            manifest = read_version(version)
        except IndexNotFoundError:
            return None
        os.utime(version)
        return manifest

    @contextmanager
    def building(self, version: Path) -> Iterator[Path]:
        """An empty directory to build ``version`` in. Rests of builds that were killed are removed first."""
        for rest in self._root.glob(f"{_BUILDING}*"):
            shutil.rmtree(rest)
        building = self._root / f"{_BUILDING}{version.name}"
        building.mkdir()
        try:
            yield building
        except BaseException:
            shutil.rmtree(building, ignore_errors=True)
            raise

    def publish(self, building: Path, documents: Mapping[str, str], passages: int) -> Manifest:
        """Completes the version in ``building``, gives it its name in one step, and removes the oldest ones."""
        manifest = Manifest(
            settings=self._settings,
            documents=dict(documents),
            libraries=self._libraries,
            passages=passages,
            files={
                path.relative_to(building).as_posix(): _checksum(path) for path in sorted(building.rglob("*")) if path.is_file()
            },
        )
        (building / MANIFEST).write_text(manifest.model_dump_json(indent=1), encoding="utf-8")
        version = self._root / manifest.name
        self._remove(version)
        building.rename(version)
        others = [path for path in self._newest_first() if path != version]
        for old in others[KEPT_VERSIONS - 1 :]:
            self._remove(old)
        return manifest

    def _newest_first(self) -> list[Path]:
        versions = [
            path for path in self._root.glob(f"{self._lineage}-*") if _VERSION_NAME.fullmatch(path.name) and path.is_dir()
        ]
        return sorted(versions, key=lambda path: (path.stat().st_mtime_ns, path.name), reverse=True)

    def _remove(self, version: Path) -> None:
        """Takes a version's name away before its files, so that nobody sees it half removed."""
        if version.exists():
            rest = self._root / f"{_BUILDING}{version.name}-removed"
            shutil.rmtree(rest, ignore_errors=True)  # of a process that was killed right here
            version.rename(rest)
            shutil.rmtree(rest)
