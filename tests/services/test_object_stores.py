"""Artifacts and memory on S3, spoken to over HTTP: nothing is lost, whether or not the server honours conditional writes.

S3 itself creates an object only where none is yet, when asked to; of the servers that speak its protocol many look first and
write then, as moto does, and some ignore the question.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

import pytest
from airflow.sdk.io import attach
from fsspec.implementations.memory import MemoryFileSystem
from google.adk import Event
from google.genai import types
from moto.server import DomainDispatcherApplication, create_backend_app
from s3fs import S3FileSystem
from werkzeug.serving import make_server

from adk_airflow.runtime.services import storage
from adk_airflow.runtime.services.artifacts import ObjectStorageArtifactService
from adk_airflow.runtime.services.memory import ObjectStorageMemoryService

RUN = {"app_name": "app", "user_id": "airflow", "session_id": "run", "filename": "many.txt"}
URI = "s3://bucket/artifacts"

Wsgi = Callable[[dict[str, Any], Any], Any]


def ignoring_conditions(app: Wsgi) -> Wsgi:
    def ask(environ: dict[str, Any], start_response: Any) -> Any:
        environ.pop("HTTP_IF_NONE_MATCH", None)
        return app(environ, start_response)

    return ask


@pytest.fixture(params=["looks-first", "ignores-conditions"])
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of an S3 server with an empty bucket ``bucket``."""
    app: Wsgi = DomainDispatcherApplication(create_backend_app)
    if request.param == "ignores-conditions":
        app = ignoring_conditions(app)
    served = make_server("127.0.0.1", 0, app, threaded=True)
    thread = Thread(target=served.serve_forever)
    thread.start()
    address = f"http://127.0.0.1:{served.server_port}"
    store = connect(address)
    store.mkdir("bucket")
    yield address
    store.rm("bucket", recursive=True)
    served.shutdown()
    thread.join()


def connect(address: str) -> S3FileSystem:
    store = S3FileSystem(key="testing", secret="testing", endpoint_url=address, skip_instance_cache=True)
    attach(protocol="s3", conn_id=address, fs=store)
    return store


def save(service: ObjectStorageArtifactService, text: str) -> int:
    return asyncio.run(service.save_artifact(artifact=types.Part(text=text), **RUN))


def saved(service: ObjectStorageArtifactService) -> dict[int, str | None]:
    """The text of each version that is there."""

    async def load() -> dict[int, str | None]:
        found = {}
        for number in await service.list_versions(**RUN):
            part = await service.load_artifact(version=number, **RUN)
            found[number] = part and part.text
        return found

    return asyncio.run(load())


def test_items_of_one_process_that_save_one_name_each_have_a_version(server: str) -> None:
    service = ObjectStorageArtifactService(URI, server)

    async def save_all() -> list[int]:
        parts = [types.Part(text=f"item {number}") for number in range(8)]
        return await asyncio.gather(*(service.save_artifact(artifact=part, **RUN) for part in parts))

    numbers = asyncio.run(save_all())

    assert sorted(numbers) == list(range(8))
    assert saved(service) == {number: f"item {item}" for item, number in enumerate(numbers)}


SAVER = """
import asyncio, sys
from airflow.sdk.io import attach
from google.genai import types
from s3fs import S3FileSystem
from adk_airflow.runtime.services.artifacts import ObjectStorageArtifactService

who, address = sys.argv[1:]
attach(protocol="s3", conn_id=address, fs=S3FileSystem(key="testing", secret="testing", endpoint_url=address))
service = ObjectStorageArtifactService("s3://bucket/artifacts", address)
run = {"app_name": "app", "user_id": "airflow", "session_id": "run", "filename": "many.txt"}
print("ready", flush=True)
sys.stdin.readline()
for number in range(4):
    print(asyncio.run(service.save_artifact(artifact=types.Part(text=f"{who}-{number}"), **run)))
"""


def test_tasks_on_several_machines_that_save_one_name_each_have_a_version(server: str) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", SAVER, who, server], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for who in ("one", "two", "three", "four")
    ]
    for process in processes:
        assert process.stdout is not None
        while process.stdout.readline().strip() != "ready":
            assert process.poll() is None
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    told = {}
    for who, process in zip(("one", "two", "three", "four"), processes, strict=True):
        numbers = process.communicate()[0].split()
        told.update({int(version): f"{who}-{number}" for number, version in enumerate(numbers)})

    assert sorted(told) == list(range(16))
    assert saved(ObjectStorageArtifactService(URI, server)) == told


