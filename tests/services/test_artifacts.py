"""Artifacts as files: every name is kept apart from every other, and a version is there whole or not at all."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import ObjectStoragePath
from airflow.sdk.io import attach
from cryptography.fernet import Fernet
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem
from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.errors.input_validation_error import InputValidationError
from google.genai import types

from adk_airflow.errors import EnvelopeError
from adk_airflow.runtime.services.artifacts import ObjectStorageArtifactService
from tests.keys import SetKey

RUN = {"app_name": "app", "user_id": "airflow", "session_id": "run"}
NAMES = [
    *(".", "..", "...", "", " ", "a", "A", "a.", "a ", " a", "a/b", "a/../b", "a/..", "/a", "a/", "a//b", "..\\a", "C:a"),
    *(
        "a%2Fb",
        "%2E",
        "%",
        "%-",
        "0",
        "1",
        "user",
        "session-run",
        "adk.json",
        "ADK.JSON",
        "x/adk.json",
        "a\0b",
        "a\nb",
        ".hidden",
    ),
    *("user:a", "user:", "user:.", "user:..", "user:user:a", "user:/a", "User:a", "user :a"),
    *("caf\u00e9", "cafe\u0301", "\u212b", "\u00c5", "ß", "明月", "🐝", "\ud800"),
    *("n" * 255, "n" * 256, "n" * 400 + "1", "n" * 400 + "2", "é" * 200, "/" * 300, "user:" + "n" * 300, "x/" * 200 + "end.md"),
]


@pytest.fixture(params=["file", "memory"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A place on the file system, and one in an object store."""
    if request.param == "file":
        yield f"file://{tmp_path}/artifacts"
        return
    store = MemoryFileSystem()
    attach(protocol="memory", fs=store)
    yield "memory://bucket/artifacts"
    if store.exists("/bucket"):
        store.rm("/bucket", recursive=True)


def save(service: Any, filename: str, text: str, **scope: Any) -> int:
    return asyncio.run(service.save_artifact(filename=filename, artifact=types.Part(text=text), **{**RUN, **scope}))


def load(service: Any, filename: str, version: int | None = None, **scope: Any) -> str | None:
    part = asyncio.run(service.load_artifact(filename=filename, version=version, **{**RUN, **scope}))
    return part and part.text


def keys(service: Any, **scope: Any) -> list[str]:
    return asyncio.run(service.list_artifact_keys(**{**RUN, **scope}))


def test_custom_metadata_with_a_secret_is_sealed(set_key: SetKey, tmp_path: Path) -> None:
    set_key(Fernet.generate_key().decode())
    service = ObjectStorageArtifactService(f"file://{tmp_path}/artifacts")
    given = {"by": {"token": "of-the-customer"}, "$": "sealed", "v": 1}
    asyncio.run(service.save_artifact(filename="a", artifact=types.Part(text="x"), custom_metadata=given, **RUN))
    (meta,) = (path.read_text() for path in tmp_path.rglob("adk.json"))
    told = asyncio.run(service.get_artifact_version(filename="a", **RUN))

    assert "of-the-customer" not in meta
    assert told is not None
    assert told.custom_metadata == given
    set_key("")
    with pytest.raises(
        EnvelopeError, match=r"the custom_metadata of .*artifacts/.*/a/0: a value is sealed .*none here\. Set \[core"
    ):
        asyncio.run(service.list_artifact_versions(filename="a", **RUN))
    assert load(service, "a") == "x"


def versions(service: Any, filename: str) -> list[int]:
    return asyncio.run(service.list_versions(filename=filename, **RUN))


def delete(service: Any, filename: str) -> None:
    asyncio.run(service.delete_artifact(filename=filename, **RUN))


def test_any_name_is_an_artifact_of_its_own_as_in_google_adk(uri: str) -> None:
    service, theirs = ObjectStorageArtifactService(uri), InMemoryArtifactService()
    for number, name in enumerate(NAMES):
        assert save(service, name, f"text {number}") == save(theirs, name, f"text {number}") == 0, name
    assert save(service, "..", "again") == save(theirs, "..", "again") == 1

    assert keys(service) == keys(theirs) == sorted(NAMES)
    assert keys(service, session_id=None) == keys(theirs, session_id=None)
    for name in NAMES:
        assert load(service, name) == load(theirs, name), name
        assert load(service, name, 0) == load(theirs, name, 0), name
    for name in NAMES[::2]:
        delete(service, name)
        delete(theirs, name)
    assert keys(service) == keys(theirs) == sorted(NAMES[1::2])


