"""Which ADK services a task uses: as the ``[adk_airflow]`` settings say, by URI or by Airflow connection.

All of them are made before the task's event loop runs: reading a connection on the loop can hang. No error names a URI whole,
since it may hold a password.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from adk_airflow.errors import ServiceConfigurationError
from adk_airflow.runtime.adk import cli
from adk_airflow.runtime.services import connections
from adk_airflow.runtime.services.uris import EXAMPLES, checked_uri

if TYPE_CHECKING:
    from airflow.sdk import Connection, ObjectStoragePath
    from google.adk.memory.base_memory_service import BaseMemoryService
    from google.adk.sessions.base_session_service import BaseSessionService

    from adk_airflow.runtime.services.artifacts import ObjectStorageArtifactService

MEMORY_GROUP = "adk_airflow.memory"
SESSION_GROUP = "adk_airflow.sessions"

# How SQLAlchemy calls the databases that ADK's DatabaseSessionService has an asynchronous driver for.
_DATABASES = {"postgres": "postgresql+asyncpg", "mysql": "mysql+aiomysql"}


def default_artifact_service() -> ObjectStorageArtifactService:
    """The service that ``[adk_airflow] artifacts_uri`` names (default: ``adk_artifacts`` in AIRFLOW_HOME).

    ``[adk_airflow] artifacts_conn_id`` names the Airflow connection for it, where the URI needs one.

    Raises:
        ServiceConfigurationError: There is no such place.
    """
    from adk_airflow.runtime.services.artifacts import ObjectStorageArtifactService

    uri = _uri("artifacts_uri") or f"file://{_airflow_home()}/adk_artifacts"
    try:
        return ObjectStorageArtifactService(uri, _setting("artifacts_conn_id") or None, setting="[adk_airflow] artifacts_uri")
    except Exception as error:
        raise _no_place("artifacts_uri", uri, error) from None


def default_memory_service(writer: str) -> BaseMemoryService:
    """The memory of ``[adk_airflow] memory_service_uri`` or ``memory_conn_id`` (default: ``adk_memory`` in AIRFLOW_HOME).

    A URI of google-adk's own (``agentengine://``, ``rag://``, ``sqlite://``, or a scheme that you registered with it) gives the
    service that google-adk has for it; any other is a place of Airflow's object storage, for which ``memory_conn_id`` names the
    connection. ``memory_conn_id`` alone is a connection whose type an installed provider makes a memory service of.

    Args:
        writer: The task, unique in its session; see ``ObjectStorageMemoryService``.

    Raises:
        ServiceConfigurationError: There is no service for it.
    """
    from adk_airflow.runtime.services.memory import ObjectStorageMemoryService

    uri, conn_id = _uri("memory_service_uri"), _setting("memory_conn_id")
    if not uri and conn_id:
        service: BaseMemoryService = _of_connection("memory_conn_id", conn_id, MEMORY_GROUP, "memory_service")
        return service
    if not uri:
        return ObjectStorageMemoryService(f"file://{_airflow_home()}/adk_memory", writer=writer)
    try:
        found = cli.memory_service(uri, _airflow_home())
    except Exception as error:
        raise _refused("memory_service_uri", uri, error) from None
    if found is None:
        try:
            return ObjectStorageMemoryService(uri, conn_id or None, writer=writer)
        except Exception as error:
            raise _no_place("memory_service_uri", uri, error) from None
    if conn_id:
        raise ServiceConfigurationError(
            f"[adk_airflow] memory_service_uri ({_scheme(uri)}://...) is a service of google-adk, which takes no connection,"
            f" and memory_conn_id names {conn_id!r}. Give one of the two."
        )
    return found


def transcripts_place() -> ObjectStoragePath:
    """The place of ``[adk_airflow] transcripts_uri`` (default: ``adk_records`` beside the artifacts), opened.

    ``[adk_airflow] transcripts_conn_id`` names the Airflow connection for it, where the URI needs one.

    Raises:
        ServiceConfigurationError: There is no such place.
    """
    from adk_airflow.runtime.services import storage

    uri, conn_id = _uri("transcripts_uri"), _setting("transcripts_conn_id")
    if not uri:
        artifacts = _uri("artifacts_uri") or f"file://{_airflow_home()}/adk_artifacts"
        uri, conn_id = beside(artifacts, "adk_records"), conn_id or _setting("artifacts_conn_id")
    try:
        return storage.open_place(uri, conn_id or None)
    except Exception as error:
        raise _no_place("transcripts_uri", uri, error) from None


def beside(uri: str, name: str) -> str:
    """The URI of a folder beside another; in a bucket that is named alone, in it."""
    scheme, _, rest = uri.rstrip("/").partition("://")
    above = rest.rpartition("/")[0]
    return f"{scheme}://{above if above or rest.startswith('/') else rest}/{name}"


def log_content() -> bool:
    """``[adk_airflow] log_content``: what agents say and are told is part of a task's record, not sizes alone."""
    from airflow.sdk import conf

    return bool(conf.getboolean("adk_airflow", "log_content", fallback=True))


def keep_records_days() -> float:
    """``[adk_airflow] keep_records_days``: after how many days ``clean-records`` removes a record; 0 for never.

    Raises:
        ServiceConfigurationError: It is no number, or below 0.
    """
    text = _setting("keep_records_days") or "0"
    try:
        days = float(text)
    except ValueError:
        days = -1.0
    if not 0 <= days < float("inf"):
        raise ServiceConfigurationError(f"[adk_airflow] keep_records_days is {text!r}: give a number of days, or 0 for ever.")
    return days


