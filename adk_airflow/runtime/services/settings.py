"""Which ADK services a task uses: as the ``[adk_airflow]`` settings say, by URI or by Airflow connection.

All of them are made before the task's event loop runs: reading a connection on the loop can hang. No error names a URI whole,
since it may hold a password.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from adk_airflow.errors import ServiceConfigurationError
from adk_airflow.runtime.services import connections

if TYPE_CHECKING:
    from airflow.sdk import Connection
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
    """
    from adk_airflow.runtime.services.artifacts import ObjectStorageArtifactService

    uri = _setting("artifacts_uri") or f"file://{_airflow_home()}/adk_artifacts"
    return ObjectStorageArtifactService(uri, _setting("artifacts_conn_id") or None)


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

    uri, conn_id = _setting("memory_service_uri"), _setting("memory_conn_id")
    if not uri and conn_id:
        service: BaseMemoryService = _of_connection("memory_conn_id", conn_id, MEMORY_GROUP, "make_memory_service")
        return service
    if not uri:
        return ObjectStorageMemoryService(f"file://{_airflow_home()}/adk_memory", writer=writer)
    scheme = _scheme("memory_service_uri", uri)
    from google.adk.cli.service_registry import get_service_registry

    try:
        found = get_service_registry().create_memory_service(uri, agents_dir=_airflow_home())
    except Exception as error:
        raise _refused("memory_service_uri", uri, error) from None
    if found is None:
        return _in_object_storage(uri, scheme, conn_id, writer)
    if conn_id:
        raise ServiceConfigurationError(
            f"[adk_airflow] memory_service_uri ({scheme}://...) is a service of google-adk, which takes no connection, and"
            f" memory_conn_id names {conn_id!r}. Give one of the two."
        )
    return found


def _in_object_storage(uri: str, scheme: str, conn_id: str, writer: str) -> BaseMemoryService:
    from adk_airflow.runtime.services.memory import ObjectStorageMemoryService

    try:
        return ObjectStorageMemoryService(uri, conn_id or None, writer=writer)
    except ValueError:
        raise ServiceConfigurationError(
            f"[adk_airflow] memory_service_uri: neither google-adk nor Airflow's object storage knows {scheme}://."
            " Use agentengine://, rag:// or sqlite:// of google-adk, or a place for files, such as file:///data/memory or"
            " s3://bucket/memory (with the Airflow provider for it installed)."
        ) from None


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
            service: BaseSessionService = _of_connection("session_conn_id", conn_id, SESSION_GROUP, "make_session_service")
            return service
        uri = _database_url(connection)
    if not uri:
        raise ServiceConfigurationError(
            f"{where}: session {session_id!r} is to be kept, but no session service is configured. Set [adk_airflow]"
            " session_service_uri, such as sqlite:////data/adk/sessions.db, or session_conn_id; or give no session_id."
        )
    if _scheme("session_service_uri", uri) == "memory":
        raise ServiceConfigurationError(
            f"{where}: session {session_id!r} is to be kept, but [adk_airflow] session_service_uri is memory://, which ends"
            " with the task. Use sqlite:////data/adk/sessions.db, a database, or agentengine://."
        )
    from airflow.sdk.log import mask_secret
    from google.adk.cli.utils.service_factory import create_session_service_from_options

    if password := urlsplit(uri).password:
        mask_secret(unquote(password))

    try:
        return create_session_service_from_options(
            base_dir=_airflow_home(), session_service_uri=_async_url(uri), use_local_storage=False
        )
    except Exception as error:
        raise _refused("session_conn_id" if conn_id else "session_service_uri", uri, error) from None


def remember_runs() -> bool:
    """``[adk_airflow] remember_runs``: every task that ends well adds what was said in it to the memory."""
    from airflow.sdk.configuration import conf

    return bool(conf.getboolean("adk_airflow", "remember_runs", fallback=False))


def _setting(name: str) -> str:
    from airflow.sdk.configuration import conf

    return conf.get("adk_airflow", name, fallback="") or ""


def _airflow_home() -> str:
    return os.path.abspath(os.path.expanduser(os.environ.get("AIRFLOW_HOME", "~/airflow")))


def _scheme(setting: str, uri: str) -> str:
    scheme, separator, _ = uri.partition("://")
    if not separator:
        raise ServiceConfigurationError(f"[adk_airflow] {setting} is not a URI such as {_EXAMPLES[setting]}.")
    return scheme


_EXAMPLES = {
    "memory_service_uri": "agentengine://1234567890 or s3://bucket/memory",
    "session_service_uri": "sqlite:////data/adk/sessions.db or postgresql+asyncpg://user@host/database",
}


def _refused(setting: str, uri: str, error: Exception) -> ServiceConfigurationError:
    """google-adk's own words, unless they hold what must not be logged."""
    words = str(error)
    secret = uri.partition("://")[2].rpartition("@")[0]
    if not words or (secret and any(part and part in words for part in secret.split(":"))):
        words = type(error).__name__
    return ServiceConfigurationError(
        f"[adk_airflow] {setting} ({uri.partition('://')[0]}://...): google-adk refuses it: {words}"
    )


def _connection(setting: str, conn_id: str) -> Connection:
    return connections.read(conn_id, f"[adk_airflow] {setting}", ServiceConfigurationError)


def _of_connection(setting: str, conn_id: str, group: str, function: str) -> Any:
    """What the provider for the connection's type makes of it: its entry point in ``group`` is ``function(connection)``."""
    connection = _connection(setting, conn_id)
    where = f"[adk_airflow] {setting}"
    return connections.maker(connection, group, f"has {function}() for", where, ServiceConfigurationError)(connection)


def _database_url(connection: Connection) -> str:
    from sqlalchemy import URL

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
