"""Services that outlive a try of a task: one that no longer counts writes nothing, and none saves an artifact twice.

A session that is kept is given to a retry as the first try found it, so that the agents ask what they asked then.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from collections import Counter
from typing import TYPE_CHECKING, Any, TypeVar, cast

from google.adk.artifacts.base_artifact_service import BaseArtifactService
from google.adk.memory.base_memory_service import BaseMemoryService
from google.adk.sessions.base_session_service import BaseSessionService

from adk_airflow.errors import AdkAirflowError
from adk_airflow.runtime.adk.recorder import place_of_code
from adk_airflow.runtime.adk.stand_in import class_below, in_place_of
from adk_airflow.runtime.wire import codec

if TYPE_CHECKING:
    from adk_airflow.runtime.adk.recorder import Recorder

S = TypeVar("S", BaseArtifactService, BaseMemoryService, BaseSessionService)

_WRITES: dict[type, tuple[str, ...]] = {
    BaseArtifactService: ("save_artifact", "delete_artifact"),
    BaseMemoryService: ("add_session_to_memory", "add_events_to_memory", "add_memory"),
    BaseSessionService: ("create_session", "append_event", "delete_session", "get_session"),
}
_INVOCATION = "invocation:"
_GUARD = "_adk_airflow_guard"


def guarded(service: S, recorder: Recorder) -> S:
    """The service as it is, of its own class and with its own fields, for the try that the recorder is of.

    Args:
        service: The service.
        recorder: The recorder.
    """
    return cast("S", in_place_of(service, _guarded_class(type(service)), _GUARD, _Guard(recorder)))


class _Guard:
    """What is asked before a write."""

    def __init__(self, recorder: Recorder) -> None:
        self._record = recorder.record
        self._saved: Counter[str] = Counter()
        self._invocations: set[str] = set()
        self._has_written = False

    async def write(self, write: Any, args: Any, kwargs: Any) -> Any:
        self._record.standing.check(ask=True)
        return await write(*args, **kwargs)

    async def append(self, write: Any, args: Any, kwargs: Any) -> Any:
        """Appends an event to a kept session; the next try is told of the invocation."""
        invocation = str(getattr(kwargs.get("event", args[-1] if args else None), "invocation_id", ""))
        if invocation not in self._invocations:
            self._invocations.add(invocation)
            self._record.journal.begin(f"{_INVOCATION}{invocation}")
        self._has_written = True
        return await self.write(write, args, kwargs)

    async def read(self, read: Any, args: Any, kwargs: Any) -> Any:
        """Gives a kept session as the first try found it: without what earlier tries of this task have said in it."""
        session = await read(*args, **kwargs)
        journal = self._record.journal
        if session is None or not journal.durable:
            return session
        session.events = [one for one in session.events if not journal.began_before(f"{_INVOCATION}{one.invocation_id}")]
        if self._has_written:
            return session
        kept = journal.find("session", "", "session", "")
        with contextlib.suppress(AdkAirflowError):
            if kept is not None:
                session.state = {key: codec.decode(value) for key, value in kept.data.items()}
            else:
                found = {key: codec.encode(value) for key, value in dict(session.state).items()}
                journal.add("session", "", "session", "", found)
        return session

    async def save(self, write: Any, kwargs: dict[str, Any]) -> Any:
        """Saves an artifact, or gives the version that an earlier try saved."""
        line, asked = place_of_code(), _of_artifact(kwargs)
        if asked is None:
            return await self.write(write, (), kwargs)
        same = f"{line}#artifact:{asked}"
        place = f"{same}:{self._saved[same]}"
        self._saved[same] += 1
        kept = self._record.journal.find("artifact", line, place, asked)
        if kept is not None and type(version := kept.data.get("version")) is int:
            return version
        version = await self.write(write, (), kwargs)
        self._record.journal.add("artifact", line, place, asked, {"version": version})
        return version


def _of_artifact(kwargs: dict[str, Any]) -> str | None:
    """The same text for the same artifact; None where that cannot be told."""
    artifact: Any = kwargs.get("artifact")
    rest = {key: value for key, value in kwargs.items() if key != "artifact"}
    try:
        told = artifact.model_dump_json(exclude_none=True) if hasattr(artifact, "model_dump_json") else json.dumps(artifact)
        text = f"{json.dumps(rest, sort_keys=True)}{told}"
    except (TypeError, ValueError):
        return None
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@functools.cache
def _guarded_class(cls: type) -> Any:
    base = next(base for base in _WRITES if issubclass(cls, base))
    methods: dict[str, Any] = {name: _method(cls, name) for name in _WRITES[base] if hasattr(cls, name)}
    return class_below(cls, __slots__=(_GUARD,), **methods)


def _method(cls: type, name: str) -> Any:
    own = getattr(cls, name)

    @functools.wraps(own)
    async def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        guard: _Guard = getattr(self, _GUARD)
        write = functools.partial(own, self)
        if name == "save_artifact" and not args:
            return await guard.save(write, kwargs)
        special = {"append_event": guard.append, "get_session": guard.read}
        return await special.get(name, guard.write)(write, args, kwargs)

    return method