def test_no_name_leaves_its_session(tmp_path: Path) -> None:
    service = ObjectStorageArtifactService(f"file://{tmp_path}/a/b/c")
    save(service, "kept", "of another run", session_id="other")
    for name in (".", "..", "../..", "../../..", "user:..", "/", "../session-other/kept"):
        save(service, name, "escaped?")
        delete(service, name)

    assert load(service, "kept", session_id="other") == "of another run"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    left = {path.relative_to(tmp_path / "a/b/c/app/airflow").parts[0] for path in tmp_path.rglob("*.json")}
    assert left == {"session-other"}


@pytest.mark.parametrize("field", ["app_name", "user_id", "session_id"])
def test_apps_users_and_sessions_of_any_name_are_kept_apart(uri: str, field: str) -> None:
    service = ObjectStorageArtifactService(uri)
    names = [".", "..", "a/b", "a%2Fb", "user", "session-run", "x" * 248, "x" * 300 + "1", "x" * 300 + "2", "a\0b", "C:x"]
    for name in names:
        save(service, "..", name, **{field: name})

    for name in names:
        assert load(service, "..", **{field: name}) == name
        assert keys(service, **{field: name}) == [".."]


@pytest.mark.parametrize("field", ["app_name", "user_id", "session_id"])
def test_an_empty_app_user_or_session_is_refused_as_by_google_adk(uri: str, field: str) -> None:
    for service in (ObjectStorageArtifactService(uri), InMemoryArtifactService()):
        with pytest.raises(InputValidationError, match=f"{field} must not be empty"):
            save(service, "a", "text", **{field: ""})
        with pytest.raises(InputValidationError, match=f"{field} must not be empty"):
            keys(service, **{field: " "})


def test_a_sessions_artifact_needs_a_session(uri: str) -> None:
    with pytest.raises(InputValidationError, match="'a' belongs to a session"):
        save(ObjectStorageArtifactService(uri), "a", "text", session_id=None)


@pytest.mark.parametrize("name", ["report.md", "a/report.md", "n" * 300, "..", "user:adk.json"])
def test_the_uri_of_a_version_leads_to_its_content(uri: str, name: str) -> None:
    service = ObjectStorageArtifactService(uri)
    save(service, name, "one")
    save(service, name, "two")
    told = asyncio.run(service.list_artifact_versions(filename=name, **RUN))

    assert [ObjectStoragePath(version.canonical_uri).read_text() for version in told] == ["one", "two"]
    assert service.artifact_uri("app", "airflow", "run", name, 1) == told[1].canonical_uri
    with pytest.raises(FileNotFoundError, match="has no version 2"):
        service.artifact_uri("app", "airflow", "run", name, 2)


def test_what_is_saved_is_what_is_loaded(uri: str) -> None:
    service, theirs = ObjectStorageArtifactService(uri), InMemoryArtifactService()
    blob = types.Blob(data=b"\x89PNG\0", mime_type="image/png", display_name="Bee")
    link = types.FileData(file_uri="s3://elsewhere/bee.png", mime_type="image/png")
    parts = [types.Part(text=""), types.Part(text="\ud800"), types.Part(inline_data=blob), types.Part(file_data=link)]
    parts.append(types.Part(inline_data=types.Blob(data=b"", mime_type="application/octet-stream")))  # absent, after a rewind
    for part in parts:
        for each in (service, theirs):
            asyncio.run(each.save_artifact(filename="bee", artifact=part, custom_metadata={"by": ["me"]}, **RUN))

    for number in range(len(parts)):
        ours, there = (asyncio.run(each.load_artifact(filename="bee", version=number, **RUN)) for each in (service, theirs))
        assert ours == there
        ours, there = (
            asyncio.run(each.get_artifact_version(filename="bee", version=number, **RUN)) for each in (service, theirs)
        )
        assert (ours.version, ours.mime_type, ours.custom_metadata) == (there.version, there.mime_type, there.custom_metadata)
    assert load(service, "bee") is load(theirs, "bee") is None


def test_a_reference_to_another_artifact_is_followed_as_in_google_adk(uri: str) -> None:
    def refer(service: Any, filename: str, target: str) -> None:
        part = types.Part(file_data=types.FileData(file_uri=f"artifact://apps/app/users/airflow/{target}"))
        asyncio.run(service.save_artifact(filename=filename, artifact=part, **RUN))

    for service in (ObjectStorageArtifactService(uri), InMemoryArtifactService()):
        save(service, "goal", "one")
        save(service, "goal", "two")
        refer(service, "link", "sessions/run/artifacts/goal/versions/0")
        refer(service, "second", "sessions/run/artifacts/link/versions/0")
        refer(service, "circle", "sessions/run/artifacts/circle/versions/0")
        assert [load(service, "link"), load(service, "second")] == ["one", "one"]
        with pytest.raises(InputValidationError, match="recursion depth"):
            load(service, "circle")
        with pytest.raises(InputValidationError, match="same session scope"):
            refer(service, "stolen", "sessions/other/artifacts/goal/versions/0")


