"""What the URI of a service must be: a place that is the same for every task, whatever folder its process works in."""

from __future__ import annotations

from pathlib import Path

from adk_airflow.errors import ServiceConfigurationError

EXAMPLES = {
    "artifacts_uri": "file:///data/artifacts or s3://bucket/artifacts",
    "transcripts_uri": "file:///data/adk_records or s3://bucket/adk_records",
    "memory_service_uri": "agentengine://1234567890, file:///data/memory or s3://bucket/memory",
    "session_service_uri": "sqlite:////data/adk/sessions.db or postgresql+asyncpg://user@host/database",
}

_FILES = {"file", "local"}
_BUCKETS = {"s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss", "az", "adl", "wasb", "wasbs", "oss"}
_DATABASES = {"postgresql", "postgres", "mysql", "mariadb"}


def checked_uri(setting: str, uri: str) -> str:
    """The URI of a setting, where it names one place for all tasks. An absolute path is the URI of its files.

    Raises:
        ServiceConfigurationError: It does not. The URI is not quoted, since it may hold a password.
    """
    uri = uri.strip()
    if uri.startswith("/") and setting != "session_service_uri":
        uri = f"file://{uri}"
    scheme, separator, rest = uri.partition("://")
    if not separator or not scheme:
        raise ServiceConfigurationError(f"[adk_airflow] {setting} is not a URI such as {EXAMPLES[setting]}.")
    if wrong := _what_is_wrong(scheme.lower(), rest):
        raise ServiceConfigurationError(
            f"[adk_airflow] {setting} ({scheme}://...) {wrong}. Use a URI such as {EXAMPLES[setting]}."
        )
    return uri


def _what_is_wrong(scheme: str, rest: str) -> str:
    authority, _, path = rest.partition("?")[0].partition("/")
    host = authority.rpartition("@")[2]
    kind = scheme.partition("+")[0]
    if kind in _FILES:
        if host or not rest:
            return "is a relative path: a file URI has three slashes and an absolute path"
        return _not_a_folder(Path("/" + path))
    if kind == "sqlite" and not (path.startswith("/") and path.strip("/")):
        return "names no absolute path: a SQLite URI has four slashes and the path of a file"
    if kind in _BUCKETS and not host:
        return "names no bucket"
    if kind in _DATABASES and not host and not path:
        return "names neither a host nor a database"
    return ""


def _not_a_folder(place: Path) -> str:
    there = next((path for path in (place, *place.parents) if path.exists()), place)
    return "" if there.is_dir() else "lies below a file, not a folder"
