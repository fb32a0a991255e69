"""ADK's artifacts as files below any URI that Airflow's object storage knows.

Layout, with every name percent-encoded so that run ids and slashes are safe, and hashed where it is too long for a file name::

    <uri>/<app>/<user>/<session or "user">/<artifact>/<version>/<artifact>      the bytes or the text
    <uri>/<app>/<user>/<session or "user">/<artifact>/<version>/adk.json        name, kind, MIME type, custom metadata

A version is there when its ``adk.json`` is, which is never before its content is. In an object store the content lies one
level deeper, below a key of its writer's own, by which writers at one time are told apart (``storage.create_folder``).
"""

from __future__ import annotations

import asyncio
import json
import logging
import posixpath
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from google.adk.artifacts import artifact_util
from google.adk.artifacts.base_artifact_service import ArtifactVersion, BaseArtifactService, ensure_part
from google.adk.errors.input_validation_error import InputValidationError
from google.genai import types

from adk_airflow.errors import EnvelopeError
from adk_airflow.runtime import sealing
from adk_airflow.runtime.services import storage
from adk_airflow.runtime.services.storage import NAME_BYTES, quoted
from adk_airflow.runtime.wire.sealed import opened

if TYPE_CHECKING:
    from airflow.sdk import ObjectStoragePath

log = logging.getLogger(__name__)

_META = "adk.json"
_META_KEYS = {"kind", "mime_type", "create_time", "custom_metadata"}
_SEALED = "sealed_metadata"
_USER = "user:"
_SESSION_FOLDER = "session-"
# google-adk's artifact services follow as many references of one artifact to another.
_MOST_REFERENCES = 5
# With it a session rewind marks an artifact as absent.
_ABSENT = types.Part(inline_data=types.Blob(mime_type="application/octet-stream", data=b""))


@dataclass(frozen=True)
class _Version:
    """A version that is there: its number, its folder, and what its ``adk.json`` says."""

    number: int
    place: ObjectStoragePath
    meta: dict[str, Any]

    @property
    def content(self) -> ObjectStoragePath:
        """Where its bytes are; versions of earlier releases do not say, and hold one other file."""
        name = self.meta.get("content") or next((name for name in storage.names_in(self.place) if name != _META), "content")
        return self.place / str(name)

    @property
    def uri(self) -> str:
        return str(self.meta.get("file_uri") or self.content)