def test_metadata_that_is_not_json_is_refused_and_nothing_is_saved(uri: str) -> None:
    service = ObjectStorageArtifactService(uri)
    part = types.Part(text="text")
    with pytest.raises(InputValidationError, match="'a': custom_metadata must be JSON"):
        asyncio.run(service.save_artifact(filename="a", artifact=part, custom_metadata={"x": object()}, **RUN))
    assert keys(service) == []


def test_saves_at_one_time_are_all_kept(uri: str) -> None:
    service = ObjectStorageArtifactService(uri)

    async def save_many() -> list[int]:
        parts = [types.Part(text=f"text {number}") for number in range(24)]
        return await asyncio.gather(*(service.save_artifact(filename="a", artifact=part, **RUN) for part in parts))

    numbers = asyncio.run(save_many())

    assert versions(service, "a") == sorted(numbers) == list(range(24))
    assert [load(service, "a", number) for number in numbers] == [f"text {number}" for number in range(24)]


def test_what_is_saved_while_others_delete_is_kept_whole(tmp_path: Path) -> None:
    service = ObjectStorageArtifactService(f"file://{tmp_path}")

    async def save_and_delete() -> None:
        for _ in range(20):
            saves = [service.save_artifact(filename="a", artifact=types.Part(text="whole"), **RUN) for _ in range(4)]
            await asyncio.gather(*saves, *(service.delete_artifact(filename="a", **RUN) for _ in range(4)))
            for number in await service.list_versions(filename="a", **RUN):
                assert await service.load_artifact(filename="a", version=number, **RUN) == types.Part(text="whole")
        await service.delete_artifact(filename="a", **RUN)

    asyncio.run(save_and_delete())

    assert keys(service) == []
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


SAVER = """
import asyncio, sys
from google.genai import types
from adk_airflow.runtime.services.artifacts import ObjectStorageArtifactService

who, uri = sys.argv[1:]
service = ObjectStorageArtifactService(uri)
print("ready", flush=True)
sys.stdin.readline()
for number in range(20):
    part = types.Part(text=f"{who}-{number}" * 1000)
    print(asyncio.run(service.save_artifact(app_name="app", user_id="airflow", session_id="run", filename="a", artifact=part)))
"""


