"""Reads a directory of text files: which files are documents, and which are not and why."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from adk_airflow_llama_index.errors import IndexSourceError


@dataclass(frozen=True)
class SourceDocument:
    """One readable text file.

    Attributes:
        name: Path below the source directory with ``/`` between its parts; unique, and the order of the documents.
        sha256: Hex digest of the file's bytes.
        text: Its content.
    """

    name: str
    sha256: str
    text: str


@dataclass(frozen=True)
class Sources:
    """What a source directory holds, in the order of the names.

    Attributes:
        documents: The text files.
        skipped: ``{"document": name, "reason": words}`` for every file that is no document, and unreadable directory.
    """

    documents: list[SourceDocument]
    skipped: list[dict[str, str]]


def read_sources(source_dir: Path) -> Sources:
    """Reads every regular UTF-8 text file below ``source_dir``, ignoring hidden files and directories.

    Links to files inside the directory are followed, others are not.

    Raises:
        IndexSourceError: The directory is missing, is no directory, or holds no readable document.
    """
    if not source_dir.is_dir():
        problem = "is not a directory" if source_dir.exists() else "does not exist"
        raise IndexSourceError(
            f"The document directory {str(source_dir)!r} {problem}; give the directory that holds the text files."
        )
    root = source_dir.resolve()
    documents: list[SourceDocument] = []
    skipped: list[dict[str, str]] = []
    for path in _files_below(root, skipped):
        name = path.relative_to(root).as_posix()
        try:
            documents.append(_read_document(name, path, root))
        except (_Skip, OSError) as why:
            skipped.append(_skip(name, why))
    if not documents:
        named = "; ".join(f"{entry['document']}: {entry['reason']}" for entry in skipped[:3])
        raise IndexSourceError(
            f"The document directory {str(source_dir)!r} holds no readable text document "
            f"({len(skipped)} files skipped{': ' + named if named else ''}); put UTF-8 text files below it."
        )
    return Sources(
        sorted(documents, key=lambda document: document.name),
        sorted(skipped, key=lambda entry: entry["document"]),
    )


class _Skip(Exception):
    """Why a file is not a document."""


def _skip(name: str, why: Exception) -> dict[str, str]:
    reason = f"not readable ({why.strerror or why})" if isinstance(why, OSError) else str(why)
    # A name that is no UTF-8 must not break the JSON that the report becomes.
    return {"document": os.fsencode(name).decode("utf-8", "replace"), "reason": reason}


def _files_below(root: Path, skipped: list[dict[str, str]]) -> list[Path]:
    def unreadable(error: OSError) -> None:
        skipped.append(_skip(Path(error.filename).relative_to(root).as_posix(), error))

    files: list[Path] = []
    for folder, folders, names in os.walk(root, onerror=unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        # os.walk does not go into linked directories; listing them as files gets them named as skipped.
        linked = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        files += [Path(folder, name) for name in [*names, *linked] if not name.startswith(".")]
    return files


def _read_document(name: str, path: Path, root: Path) -> SourceDocument:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise _Skip("its name is not UTF-8") from None
    # Unlike Path.resolve, this is an OSError for a link to itself on every Python.
    real = Path(os.path.realpath(path, strict=True))
    if not real.is_relative_to(root):
        raise _Skip("a link that leads outside the directory")
    if real.is_dir():
        raise _Skip("a link to a directory")
    if not real.is_file():
        raise _Skip("not a regular file")
    data = real.read_bytes()
    if b"\0" in data:
        raise _Skip("not text (it contains NUL bytes)")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _Skip("not text (it is not UTF-8)") from None
    if not text.strip():
        raise _Skip("empty")
    return SourceDocument(name, hashlib.sha256(data).hexdigest(), text)