class ObjectStorageArtifactService(BaseArtifactService):
    """ADK's artifact service over ``ObjectStoragePath``; works on one machine and, with a shared URI, on a cluster.

    Any text is a name, and names that differ in any letter are different artifacts, as in ADK's ``InMemoryArtifactService``.
    Saves of several tasks at one time each get a version of their own.

    Args:
        uri: Where artifacts are kept, such as ``file:///data/artifacts`` or ``s3://bucket/artifacts``.
        conn_id: Airflow connection for the URI, or None.
        setting: Where the URI comes from, for errors; empty: from code.

    Raises:
        InputValidationError: By every method: an empty app, user or session; a session's artifact without a session.
    """

    def __init__(self, uri: str, conn_id: str | None = None, *, setting: str = "") -> None:
        self.root = storage.open_place(uri, conn_id)
        self._setting = setting

    def artifact_uri(self, app_name: str, user_id: str, session_id: str | None, filename: str, version: int) -> str:
        """Where the content of one version lies.

        Raises:
            FileNotFoundError: There is no such version.
        """
        folder = self._folder(app_name, user_id, session_id, filename)
        found = _read(folder, version)
        if found is None:
            raise FileNotFoundError(f"Artifact {filename!r} has no version {version}.")
        return found.uri

    async def save_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        artifact: types.Part | dict[str, Any],
        session_id: str | None = None,
        custom_metadata: dict[str, Any] | None = None,
    ) -> int:
        """Saves the next version and returns its number, from 0.

        Raises:
            InputValidationError: The artifact has no content that can be kept, or its metadata is not JSON.
            OSError: It cannot be written; the artifact is as it was before.
        """
        part = ensure_part(artifact)
        if artifact_util.is_artifact_ref(part):
            _target(part, app_name, user_id, session_id, _MOST_REFERENCES)
        content, meta = _split(part)
        meta |= {"filename": filename, **_metadata_entry(filename, _checked_metadata(filename, custom_metadata))}
        folder = self._folder(app_name, user_id, session_id, filename)
        try:
            return await asyncio.to_thread(self._save, folder, filename, content, meta)
        except OSError as error:
            of_setting = f" that {self._setting} names" if self._setting else ""
            error.add_note(f"Artifact {filename!r} cannot be written to the place{of_setting}.")
            raise

    def _save(self, folder: ObjectStoragePath, filename: str, content: bytes, meta: dict[str, Any]) -> int:
        latest = next(_versions(folder), None)
        number = latest.number + 1 if latest else 0
        while not storage.create_folder(folder / str(number), _file_name(filename), content, _META, meta):
            number += 1
        return number

    async def load_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> types.Part | None:
        """The artifact's latest, or given, version; None when there is none.

        A reference to another artifact (``artifact://...``) is followed, as ADK's services do.
        """
        remaining = _MOST_REFERENCES
        while True:
            folder = self._folder(app_name, user_id, session_id, filename)
            part = await asyncio.to_thread(_load, folder, version)
            if part is None or part == _ABSENT:
                return None
            if not artifact_util.is_artifact_ref(part):
                return part
            target = _target(part, app_name, user_id, session_id, remaining)
            session_id, filename, version = target.session_id, target.filename, target.version
            remaining -= 1

    async def list_artifact_keys(self, *, app_name: str, user_id: str, session_id: str | None = None) -> list[str]:
        """The names of all artifacts of the session and of the user, sorted."""
        scopes = [(self._scope(app_name, user_id, None), _USER)]
        if session_id is not None:
            scopes.append((self._scope(app_name, user_id, session_id), ""))
        return await asyncio.to_thread(lambda: sorted({name for scope, prefix in scopes for name in _keys(scope, prefix)}))

    async def delete_artifact(self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None) -> None:
        """Removes all versions of the artifact; nothing happens when there is none."""
        folder = self._folder(app_name, user_id, session_id, filename)
        await asyncio.to_thread(_delete, folder)

    async def list_versions(self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None) -> list[int]:
        """The numbers of all versions, ascending."""
        folder = self._folder(app_name, user_id, session_id, filename)
        return await asyncio.to_thread(lambda: sorted(version.number for version in _versions(folder)))

    async def list_artifact_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[ArtifactVersion]:
        """What is known of each version, ascending."""
        folder = self._folder(app_name, user_id, session_id, filename)
        return await asyncio.to_thread(lambda: [_describe(version) for version in _versions(folder)][::-1])

    async def get_artifact_version(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> ArtifactVersion | None:
        """What is known of the latest, or given, version; None when there is none."""
        folder = self._folder(app_name, user_id, session_id, filename)

        def describe() -> ArtifactVersion | None:
            found = _read(folder, version)
            return _describe(found) if found else None

        return await asyncio.to_thread(describe)

    def _folder(self, app_name: str, user_id: str, session_id: str | None, filename: str) -> ObjectStoragePath:
        of_user = filename.startswith(_USER)
        if session_id is None and not of_user:
            raise InputValidationError(f"Artifact {filename!r} belongs to a session: give a session_id.")
        scope = self._scope(app_name, user_id, None if of_user else session_id)
        return scope / quoted(filename.removeprefix(_USER))

    def _scope(self, app_name: str, user_id: str, session_id: str | None) -> ObjectStoragePath:
        for field, value in (("app_name", app_name), ("user_id", user_id), ("session_id", session_id)):
            if value is not None and not value.strip():
                raise InputValidationError(f"{field} must not be empty.")
        user = self.root / quoted(app_name) / quoted(user_id)
        if session_id is None:
            return user / "user"
        return user / (_SESSION_FOLDER + quoted(session_id, NAME_BYTES - len(_SESSION_FOLDER)))


def _versions(folder: ObjectStoragePath) -> Iterator[_Version]:
    """The versions that are there, the latest first."""
    for number in sorted((int(name) for name in storage.names_in(folder) if name.isdecimal()), reverse=True):
        place = folder / str(number)
        meta = _meta(place)
        if meta is not None:
            yield _Version(number, place, meta)


def _meta(place: ObjectStoragePath) -> dict[str, Any] | None:
    try:
        meta: dict[str, Any] = json.loads(place.fs.cat_file(f"{place.path}/{_META}"))
        if meta.keys() >= _META_KEYS:
            return meta
    except (FileNotFoundError, NotADirectoryError):
        return None  # it is being written or deleted
    except (ValueError, AttributeError):
        pass
    log.warning("%s/%s is damaged: this version of the artifact is left out.", place, _META)
    return None


def _read(folder: ObjectStoragePath, number: int | None) -> _Version | None:
    return next((version for version in _versions(folder) if number in (None, version.number)), None)


def _load(folder: ObjectStoragePath, number: int | None) -> types.Part | None:
    version = _read(folder, number)
    if version is None:
        return None
    try:
        return _join(version.content.read_bytes(), version.meta)
    except FileNotFoundError:
        return None  # it is being deleted


def _keys(scope: ObjectStoragePath, prefix: str) -> Iterator[str]:
    for name in storage.names_in(scope):
        latest = next(_versions(scope / name), None)
        if latest is not None:
            # Earlier releases did not write the name down.
            yield latest.meta.get("filename", prefix + unquote(name))


def _delete(folder: ObjectStoragePath) -> None:
    for version in list(_versions(folder)):
        storage.remove_record(version.place, _META, version.content)
    storage.remove_folders(folder, [name for name in storage.names_in(folder) if name.isdecimal()])


def _describe(version: _Version) -> ArtifactVersion:
    return ArtifactVersion(
        version=version.number,
        canonical_uri=version.uri,
        custom_metadata=_metadata_of(version),
        create_time=version.meta["create_time"],
        mime_type=version.meta["mime_type"],
    )


def _target(
    part: types.Part, app_name: str, user_id: str, session_id: str | None, remaining: int
) -> artifact_util.ParsedArtifactUri:
    """What a reference refers to; an InputValidationError where ADK refuses it."""
    return artifact_util.resolve_artifact_reference(
        file_uri=str(part.file_data and part.file_data.file_uri),
        app_name=app_name,
        user_id=user_id,
        session_id=session_id,
        remaining_depth=remaining,
    )


def _file_name(filename: str) -> str:
    """The last part of the artifact's name, so that a person who looks into the folder can open it."""
    name = posixpath.basename(filename.removeprefix(_USER)) or "artifact"
    # Some file systems do not tell capitals from small letters.
    return f"_{name}" if name.casefold() == _META else quoted(name)


def _metadata_entry(filename: str, metadata: dict[str, Any]) -> dict[str, Any]:
    """What ``adk.json`` says of it. What holds a secret is sealed, under a key of its own."""
    seal = sealing.Sealing()
    said = seal(metadata, "its custom_metadata")
    seal.warn(f"artifact {filename!r}")
    return {"custom_metadata": metadata} if said is metadata else {"custom_metadata": {}, _SEALED: said}


def _metadata_of(version: _Version) -> dict[str, Any]:
    sealed = version.meta.get(_SEALED)
    try:
        found: dict[str, Any] = version.meta["custom_metadata"] if sealed is None else opened(sealed)
    except EnvelopeError as error:
        raise EnvelopeError(f"the custom_metadata of {version.place}: {error}") from None
    return found


def _checked_metadata(filename: str, metadata: dict[str, Any] | None) -> dict[str, Any]:
    try:
        json.dumps(metadata)
    except (TypeError, ValueError) as error:
        raise InputValidationError(f"Artifact {filename!r}: custom_metadata must be JSON: {error}") from None
    return metadata or {}


def _split(part: types.Part) -> tuple[bytes, dict[str, Any]]:
    meta: dict[str, Any] = {"create_time": time.time(), "mime_type": None}
    if part.inline_data is not None:
        if part.inline_data.data is None:
            raise InputValidationError("An artifact's inline_data must hold data.")
        meta |= {
            "kind": "inline",
            "mime_type": part.inline_data.mime_type,
            "display_name": part.inline_data.display_name,
        }
        return part.inline_data.data, meta
    if part.text is not None:
        return part.text.encode("utf-8", "surrogatepass"), meta | {"kind": "text", "mime_type": "text/plain"}
    if part.file_data is not None and part.file_data.file_uri:
        uri = part.file_data.file_uri
        return b"", meta | {"kind": "file", "mime_type": part.file_data.mime_type, "file_uri": uri}
    raise InputValidationError("An artifact must have inline_data, text, or file_data with a file_uri.")


def _join(content: bytes, meta: dict[str, Any]) -> types.Part:
    if meta["kind"] == "text":
        return types.Part(text=content.decode("utf-8", "surrogatepass"))
    if meta["kind"] == "file":
        return types.Part(file_data=types.FileData(file_uri=meta["file_uri"], mime_type=meta["mime_type"]))
    blob = types.Blob(data=content, mime_type=meta["mime_type"], display_name=meta.get("display_name"))
    return types.Part(inline_data=blob)