def test_saves_of_several_processes_are_all_kept(tmp_path: Path) -> None:
    uri = f"file://{tmp_path}"
    processes = [
        subprocess.Popen([sys.executable, "-c", SAVER, who, uri], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for who in ("one", "two", "three")
    ]
    for process in processes:
        assert process.stdout is not None
        while process.stdout.readline().strip() != "ready":
            assert process.poll() is None
    told = {}
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for who, process in zip(("one", "two", "three"), processes, strict=True):
        lines = process.communicate()[0].split()
        told.update({int(version): f"{who}-{number}" * 1000 for number, version in enumerate(lines)})

    service = ObjectStorageArtifactService(uri)
    assert versions(service, "a") == sorted(told) == list(range(60))
    assert {number: load(service, "a", number) for number in told} == told


FULL_DISK = """
import asyncio, resource, sys
from google.genai import types
from adk_airflow.runtime.services.artifacts import ObjectStorageArtifactService

uri, length, limit = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
service = ObjectStorageArtifactService(uri)
part = types.Part(text="x" * length)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    asyncio.run(service.save_artifact(app_name="app", user_id="airflow", session_id="run", filename="a", artifact=part))
except OSError as error:
    print(type(error).__name__)
"""


@pytest.mark.parametrize(
    ("length", "limit"), [pytest.param(5, 100, id="between-content-and-record"), pytest.param(9000, 4096, id="in-the-content")]
)
@pytest.mark.parametrize("before", [[], ["kept"]])
def test_on_a_full_disk_an_artifact_is_as_it_was_before(tmp_path: Path, before: list[str], length: int, limit: int) -> None:
    uri = f"file://{tmp_path}"
    service = ObjectStorageArtifactService(uri)
    for text in before:
        save(service, "a", text)
    command = [sys.executable, "-c", FULL_DISK, uri, str(length), str(limit)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert told.split()[-1:] == ["OSError"]
    assert versions(service, "a") == list(range(len(before)))
    assert load(service, "a") == (before[-1] if before else None)
    assert keys(service) == (["a"] if before else [])
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 2 * len(before)
    assert save(service, "a", "after") == len(before)
    assert load(service, "a") == "after"


def test_artifacts_of_before_stay_readable(tmp_path: Path) -> None:
    """As releases wrote them whose adk.json does not say where the content is."""
    meta = {"create_time": 1.0, "mime_type": "text/plain", "kind": "text", "custom_metadata": {"by": "me"}}
    files = {
        "report.md": "report.md",
        "a%2Freport%20one.md": "report%20one.md",
        "adk.json": "_adk.json",
        "a%2F.": "_.",
        "a%2F": "artifact",
    }
    for scope in ("session-run", "user"):
        for folder, name in files.items():
            place = tmp_path / "app" / "airflow" / scope / folder / "0"
            place.mkdir(parents=True)
            (place / name).write_text(f"{scope} {name}")
            (place / "adk.json").write_text(json.dumps(meta))
    service = ObjectStorageArtifactService(f"file://{tmp_path}")

    names = {
        "report.md": "report.md",
        "a/report one.md": "report%20one.md",
        "adk.json": "_adk.json",
        "a/.": "_.",
        "a/": "artifact",
    }
    assert keys(service) == sorted([*names, *(f"user:{name}" for name in names)])
    for name, file in names.items():
        assert load(service, name) == f"session-run {file}"
        assert load(service, f"user:{name}") == f"user {file}"
    (told,) = asyncio.run(service.list_artifact_versions(filename="report.md", **RUN))
    assert ObjectStoragePath(told.canonical_uri).read_text() == "session-run report.md"
    assert (told.create_time, told.mime_type, told.custom_metadata) == (1.0, "text/plain", {"by": "me"})
    assert save(service, "report.md", "next") == 1
    assert load(service, "report.md", 0) == "session-run report.md"


@pytest.mark.parametrize("damage", [b"", b'{"kind": "te', b"[]", b"\xff", b'{"kind": "text"}', None])
def test_a_version_that_an_earlier_release_left_damaged_is_left_out(
    tmp_path: Path, damage: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    service = ObjectStorageArtifactService(f"file://{tmp_path}")
    save(service, "a", "whole")
    place = tmp_path / "app" / "airflow" / "session-run" / "a" / "1"
    place.mkdir()
    (place / "a").write_text("lost")
    if damage is not None:
        (place / "adk.json").write_bytes(damage)

    assert (versions(service, "a"), load(service, "a"), load(service, "a", 1), keys(service)) == ([0], "whole", None, ["a"])
    assert ("is damaged" in caplog.text) is (damage is not None)
    assert save(service, "a", "next") == 2
    assert versions(service, "a") == [0, 2]


def test_a_place_that_cannot_be_written_is_an_error_at_once(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere" / "at all")
    with pytest.raises(OSError, match="link"):
        save(ObjectStorageArtifactService(f"file://{tmp_path}/link"), "a", "text")


def test_a_deleted_artifact_begins_anew_as_in_google_adk(uri: str) -> None:
    for service in (ObjectStorageArtifactService(uri), InMemoryArtifactService()):
        assert [save(service, "a", "one"), save(service, "a", "two"), save(service, "a/b", "other")] == [0, 1, 0]
        delete(service, "a")
        delete(service, "a")
        assert (versions(service, "a"), load(service, "a"), keys(service)) == ([], None, ["a/b"])
        assert (save(service, "a", "three"), load(service, "a"), load(service, "a", 1)) == (0, "three", None)


class FullStore(MemoryFileSystem):  # type: ignore[misc]
    """An object store that takes so many more objects."""

    cachable = False
    room = 0

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
        if self.room == 0:
            raise OSError(28, "No space left on device", path)
        self.room -= 1
        super().pipe_file(path, value, mode=mode, **kwargs)


@pytest.mark.parametrize("room", [0, 1, 2])
def test_an_object_store_that_refuses_a_part_of_a_version_leaves_the_artifact_as_it_was(room: int) -> None:
    store = FullStore()
    attach(protocol="memory", conn_id=f"full{room}", fs=store)
    service = ObjectStorageArtifactService("memory://full/artifacts", conn_id=f"full{room}")
    store.room = 3
    assert save(service, "a", "one") == 0
    there = store.find("/full")
    store.room = room
    with pytest.raises(OSError, match="No space left"):
        save(service, "a", "two")

    assert (versions(service, "a"), load(service, "a"), keys(service), store.find("/full")) == ([0], "one", ["a"], there)
    store.room = 10
    assert save(service, "a", "three") == 1
    assert (versions(service, "a"), load(service, "a")) == ([0, 1], "three")
    store.rm("/full", recursive=True)


def test_a_file_system_with_folders_that_is_not_local(tmp_path: Path) -> None:
    attach(protocol="memory", conn_id="folders", fs=DirFileSystem(path=str(tmp_path), fs=LocalFileSystem()))
    service = ObjectStorageArtifactService("memory://folders/artifacts", conn_id="folders")
    assert [save(service, "..", "one"), save(service, "..", "two"), save(service, "n" * 300, "three")] == [0, 1, 0]

    assert (load(service, "..", 0), load(service, ".."), load(service, "n" * 300)) == ("one", "two", "three")
    assert keys(service) == sorted(["..", "n" * 300])
    delete(service, "..")
    assert keys(service) == ["n" * 300]
