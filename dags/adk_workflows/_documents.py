"""Documents that every machine has: the long descriptions of the installed distributions.

Each distribution carries the text of its project page in its metadata. Written out as one file each, they
make a collection of 150 to 250 real documents with nothing to download.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import tempfile
from pathlib import Path

MIN_DESCRIPTION_CHARS = 200
"""A shorter text is a placeholder ("see the README"), not a description."""

_MARKER = ".installed_distributions"


def installed_descriptions() -> tuple[dict[str, str], int]:
    """Reads the long description of every distribution of this environment.

    Returns:
        The descriptions by file name (`<normalized name>.md`, so `PyYAML` is `pyyaml.md`), sorted, and the
        number of distributions left out because their description has fewer than `MIN_DESCRIPTION_CHARS`.
    """
    found: dict[str, str] = {}
    for distribution in importlib.metadata.distributions():
        # An interrupted uninstall leaves a distribution without metadata: the standard library shows it as empty, the
        # backport importlib_metadata, which takes over wherever a library imports it, raises.
        try:
            metadata = distribution.metadata
        except FileNotFoundError:
            continue
        if metadata is None or "Name" not in metadata:
            continue
        file_name = re.sub(r"[-_.]+", "-", metadata["Name"]).lower() + ".md"
        description = metadata["Description"].strip() if "Description" in metadata else ""
        # A distribution found twice on sys.path: the first one is the one that gets imported.
        found.setdefault(file_name, description)
    described = {name: text for name, text in sorted(found.items()) if len(text) >= MIN_DESCRIPTION_CHARS}
    return described, len(found) - len(described)


def write_documents(documents: dict[str, str], directory: Path) -> dict[str, int]:
    """Makes `directory` hold exactly `documents`, touching only the files that differ.

    Every file is replaced in one step, so another process that reads or writes the same directory at the same
    time (a backfill runs several days at once) never meets half a file.

    Returns:
        `documents`, `written`, `unchanged` and `removed`, each a number of files.

    Raises:
        ValueError: `directory` holds files that this function did not write; it would have to delete them.
    """
    directory.mkdir(parents=True, exist_ok=True)
    present = {path.name for path in directory.iterdir()}
    marker = directory / _MARKER
    if present and not marker.exists():
        raise ValueError(
            f"{directory} holds files that are not the descriptions of installed distributions. Choose"
            " another data_dir, or give that directory as documents_dir to search the files it holds."
        )
    marker.touch()

    written = 0
    for name, text in documents.items():
        content = (text + "\n").encode("utf-8", "replace")
        path = directory / name
        if name in present and path.read_bytes() == content:
            continue
        _replace(path, content)
        written += 1
    gone = [name for name in present if not name.startswith(".") and name not in documents]
    for name in gone:
        (directory / name).unlink(missing_ok=True)
    return {
        "documents": len(documents),
        "written": written,
        "unchanged": len(documents) - written,
        "removed": len(gone),
    }


def _replace(path: Path, content: bytes) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        # mkstemp makes files private; another user's worker has to read these.
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
