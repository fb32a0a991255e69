"""Which service the settings lead to, and that no error says what is secret."""

from __future__ import annotations

import asyncio
import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from google.adk import Event
from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from adk_airflow.errors import ServiceConfigurationError
from adk_airflow.runtime.services import settings
from adk_airflow.runtime.services.memory import ObjectStorageMemoryService

PROVIDER = """
def memory_service(connection):
    from google.adk.memory.in_memory_memory_service import InMemoryMemoryService

    service = InMemoryMemoryService()
    service.made_of = (connection.conn_id, connection.host)
    return service


def session_service(connection):
    from google.adk.sessions.sqlite_session_service import SqliteSessionService

    return SqliteSessionService(db_path=connection.host)
"""


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An installed distribution with the entry points of a provider for the connection type ``testbank``."""
    (tmp_path / "testbank_provider.py").write_text(PROVIDER)
    info = tmp_path / "testbank_provider-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: testbank-provider\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[adk_airflow.memory]\ntestbank = testbank_provider:memory_service\n"
        "[adk_airflow.sessions]\ntestbank = testbank_provider:session_service\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


def use(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    for name, value in values.items():
        monkeypatch.setenv(f"AIRFLOW__ADK_AIRFLOW__{name.upper()}", value)


def test_a_memory_by_connection(monkeypatch: pytest.MonkeyPatch, provider: None) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_MY_BANK", "testbank://bank.example")
    use(monkeypatch, memory_conn_id="my_bank")

    service = settings.default_memory_service("task")

    assert isinstance(service, InMemoryMemoryService)
    assert service.made_of == ("my_bank", "bank.example")  # type: ignore[attr-defined]


def test_sessions_by_connection(monkeypatch: pytest.MonkeyPatch, provider: None, tmp_path: Path) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_MY_BANK", json.dumps({"conn_type": "testbank", "host": f"{tmp_path}/s.db"}))
    use(monkeypatch, session_conn_id="my_bank")

    assert isinstance(settings.durable_session_service("s", "here"), SqliteSessionService)


def test_a_place_for_files_by_uri_and_connection(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_DISK", "fs://")
    use(monkeypatch, memory_service_uri=f"file://{tmp_path}", memory_conn_id="disk")

    service = settings.default_memory_service("task")

    assert isinstance(service, ObjectStorageMemoryService)
    assert str(service.root) == f"file://disk@{tmp_path}" or service.root.path == str(tmp_path)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"memory_service_uri": "nosuch://user:pa55@bank"}, "neither google-adk nor Airflow's object storage knows nosuch://"),
        ({"memory_service_uri": "just words"}, "memory_service_uri is not a URI such as agentengine://"),
        (
            {"memory_service_uri": "sqlite:////tmp/m.db", "memory_conn_id": "x"},
            "takes no connection, and memory_conn_id",
        ),
        ({"memory_service_uri": "agentengine://a/b"}, "google-adk refuses it: Agent engine resource name is mal-formatted"),
        ({"memory_conn_id": "missing"}, "there is no Airflow connection 'missing'"),
        (
            {"memory_conn_id": "other"},
            r"has memory_service\(\) for connection 'other', whose type is 'http'",
        ),
    ],
)
def test_a_memory_that_is_not_there(monkeypatch: pytest.MonkeyPatch, values: dict[str, str], words: str) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", "http://user:pa55@host")
    use(monkeypatch, **values)

    with pytest.raises(ServiceConfigurationError, match=words) as caught:
        settings.default_memory_service("task")
    assert "pa55" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "^agent 'x': session 's' is to be kept, but no session service is configured"),
        ({"session_service_uri": "memory://"}, "ends with the task"),
        ({"session_service_uri": "sqlite:///a", "session_conn_id": "x"}, "are both set"),
        ({"session_service_uri": "nosuch://user:pa55@bank"}, r"session_service_uri \(nosuch://...\): google-adk refuses it"),
        pytest.param(
            {"session_conn_id": "bank"},
            r"session_conn_id \(postgresql\+asyncpg://...\): google-adk refuses it",
            marks=pytest.mark.skipif(find_spec("asyncpg") is not None, reason="the driver is installed here"),
        ),
        ({"session_conn_id": "missing"}, "there is no Airflow connection 'missing'"),
        ({"session_conn_id": "empty"}, "connection 'empty' names neither a host nor a database"),
        ({"session_conn_id": "other"}, "no installed provider has session_service"),
    ],
)
def test_a_session_service_that_is_not_there(monkeypatch: pytest.MonkeyPatch, values: dict[str, str], words: str) -> None:
    # Where the driver asyncpg is not installed, google-adk refuses the database.
    monkeypatch.setenv("AIRFLOW_CONN_EMPTY", "postgres://user:pa55@")
    monkeypatch.setenv("AIRFLOW_CONN_BANK", "postgres://user:pa55@host:5432/adk")
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", "http://user:pa55@host")
    use(monkeypatch, **values)

    with pytest.raises(ServiceConfigurationError, match=words) as caught:
        settings.durable_session_service("s", "agent 'x'")
    assert "pa55" not in str(caught.value)
    assert caught.value.__cause__ is None


NO_PLACES = [
    ("artifacts", "is not a URI such as .*file:///data/"),
    ("./artifacts", "is not a URI"),
    ("file:artifacts", "is not a URI"),
    ("just words", "is not a URI"),
    ("://bucket/artifacts", "is not a URI"),
    ("file://artifacts", r"\(file://...\) is a relative path: a file URI has three slashes"),
    ("file://./artifacts", "is a relative path"),
    ("file://~/artifacts", "is a relative path"),
    ("file://localhost/artifacts", "is a relative path"),
    ("file://disk@artifacts", "is a relative path"),
    ("file://", "is a relative path"),
    ("local://artifacts", "is a relative path"),
    ("s3://", r"\(s3://...\) names no bucket"),
    ("s3:///artifacts", "names no bucket"),
    ("gs://user@/artifacts", "names no bucket"),
    ("nosuch://user:pa55@bucket", r"knows? nosuch:// .*Install the Airflow provider for it, or use a URI such as"),
    ("nosuch2://", "nosuch2://"),
]


@pytest.mark.parametrize("setting", ["artifacts_uri", "memory_service_uri"])
@pytest.mark.parametrize(
    ("uri", "words"), [*NO_PLACES, ("file://{file}", "lies below a file"), ("{file}/x", "lies below a file")]
)
def test_a_place_that_cannot_be_is_one_error_that_names_the_setting(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, setting: str, uri: str, words: str
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    use(monkeypatch, **{setting: uri.format(file=tmp_path / "file")})

    with pytest.raises(ServiceConfigurationError, match=words) as caught:
        settings.default_artifact_service() if setting == "artifacts_uri" else settings.default_memory_service("task")
    assert str(caught.value).startswith(f"[adk_airflow] {setting} ")
    assert "pa55" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.parametrize("form", ["file://{}", "{}", " file://{} ", "local://{}", "file://disk@{}"])
def test_an_absolute_place_is_used_as_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: str) -> None:
    use(monkeypatch, artifacts_uri=form.format(tmp_path / "a"), memory_service_uri=form.format(tmp_path / "m"))
    memory = settings.default_memory_service("task")

    assert settings.default_artifact_service().root.path == str(tmp_path / "a")
    assert isinstance(memory, ObjectStorageMemoryService)
    assert memory.root.path == str(tmp_path / "m")


@pytest.mark.parametrize("setting", ["session_service_uri", "memory_service_uri"])
@pytest.mark.parametrize(
    "uri", ["sqlite:///s.db", "sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite:///./s.db", "sqlite:////"]
)
def test_a_database_that_depends_on_the_working_directory_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, setting: str, uri: str
) -> None:
    monkeypatch.chdir(tmp_path)
    use(monkeypatch, **{setting: uri})

    with pytest.raises(ServiceConfigurationError, match=rf"{setting} \(sqlite://...\) names no absolute path: .* four slashes"):
        settings.durable_session_service("s", "x") if setting == "session_service_uri" else settings.default_memory_service("t")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("/data/sessions.db", "is not a URI such as sqlite:"),
        ("sessions.db", "is not a URI such as sqlite:"),
        ("sqlite+aiosqlite:///s.db", "names no absolute path"),
        ("postgresql://", "names neither a host nor a database"),
        ("postgresql+asyncpg://user:pa55@/", "names neither a host nor a database"),
        ("mysql+aiomysql:///", "names neither a host nor a database"),
        ("agentengine://", "google-adk refuses it"),
        ("file:///data/sessions", "google-adk refuses it"),
        ("file://sessions", "is a relative path"),
    ],
)
def test_a_session_service_that_cannot_be_is_one_error_that_names_the_setting(
    monkeypatch: pytest.MonkeyPatch, uri: str, words: str
) -> None:
    use(monkeypatch, session_service_uri=uri)

    with pytest.raises(ServiceConfigurationError, match=rf"^\[adk_airflow\] session_service_uri .*{words}"):
        settings.durable_session_service("s", "agent 'x'")


def test_a_place_that_cannot_be_written_is_named_by_its_setting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere" / "at all")
    monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__ARTIFACTS_URI", f"file://{tmp_path}/link")
    service = settings.default_artifact_service()
    save = service.save_artifact(app_name="a", user_id="u", session_id="s", filename="f", artifact=types.Part(text="x"))

    with pytest.raises(OSError, match="link") as caught:
        asyncio.run(save)

    assert caught.value.__notes__ == ["Artifact 'f' cannot be written to the place that [adk_airflow] artifacts_uri names."]


@pytest.mark.parametrize("shared", [False, True])
def test_workers_with_homes_of_their_own_share_memory_and_artifacts_by_setting(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shared: bool
) -> None:
    """As docker-compose.yaml sets them; by default each worker has what its own tasks left."""
    if shared:
        use(monkeypatch, memory_service_uri=f"file://{tmp_path}/memory", artifacts_uri=f"file://{tmp_path}/artifacts")

    async def leave() -> None:
        event = Event(author="user", message="bees dance")
        memory = settings.default_memory_service("task")
        await memory.add_events_to_memory(app_name="app", user_id="airflow", events=[event], session_id="run")
        part = types.Part(text="honey")
        await settings.default_artifact_service().save_artifact(
            app_name="app", user_id="airflow", session_id="run", filename="jar", artifact=part
        )

    async def find() -> tuple[int, bool]:
        found = await settings.default_memory_service("task").search_memory(app_name="app", user_id="airflow", query="bees")
        jar = await settings.default_artifact_service().load_artifact(
            app_name="app", user_id="airflow", session_id="run", filename="jar"
        )
        return len(found.memories), jar is not None

    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "one"))
    asyncio.run(leave())
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "other"))
    assert asyncio.run(find()) == ((1, True) if shared else (0, False))