def test_what_another_machine_saved_or_said_is_seen_at_once(server: str) -> None:
    here, elsewhere = f"{server}/", server
    connect(here)
    ours, theirs = (ObjectStorageArtifactService(URI, connection) for connection in (here, elsewhere))
    assert (saved(ours), save(theirs, "theirs")) == ({}, 0)
    assert (saved(ours), save(ours, "ours")) == ({0: "theirs"}, 1)
    assert saved(theirs) == {0: "theirs", 1: "ours"}

    async def remembered(connection: str) -> list[str | None]:
        memory = ObjectStorageMemoryService("s3://bucket/memory", connection)
        found = await memory.search_memory(app_name="app", user_id="airflow", query="bees")
        return [entry.content.parts[0].text for entry in found.memories if entry.content.parts]

    async def remember(connection: str, text: str) -> None:
        memory = ObjectStorageMemoryService("s3://bucket/memory", connection, writer=connection)
        event = Event(author="user", content=types.Content(role="user", parts=[types.Part(text=text)]))
        await memory.add_events_to_memory(app_name="app", user_id="airflow", events=[event], session_id="run")

    assert asyncio.run(remembered(here)) == []
    asyncio.run(remember(elsewhere, "bees dance"))
    assert asyncio.run(remembered(here)) == ["bees dance"]


def test_a_deleted_artifact_leaves_nothing_and_begins_anew(server: str) -> None:
    service = ObjectStorageArtifactService(URI, server)
    assert [save(service, "one"), save(service, "two")] == [0, 1]
    asyncio.run(service.delete_artifact(**RUN))

    assert (saved(service), service.root.fs.find("bucket/artifacts")) == ({}, [])
    assert (save(service, "three"), saved(service)) == (0, {0: "three"})


@pytest.fixture
def store() -> Iterator[MemoryFileSystem]:
    store = MemoryFileSystem()
    attach(protocol="memory", fs=store)
    yield store
    if store.exists("/bucket"):
        store.rm("/bucket", recursive=True)


FOLDER = "/bucket/artifacts/app/airflow/session-run/many.txt"


@pytest.mark.parametrize("age", [0.0, 7200.0])
def test_the_number_of_a_writer_that_died_stays_unused(store: MemoryFileSystem, age: float) -> None:
    token = f"{time.time_ns() - int(age * 1e9):016x}-{'0' * 32}"
    store.pipe_file(f"{FOLDER}/0/{token}/many.txt", b"")
    service = ObjectStorageArtifactService("memory://bucket/artifacts")

    assert (save(service, "next"), saved(service)) == (1, {1: "next"})
    asyncio.run(service.delete_artifact(**RUN))
    # One that began in the last hour may yet be at it.
    assert [path.split("/")[-2] for path in store.find(FOLDER)] == ([token] if age == 0.0 else [])


def test_a_writer_waits_for_one_that_came_after_it_but_not_for_ever(
    store: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "_PATIENCE_SECONDS", 0.1)
    store.pipe_file(f"{FOLDER}/0/{'f' * 16}-{'0' * 32}/many.txt", b"")
    service = ObjectStorageArtifactService("memory://bucket/artifacts")

    assert (save(service, "text"), saved(service)) == (1, {1: "text"})


class LaggingStore(MemoryFileSystem):  # type: ignore[misc]
    """A store whose listings do not show what was just written."""

    cachable = False

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> Any:
        return []


def test_a_place_whose_listings_lag_behind_is_refused_and_nothing_is_left_there() -> None:
    lagging = LaggingStore()
    attach(protocol="memory", conn_id="lagging", fs=lagging)
    with pytest.raises(OSError, match="not listed: where listings lag behind") as error:
        save(ObjectStorageArtifactService("memory://lagging/artifacts", "lagging", setting="[adk_airflow] artifacts_uri"), "a")

    assert "[adk_airflow] artifacts_uri" in "".join(error.value.__notes__)
    assert [path for path in lagging.store if path.startswith("/lagging")] == []
