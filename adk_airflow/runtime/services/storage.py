"""Files at any place of Airflow's object storage: names that are safe in a path, and writes that are whole or not there."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import re
import shutil
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from airflow.sdk import ObjectStoragePath
    from fsspec import AbstractFileSystem  # type: ignore[import-untyped, unused-ignore]

NAME_BYTES = 255
"""The longest file name that common file systems take."""

_TOKEN = re.compile("([0-9a-f]{16})-[0-9a-f]{32}")
"""The name of a writer's key: when it began, in nanoseconds, so that who came first sorts first, and what no other has."""
_PATIENCE_SECONDS = 10.0
"""How long a writer waits for those that came after it to give way."""
_WRITING_SECONDS = 3600.0
"""How long a key without a record may be that of a writer at work; after that its writer has died."""


def open_place(uri: str, conn_id: str | None = None) -> ObjectStoragePath:
    """The place that a URI names; to be called before a task's event loop runs.

    Args:
        uri: Such as ``file:///data/artifacts`` or ``s3://bucket/artifacts``.
        conn_id: Airflow connection for the URI, or None.

    Raises:
        ValueError: Airflow's object storage does not know the URI's scheme.
    """
    from airflow.sdk import ObjectStoragePath

    place = ObjectStoragePath(uri, conn_id=conn_id) if conn_id else ObjectStoragePath(uri)
    # Resolves the connection now: on an event loop that has another request in flight this can hang.
    listings = getattr(place.fs, "dircache", None)
    if listings is not None:
        # What several tasks write is told apart by listings: none may be of before. Clearing alone is not enough, since
        # another thread's listing may come back into the cache after it.
        listings.use_listings_cache = False
        listings.clear()
    return place


def quoted(name: str, room: int = NAME_BYTES) -> str:
    """The name as one part of a path; different names stay different.

    Letters of any script stay, since percent-encoded they get too long. A name that is longer than ``room`` keeps its beginning
    and ends in a hash of the whole.

    Args:
        name: Any text.
        room: The bytes that there are for it.
    """
    if name in ("", ".", ".."):
        return "%2E" * len(name) or "%"
    letters = [letter if letter.isalnum() or letter in "._-" else _encoded(letter) for letter in name]
    if len("".join(letters).encode()) <= room:
        return "".join(letters)
    # "%-" is no percent-encoding, so no name that is short enough looks like this.
    end = "%-" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    while len("".join(letters).encode()) > room - len(end):
        letters.pop()
    return "".join(letters) + end


def _encoded(letter: str) -> str:
    return quote(letter.encode("utf-8", "surrogatepass"), safe="")


def names_in(place: ObjectStoragePath) -> list[str]:
    """The names of what lies in a folder, as it is now; none when there is no such folder."""
    fs = place.fs
    fs.invalidate_cache()  # other tasks write beside this one
    try:
        found = fs.ls(place.path, detail=False)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [str(path).rstrip("/").rpartition("/")[2] for path in found]


