"""ADK's artifacts as files below any URI that Airflow's object storage knows.

Layout, with every name percent-encoded so that run ids and slashes are safe::

    <uri>/<app>/<user>/<session or "user">/<artifact>/<version>/<artifact>      the bytes or the text
    <uri>/<app>/<user>/<session or "user">/<artifact>/<version>/adk.json        kind, MIME type, custom metadata
"""

from __future__ import annotations

import asyncio
import json
import posixpath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from google.adk.artifacts.base_artifact_service import ArtifactVersion, BaseArtifactService, ensure_part
from google.adk.errors.input_validation_error import InputValidationError
from google.genai import types

if TYPE_CHECKING:
    from airflow.sdk import ObjectStoragePath

_META = "adk.json"
_USER = "user:"


class ObjectStorageArtifactService(BaseArtifactService):
    """ADK's artifact service over ``ObjectStoragePath``; works on one machine and, with a shared URI, on a cluster.

    Args:
        uri: Where artifacts are kept, such as ``file:///data/artifacts`` or ``s3://bucket/artifacts``.
        conn_id: Airflow connection for the URI, or None.
    """

    def __init__(self, uri: str, conn_id: str | None = None) -> None:
        from airflow.sdk import ObjectStoragePath

        self.root = ObjectStoragePath(uri, conn_id=conn_id) if conn_id else ObjectStoragePath(uri)
        # Resolves the connection now: on an event loop that has another request in flight this can hang.
        self.root.fs  # noqa: B018

    def artifact_uri(self, app_name: str, user_id: str, session_id: str | None, filename: str, version: int) -> str:
        """Where the content of one version lies."""
        folder = self._folder(app_name, user_id, session_id, filename) / str(version)
        return str(folder / _file_name(filename))

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
        """Saves the next version and returns its number, from 0."""
        content, meta = _split(ensure_part(artifact))
        meta["custom_metadata"] = custom_metadata or {}
        folder = self._folder(app_name, user_id, session_id, filename)
        return await asyncio.to_thread(self._save, folder, filename, content, meta)

    def _save(self, folder: ObjectStoragePath, filename: str, content: bytes, meta: dict[str, Any]) -> int:
        version = max(self._versions(folder), default=-1) + 1
        while True:
            place = folder / str(version)
            try:
                # On a file system this claims the number; on an object store, which has no folders, it does nothing.
                place.mkdir(parents=True, exist_ok=False)
                break
            except FileExistsError:
                version += 1
        (place / _file_name(filename)).write_bytes(content)
        # Written last: a version without it is not there yet.
        (place / _META).write_text(json.dumps(meta))
        return version

    async def load_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> types.Part | None:
        """The artifact's latest, or given, version; None when there is none."""
        folder = self._folder(app_name, user_id, session_id, filename)
        return await asyncio.to_thread(self._load, folder, filename, version)

    def _load(self, folder: ObjectStoragePath, filename: str, version: int | None) -> types.Part | None:
        versions = self._versions(folder)
        wanted = max(versions, default=None) if version is None else version
        if wanted not in versions:
            return None
        place = folder / str(wanted)
        meta = json.loads((place / _META).read_text())
        return _join((place / _file_name(filename)).read_bytes(), meta)

    async def list_artifact_keys(self, *, app_name: str, user_id: str, session_id: str | None = None) -> list[str]:
        """The names of all artifacts of the session and of the user, sorted."""
        return await asyncio.to_thread(self._keys, app_name, user_id, session_id)

    def _keys(self, app_name: str, user_id: str, session_id: str | None) -> list[str]:
        scopes = [(_scope(None), _USER)] + ([(_scope(session_id), "")] if session_id else [])
        found = set()
        for scope, prefix in scopes:
            place = self.root / quoted(app_name) / quoted(user_id) / scope
            if place.exists():
                names = [unquote(item.name) for item in place.iterdir()]
                found |= {prefix + name for name in names if self._versions(place / quoted(name))}
        return sorted(found)

    async def delete_artifact(self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None) -> None:
        """Removes all versions of the artifact; nothing happens when there is none."""
        folder = self._folder(app_name, user_id, session_id, filename)
        if await asyncio.to_thread(folder.exists):
            await asyncio.to_thread(folder.rmdir, recursive=True)

    async def list_versions(self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None) -> list[int]:
        """The numbers of all versions, ascending."""
        folder = self._folder(app_name, user_id, session_id, filename)
        return await asyncio.to_thread(self._versions, folder)

    async def list_artifact_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[ArtifactVersion]:
        """What is known of each version, ascending."""
        folder = self._folder(app_name, user_id, session_id, filename)
        return await asyncio.to_thread(lambda: [self._describe(folder, filename, number) for number in self._versions(folder)])

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
        all_versions = await self.list_artifact_versions(
            app_name=app_name, user_id=user_id, filename=filename, session_id=session_id
        )
        wanted = [item for item in all_versions if version is None or item.version == version]
        return wanted[-1] if wanted else None

    def _describe(self, folder: ObjectStoragePath, filename: str, version: int) -> ArtifactVersion:
        place = folder / str(version)
        meta = json.loads((place / _META).read_text())
        return ArtifactVersion(
            version=version,
            canonical_uri=meta.get("file_uri") or str(place / _file_name(filename)),
            custom_metadata=meta["custom_metadata"],
            create_time=meta["create_time"],
            mime_type=meta["mime_type"],
        )

    def _folder(self, app_name: str, user_id: str, session_id: str | None, filename: str) -> ObjectStoragePath:
        if not filename.removeprefix(_USER).strip():
            raise InputValidationError("An artifact needs a file name.")
        if not filename.startswith(_USER) and session_id is None:
            raise InputValidationError(f"Artifact {filename!r} belongs to a session: give a session_id.")
        scope = _scope(None if filename.startswith(_USER) else session_id)
        name = quoted(filename.removeprefix(_USER))
        return self.root / quoted(app_name) / quoted(user_id) / scope / name

    @staticmethod
    def _versions(folder: ObjectStoragePath) -> list[int]:
        if not folder.exists():
            return []
        return sorted(int(item.name) for item in folder.iterdir() if item.name.isdecimal() and (item / _META).exists())