def durable_session_service(session_id: str, where: str) -> BaseSessionService:
    """ADK's session service of ``[adk_airflow] session_service_uri`` or ``session_conn_id``, for a session that is to be kept.

    Args:
        session_id: The session that is asked for; for errors.
        where: The workflow or agent, and the node; for errors.

    Raises:
        ServiceConfigurationError: Neither is set, or there is no service for it.
    """
    uri, conn_id = _setting("session_service_uri"), _setting("session_conn_id")
    if uri and conn_id:
        raise ServiceConfigurationError(
            "[adk_airflow] session_service_uri and session_conn_id are both set. Give one of the two."
        )
    if conn_id:
        connection = _connection("session_conn_id", conn_id)
        if connection.conn_type not in _DATABASES:
            service: BaseSessionService = _of_connection("session_conn_id", conn_id, SESSION_GROUP, "session_service")
            return service
        uri = _database_url(connection)
    if not uri:
        raise ServiceConfigurationError(
            f"{where}: session {session_id!r} is to be kept, but no session service is configured. Set [adk_airflow]"
            " session_service_uri, such as sqlite:////data/adk/sessions.db, or session_conn_id; or give no session_id."
        )
    if not conn_id:
        uri = checked_uri("session_service_uri", uri)
    if _scheme(uri) == "memory":
        raise ServiceConfigurationError(
            f"{where}: session {session_id!r} is to be kept, but [adk_airflow] session_service_uri is memory://, which ends"
            " with the task. Use sqlite:////data/adk/sessions.db, a database, or agentengine://."
        )
    from airflow.sdk.log import mask_secret

    if password := urlsplit(uri).password:
        mask_secret(unquote(password))

    try:
        return cli.session_service(_async_url(uri), _airflow_home())
    except Exception as error:
        raise _refused("session_conn_id" if conn_id else "session_service_uri", uri, error) from None


def remember_runs() -> bool:
    """``[adk_airflow] remember_runs``: every task that ends well adds what was said in it to the memory."""
    from airflow.sdk import conf

    return bool(conf.getboolean("adk_airflow", "remember_runs", fallback=False))


def _setting(name: str) -> str:
    from airflow.sdk import conf

    return (conf.get("adk_airflow", name, fallback="") or "").strip()


def _uri(name: str) -> str:
    """The URI that a setting holds; empty where it is not set."""
    uri = _setting(name)
    return checked_uri(name, uri) if uri else ""


def _airflow_home() -> str:
    return os.path.abspath(os.path.expanduser(os.environ.get("AIRFLOW_HOME", "~/airflow")))


def _scheme(uri: str) -> str:
    return uri.partition("://")[0]


def _refused(setting: str, uri: str, error: Exception) -> ServiceConfigurationError:
    return ServiceConfigurationError(
        f"[adk_airflow] {setting} ({_scheme(uri)}://...): google-adk refuses it: {_words(uri, error)}"
    )


def _no_place(setting: str, uri: str, error: Exception) -> ServiceConfigurationError:
    """Why Airflow's object storage cannot be used at a URI."""
    from airflow.sdk.exceptions import AirflowNotFoundException

    scheme, words = _scheme(uri), _words(uri, error)
    if isinstance(error, AirflowNotFoundException):
        what = f"its connection is not there: {words}. Add it under Admin, Connections, or correct its id."
    elif isinstance(error, ValueError):
        who = (
            "neither google-adk nor Airflow's object storage knows"
            if setting == "memory_service_uri"
            else "Airflow's object storage does not know"
        )
        what = f"{who} {scheme}:// ({words}). Install the Airflow provider for it, or use a URI such as {EXAMPLES[setting]}."
    else:
        what = f"Airflow's object storage cannot use it: {type(error).__name__}: {words}"
    return ServiceConfigurationError(f"[adk_airflow] {setting} ({scheme}://...): {what}")


def _words(uri: str, error: Exception) -> str:
    """An error's own words, unless they hold what must not be logged."""
    words = str(error)
    secret = uri.partition("://")[2].rpartition("@")[0]
    if not words or (secret and any(part and part in words for part in secret.split(":"))):
        return type(error).__name__
    return words


def _connection(setting: str, conn_id: str) -> Connection:
    return connections.read(conn_id, f"[adk_airflow] {setting}", ServiceConfigurationError)


def _of_connection(setting: str, conn_id: str, group: str, function: str) -> Any:
    """What the provider for the connection's type makes of it: its entry point in ``group`` is ``function(connection)``."""
    connection = _connection(setting, conn_id)
    where = f"[adk_airflow] {setting}"
    return connections.maker(connection, group, f"has {function}() for", where, ServiceConfigurationError)(connection)


def _database_url(connection: Connection) -> str:
    from sqlalchemy import URL

    if not connection.host and not connection.schema:
        raise ServiceConfigurationError(
            f"[adk_airflow] session_conn_id: connection {connection.conn_id!r} names neither a host nor a database (schema)."
        )
    url = URL.create(
        _DATABASES[str(connection.conn_type)],
        username=connection.login or None,
        password=connection.password or None,
        host=connection.host or None,
        port=connection.port or None,
        database=connection.schema or None,
    )
    return url.render_as_string(hide_password=False)


def _async_url(uri: str) -> str:
    """The URI with the driver that google-adk needs, where the user named none."""
    scheme, _, rest = uri.partition("://")
    return {"postgresql": "postgresql+asyncpg", "mysql": "mysql+aiomysql"}.get(scheme, scheme) + "://" + rest