def replace_file(path: ObjectStoragePath, data: bytes) -> None:
    """Writes a file, in place of one that is there; a reader always finds the one or the other, whole.

    Args:
        path: The file; folders that are missing are made.
        data: What it is to hold.

    Raises:
        OSError: It cannot be written; the file is as it was before.
    """
    if not _is_local(path):
        _put(path.fs, path.path, data)
        return
    folder = Path(path.parent.path)
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{uuid.uuid4().hex}"
    try:
        draft.write_bytes(data)
        draft.replace(path.path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def create_folder(place: ObjectStoragePath, name: str, content: bytes, record_name: str, record: Mapping[str, Any]) -> bool:
    """Makes a folder that holds a content and a record of it: by one writer, whole, or not at all.

    The folder is there when its record is. On a file system the folder is made aside and renamed. Elsewhere nothing is taken
    for granted but that a listing shows all that was written before it began, as those of S3, GCS and Azure do: a writer
    first puts a key that no other has, and makes the folder only when a listing then shows no other's (see ``_claim``).

    Args:
        place: The folder.
        name: File name of the content.
        content: What it holds.
        record_name: File name of the record.
        record: What it holds, as JSON; the key ``content`` is added: where the content lies in the folder.

    Returns:
        False where another writer made the folder before, or is making it.

    Raises:
        OSError: It cannot be written, and nothing of it is there; or the place does not list what was written into it.
    """
    if not _is_local(place):
        return _create_keys(place, name, content, record_name, record)
    draft = Path(place.parent.path) / f".{uuid.uuid4().hex}"
    try:
        _make(draft)
        (draft / name).write_bytes(content)
        (draft / record_name).write_bytes(_json({**record, "content": name}))
        return _renamed(draft, place.path)
    finally:
        shutil.rmtree(draft, ignore_errors=True)  # there is none when all went well


def _make(folder: Path) -> None:
    """Makes a folder; the one that it is in may be removed meanwhile, for it is empty until then."""
    for _ in range(100):
        with contextlib.suppress(FileNotFoundError, FileExistsError):
            folder.mkdir(parents=True)
            return
    folder.mkdir(parents=True)


def remove_record(place: ObjectStoragePath, record_name: str, content: ObjectStoragePath) -> None:
    """Empties a folder that ``create_folder`` made: first of what makes it one, so that none is ever there without its content.

    Raises:
        OSError: Something cannot be removed.
    """
    for path in (f"{place.path}/{record_name}", content.path):
        with contextlib.suppress(FileNotFoundError):  # another removes it too
            place.fs.rm_file(path)


def remove_folders(place: ObjectStoragePath, names: Sequence[str]) -> None:
    """Removes these folders in a folder, and it too where it is empty then. What others write meanwhile stays.

    Raises:
        OSError: One cannot be removed.
    """
    for name in names:
        with contextlib.suppress(FileNotFoundError):  # removed by another
            if not _is_local(place):
                _remove_keys(place / name)
                continue
            aside = Path(place.path) / f".{uuid.uuid4().hex}"
            (Path(place.path) / name).rename(aside)
            shutil.rmtree(aside)
    if _is_local(place):
        with contextlib.suppress(OSError):  # another writes into it, or has removed it
            Path(place.path).rmdir()


def remove_files(folder: ObjectStoragePath, names: Sequence[str], up_to: ObjectStoragePath) -> None:
    """Removes these files of a folder, and on a file system the folders that are empty then, below ``up_to``.

    Raises:
        OSError: A file cannot be removed.
    """
    for name in names:
        with contextlib.suppress(FileNotFoundError):  # removed by another
            folder.fs.rm_file(f"{folder.path}/{name}")
    if _is_local(folder):
        empty, last = Path(folder.path), Path(up_to.path)
        while last in empty.parents:
            try:
                empty.rmdir()
            except OSError:  # another is in it
                return
            empty = empty.parent


def _renamed(folder: Path, new: str) -> bool:
    try:
        folder.rename(new)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True


def _create_keys(place: ObjectStoragePath, name: str, content: bytes, record_name: str, record: Mapping[str, Any]) -> bool:
    fs, token = place.fs, f"{time.time_ns():016x}-{uuid.uuid4().hex}"
    key = f"{token}/{name}"
    claimed = made = False
    try:
        _put(fs, f"{place.path}/{key}", b"")
        claimed = _claim(place, token)
        if claimed:
            _put(fs, f"{place.path}/{key}", content)
            _put(fs, f"{place.path}/{record_name}", _json({**record, "content": key}))
            made = True
    finally:
        if not made:
            with contextlib.suppress(Exception):
                if claimed:  # what was refused may have arrived
                    fs.rm_file(f"{place.path}/{record_name}")
            with contextlib.suppress(Exception):
                fs.rm(f"{place.path}/{token}", recursive=True)
    return made


def _claim(place: ObjectStoragePath, token: str) -> bool:
    """Whether the folder is this writer's to make, whose key is there already.

    It is when a listing shows no key but its own. Of two writers at most one can see that: had both, each would have looked
    before the other's key was there, and so before its own was. Of those that see each other all but the first give way, and
    the first waits for that. So every folder is made by one of them, unless a writer dies in these moments.
    """
    end, pause = time.monotonic() + _PATIENCE_SECONDS, 0.01
    while True:
        found = set(names_in(place))
        if token not in found:
            raise OSError(
                errno.EIO,
                "What was written is not listed: where listings lag behind, what several tasks write cannot be kept apart",
                str(place),
            )
        others = found - {token}
        if not others:
            return True
        if min(others) < token or not all(map(_TOKEN.fullmatch, others)) or time.monotonic() > end:
            return False
        time.sleep(pause)
        pause = min(2 * pause, 0.5)


def _remove_keys(place: ObjectStoragePath) -> None:
    """Removes what is in a folder of an object store, but for the keys of writers that may be at it."""
    for name in names_in(place):
        written = _TOKEN.fullmatch(name)
        if written and time.time() - int(written[1], 16) / 1e9 < _WRITING_SECONDS and place.fs.find(f"{place.path}/{name}"):
            continue
        place.fs.rm(f"{place.path}/{name}", recursive=True)


def _put(fs: AbstractFileSystem, path: str, data: bytes) -> None:
    try:
        fs.pipe_file(path, data)
    except FileNotFoundError:  # a file system with folders, or a bucket that is not there
        fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        fs.pipe_file(path, data)


def _is_local(path: ObjectStoragePath) -> bool:
    from fsspec.implementations.local import LocalFileSystem  # type: ignore[import-untyped, unused-ignore]

    return isinstance(path.fs, LocalFileSystem)


def _json(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record).encode()