def quoted(name: str) -> str:
    """Percent-encodes what a file name cannot hold everywhere; letters of any script stay, since encoded they get too long."""
    return "".join(letter if letter.isalnum() or letter in "._-" else quote(letter, safe="") for letter in name)


def _scope(session_id: str | None) -> str:
    return "user" if session_id is None else "session-" + quoted(session_id)


def _file_name(filename: str) -> str:
    """The last part of the artifact's name, so that a person who looks into the folder can open it."""
    name = quoted(posixpath.basename(filename.removeprefix(_USER))) or "artifact"
    return f"_{name}" if name in (_META, ".", "..") else name


def _split(part: types.Part) -> tuple[bytes, dict[str, Any]]:
    import time

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
        return part.text.encode(), meta | {"kind": "text", "mime_type": "text/plain"}
    if part.file_data is not None and part.file_data.file_uri:
        uri = part.file_data.file_uri
        return b"", meta | {"kind": "file", "mime_type": part.file_data.mime_type, "file_uri": uri}
    raise InputValidationError("An artifact must have inline_data, text, or file_data with a file_uri.")


def _join(content: bytes, meta: dict[str, Any]) -> types.Part:
    if meta["kind"] == "text":
        return types.Part(text=content.decode())
    if meta["kind"] == "file":
        return types.Part(file_data=types.FileData(file_uri=meta["file_uri"], mime_type=meta["mime_type"]))
    blob = types.Blob(data=content, mime_type=meta["mime_type"], display_name=meta.get("display_name"))
    return types.Part(inline_data=blob)
