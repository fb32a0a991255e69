"""Where the transcripts of tasks lie in Airflow's object storage, how they are read, and how old ones are removed.

Layout, with every name percent-encoded, and hashed where it is too long for a file name::

    <uri>/<dag>/<run>/<task>/<try>/part-0000.jsonl                of a mapped task <task>/<map index>/<try>
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adk_airflow.errors import EnvelopeError, RecordError
from adk_airflow.runtime import sealing
from adk_airflow.runtime.record.transcript import HEADER, VERSION
from adk_airflow.runtime.services import storage
from adk_airflow.runtime.services.storage import quoted
from adk_airflow.runtime.wire import sealed

if TYPE_CHECKING:
    from airflow.sdk import ObjectStoragePath

SESSION = "session.json"
"""What was said in ADK's session, for the tasks after this one: events in exact form, sealed with Airflow's Fernet key."""

_SESSION_VERSION = 1
_PART = re.compile(r"part-\d{4,}\.jsonl")
_MOST_HEADER = 8_192  # bytes


class TranscriptPlace:
    """The folder of one try.

    Args:
        folder: The folder.
    """

    def __init__(self, folder: ObjectStoragePath) -> None:
        self._folder = folder
        self.uri = str(folder)

    def write(self, name: str, data: bytes) -> None:
        """Writes a part, in place of one that is there."""
        storage.replace_file(self._folder / name, data)


def task_folder(root: ObjectStoragePath, dag_id: str, run_id: str, task_id: str, map_index: int) -> ObjectStoragePath:
    """The folder that holds the tries of a task instance."""
    folder = root / quoted(dag_id) / quoted(run_id) / quoted(task_id)
    return folder if map_index < 0 else folder / str(map_index)


def try_folder(root: ObjectStoragePath, place: tuple[str, str, str, int], try_number: int) -> ObjectStoragePath:
    """The folder of one try.

    Args:
        root: What ``[adk_airflow] transcripts_uri`` names.
        place: DAG, run, task and map index, -1 for none.
        try_number: Airflow's number of the try.
    """
    return task_folder(root, *place) / str(try_number)


# -- reading -------------------------------------------------------------------------------------------------


def tries(folder: ObjectStoragePath) -> list[int]:
    """The numbers of the tries that there may be records of, ascending."""
    return sorted(int(name) for name in storage.names_in(folder) if name.isdecimal())


def read_try(folder: ObjectStoragePath) -> list[dict[str, Any]]:
    """The entries of one try, in order; a last line that is cut is left out.

    Raises:
        RecordError: There is none, or another version made it.
    """
    entries: list[dict[str, Any]] = []
    found: str | None = None
    for name in sorted(filter(_PART.fullmatch, storage.names_in(folder)), key=lambda name: (len(name), name)):
        lines = _lines(folder / name)
        header = _checked(next(lines, None), str(folder / name))
        if found not in (None, header.get("id")):
            continue  # of an earlier record in the same place, which had more parts
        found = str(header.get("id"))
        entries.extend(lines)
    if found is None:
        raise RecordError(
            f"There is no record at {folder}. A task that ran ADK has one, unless it was removed, could not be written (its log"
            " says so), or [adk_airflow] transcripts_uri was another then."
        )
    return entries


def _lines(path: ObjectStoragePath) -> Iterator[dict[str, Any]]:
    text = path.fs.cat_file(path.path).decode("utf-8", "replace")
    for line in text.split("\n"):
        with contextlib.suppress(ValueError):  # cut in the middle
            row = json.loads(line)
            if isinstance(row, dict):
                yield row


def _checked(header: Mapping[str, Any] | None, where: str) -> Mapping[str, Any]:
    version = None if header is None else header.get(HEADER)
    if header is None or version is None:
        raise RecordError(f"{where} is no record of adk-airflow, or is damaged: its first line says so.")
    if version != VERSION:
        raise RecordError(
            f"{where} is a record of version {version!r}, this adk-airflow reads {VERSION}. Read it with the adk-airflow that"
            " wrote it."
        )
    return header


# -- the session ---------------------------------------------------------------------------------------------


def session_bytes(events: Sequence[Mapping[str, Any]]) -> bytes:
    """The file of a session. Without a Fernet key secrets are masked in it.

    Args:
        events: In ADK's JSON form.
    """
    token = sealed.seal(json.dumps(events))
    held = {"events": sealing.masked(events)[0]} if token is None else {"sealed": token}
    return json.dumps({"adk_session": _SESSION_VERSION, **held}).encode()


def read_session(folder: ObjectStoragePath) -> list[dict[str, Any]]:
    """The events of a session, as a task kept them.

    Raises:
        RecordError: It is not there, is damaged, or another version or another Fernet key made it.
        OSError: It cannot be read.
    """
    path = folder / SESSION
    try:
        data = json.loads(path.fs.cat_file(path.path))
        if data["adk_session"] != _SESSION_VERSION:
            raise RecordError(f"{path} has version {data['adk_session']!r}, this adk-airflow reads {_SESSION_VERSION}")
        events = json.loads(sealed.open_sealed(data["sealed"])) if "sealed" in data else data["events"]
        if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
            raise TypeError
    except FileNotFoundError:
        raise RecordError(f"{path} is not there") from None
    except EnvelopeError as error:
        raise RecordError(f"{path}: {error}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise RecordError(f"{path} is damaged ({type(error).__name__})") from error
    return events


# -- removing ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OldRecord:
    """The record of one try.

    Attributes:
        folder: Where it is, below the root.
        parts: The names of its files.
        last: When it was last written to, in UTC.
        header: What its first line says.
    """

    folder: str
    parts: tuple[str, ...]
    last: dt.datetime
    header: Mapping[str, Any]


def older_than(root: ObjectStoragePath, days: float) -> Iterator[OldRecord]:
    """The records that were last written to so many days ago or earlier; of any version. What is no record is left out."""
    until = dt.datetime.now(dt.UTC) - dt.timedelta(days=days)
    folders: dict[str, list[str]] = {}
    root.fs.invalidate_cache()
    for path in root.fs.find(root.path):
        folder, _, name = str(path).rpartition("/")
        folders.setdefault(folder, []).append(name)
    for folder, names in sorted(folders.items()):
        parts = tuple(sorted(name for name in names if _PART.fullmatch(name)))
        if not parts or not folder.rpartition("/")[2].isdecimal():
            continue
        last = max(_written(root, f"{folder}/{name}") for name in parts)
        if last <= until and (header := _header(root, f"{folder}/{parts[0]}")) is not None:
            yield OldRecord(folder, (*parts, *(name for name in names if name == SESSION)), last, header)


def remove(root: ObjectStoragePath, record: OldRecord) -> None:
    """Removes the parts of a record, and the folders that are empty then; nothing else.

    Raises:
        OSError: One cannot be removed.
    """
    storage.remove_files(_at(root, record.folder), record.parts, root)


def _at(root: ObjectStoragePath, path: str) -> ObjectStoragePath:
    return root / path.removeprefix(root.path.rstrip("/") + "/")


def _written(root: ObjectStoragePath, path: str) -> dt.datetime:
    found: dt.datetime = root.fs.modified(path)
    return found if found.tzinfo else found.replace(tzinfo=dt.UTC)


def _header(root: ObjectStoragePath, path: str) -> Mapping[str, Any] | None:
    """The first line of a part, if it is one of ours."""
    line = root.fs.cat_file(path, 0, _MOST_HEADER).decode("utf-8", "replace").partition("\n")[0]
    with contextlib.suppress(ValueError):
        header = json.loads(line)
        if isinstance(header, dict) and HEADER in header:
            return header
    return None
