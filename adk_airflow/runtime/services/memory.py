"""A memory that outlives the process: what was said in earlier runs, as files below any URI of Airflow's object storage.

Layout, with every name percent-encoded, and hashed where it is too long for a file name::

    <uri>/<app>/<user>/session-<session>/<writer>.json      {"version": 1, "events": [{id, author, timestamp, content}, ...]}

A file per writer, since the nodes of one run are tasks in processes of their own, each of which knows the part of the session
that it ran. A task that runs again replaces what its earlier try remembered; nobody writes another's file. A file is replaced
as a whole: on a full disk what was remembered before stays.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
from google.genai import types

from adk_airflow.runtime import sealing
from adk_airflow.runtime.services import storage
from adk_airflow.runtime.services.storage import NAME_BYTES, quoted

if TYPE_CHECKING:
    from airflow.sdk import ObjectStoragePath
    from google.adk.sessions.session import Session

log = logging.getLogger(__name__)

_VERSION = 1
_UNKNOWN_SESSION = "unknown"
_SESSION_FOLDER = "session-"
_FILE_END = ".json"
_KEPT = {"id", "author", "timestamp", "content"}
# What the file systems of fsspec say of a file by which a new content is known.
_CHANGES = ("size", "mtime", "ino", "created", "ETag", "etag", "LastModified", "last_modified", "updated")

_Row = dict[str, Any]


class ObjectStorageMemoryService(BaseMemoryService):
    """ADK's memory service over ``ObjectStoragePath``; works on one machine and, with a shared URI, on a cluster.

    What matches a query, and how well, is decided by ADK's own ``InMemoryMemoryService``: at most ten events, those that share
    the most words with it. Two things are settled for runs that come every day: of events that match equally well those of
    the latest session come first, and what one author said in the same words in several runs counts once.

    What was added stays when more is added, a session or single events, as in ADK's services that outlive the process. A
    secret in it is remembered as ``***``.

    A search reads all that this app and user have: it suits thousands of runs; for more use a Vertex AI Memory Bank.

    Args:
        uri: Where memories are kept, such as ``file:///data/memory`` or ``s3://bucket/memory``.
        conn_id: Airflow connection for the URI, or None.
        writer: Who adds to the memory; what it adds to a session replaces what a writer of this name added in another process.
    """

    def __init__(self, uri: str, conn_id: str | None = None, *, writer: str = "adk") -> None:
        self.root = storage.open_place(uri, conn_id)
        self.writer = writer
        self._lock = threading.Lock()
        self._added: dict[tuple[str, str, str], dict[str, Event]] = {}
        self._read: dict[str, tuple[tuple[str, ...], list[_Row]]] = {}

    async def add_session_to_memory(self, session: Session) -> None:
        """Remembers what was said in the session, as far as this process knows it, besides what was added before."""
        key = (session.app_name, session.user_id, session.id)
        await asyncio.to_thread(self._add, key, [event.model_copy(deep=True) for event in session.events])

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remembers these events besides what was added before."""
        key = (app_name, user_id, session_id or _UNKNOWN_SESSION)
        await asyncio.to_thread(self._add, key, [event.model_copy(deep=True) for event in events])

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """At most ten of the events of this app and user that share words with the query, the best first."""
        sessions = await asyncio.to_thread(self._sessions, app_name, user_id)
        matcher = InMemoryMemoryService()  # type: ignore[no-untyped-call, unused-ignore]
        rows: dict[str, _Row] = {}
        for number, session in enumerate(_once(sessions)):
            rows |= {row["id"]: row for row in session}
            events = [_light(row) for row in session]
            await matcher.add_events_to_memory(app_name=app_name, user_id=user_id, events=events, session_id=str(number))
        found = await matcher.search_memory(app_name=app_name, user_id=user_id, query=query)
        for memory in found.memories:
            memory.content = types.Content.model_validate(rows[str(memory.id)]["content"])
        return found

    def _add(self, key: tuple[str, str, str], events: Iterable[Event]) -> None:
        spoken = {event.id: event for event in events if event.content and any(p.text for p in event.content.parts or [])}
        with self._lock:
            added = {**self._added.get(key, {}), **spoken}
            rows = [event.model_dump(mode="json", include=_KEPT, exclude_none=True, by_alias=True) for event in added.values()]
            if rows:
                shown, _ = sealing.masked(rows)
                text = json.dumps({"version": _VERSION, "events": shown}, ensure_ascii=False)
                storage.replace_file(self._file(*key), text.encode("utf-8", "surrogatepass"))
            self._added[key] = added

    def _file(self, app_name: str, user_id: str, session_id: str) -> ObjectStoragePath:
        folder = _SESSION_FOLDER + quoted(session_id, NAME_BYTES - len(_SESSION_FOLDER))
        name = quoted(self.writer, NAME_BYTES - len(_FILE_END)) + _FILE_END
        return self.root / quoted(app_name) / quoted(user_id) / folder / name

    def _sessions(self, app_name: str, user_id: str) -> list[list[_Row]]:
        """What was said in each session, in its order; the session with the latest event first."""
        place = self.root / quoted(app_name) / quoted(user_id)
        sessions: dict[str, dict[str, _Row]] = {}
        self.root.fs.invalidate_cache()  # other tasks write beside this one
        # One request for all: on an object store a listing of each folder takes longer than the files themselves.
        for path, info in self.root.fs.find(place.path, detail=True).items():
            folder, _, name = path.rpartition("/")
            if name.endswith(_FILE_END):
                sessions.setdefault(folder, {}).update({row["id"]: row for row in self._rows(path, info)})
        found = [sorted(rows.values(), key=_when) for rows in sessions.values() if rows]
        return sorted(found, key=lambda rows: _when(rows[-1]), reverse=True)

    def _rows(self, path: str, info: Mapping[str, Any]) -> list[_Row]:
        state = tuple(str(info.get(key)) for key in _CHANGES)
        known = self._read.get(path)
        if known is not None and known[0] == state:
            return known[1]
        try:
            rows: list[_Row] = json.loads(self.root.fs.cat_file(path).decode("utf-8", "surrogatepass"))["events"]
            for row in rows:
                _when(row), _text(row), row["id"], row["author"]
        except (ValueError, KeyError, TypeError, AttributeError, FileNotFoundError) as error:
            log.warning("Memory file %s is not complete and is left out: %s", path, type(error).__name__)
            return []
        self._read[path] = (state, rows)
        return rows


def _once(sessions: Iterable[list[_Row]]) -> Iterable[list[_Row]]:
    """Leaves out what the same author said in the same words in a session before in the list, or earlier in this one."""
    said: set[tuple[str, str]] = set()
    for session in sessions:
        fresh = []
        for row in session:
            key = (row["author"], _text(row))
            if key not in said:
                said.add(key)
                fresh.append(row)
        yield fresh


def _light(row: _Row) -> Event:
    """An event with no more than its words, for matching: making whole ones takes most of a search's time."""
    part = types.Part.model_construct(text=_text(row))
    content = types.Content.model_construct(parts=[part])
    return Event.model_construct(id=row["id"], author=row["author"], timestamp=row["timestamp"], content=content)


def _when(row: _Row) -> float:
    return float(row["timestamp"])


def _text(row: Mapping[str, Any]) -> str:
    """The words, joined as google-adk joins them to match."""
    return " ".join(part["text"] for part in row["content"].get("parts") or [] if part.get("text"))
