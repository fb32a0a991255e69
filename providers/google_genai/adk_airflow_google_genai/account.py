"""What a connection says, read and checked: from here on nothing else looks into the connection."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from adk_airflow_google_genai.errors import GoogleGenAIConnectionError, is_refusal, mask, quote, redact

if TYPE_CHECKING:
    from airflow.sdk import Connection
    from google.auth.credentials import Credentials

GEMINI = "google_genai"
VERTEX = "google_genai_vertex"
SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
DEFAULT_LOCATION = "global"


@dataclass(frozen=True)
class Account:
    """A connection of one of the two types.

    Attributes:
        conn_id: The connection.
        project: Google Cloud project; None says that this is the Gemini API.
        location: Of Vertex AI, such as us-central1 or global; None for the Gemini API.
        base_url: Where requests go instead of Google's own address, or None.
        api_key: Of the Gemini API.
        credentials: Of the service account; None are the default credentials of the machine.
    """

    conn_id: str
    project: str | None
    location: str | None
    base_url: str | None
    api_key: str | None = field(default=None, repr=False)
    credentials: Credentials | None = field(default=None, repr=False)

    @property
    def vertex(self) -> bool:
        return self.project is not None

    def client_kwargs(self) -> dict[str, Any]:
        """Arguments of ``google.genai.Client``, all but ``http_options``."""
        if not self.vertex:
            # Said outright: else GOOGLE_GENAI_USE_ENTERPRISE in the environment would take the key to Vertex AI.
            return {"enterprise": False, "api_key": self.api_key}
        # With a project, google-genai leaves a GOOGLE_API_KEY of the environment alone.
        return {"enterprise": True, "project": self.project, "location": self.location, "credentials": self.credentials}

    def refusal(self, error: BaseException) -> GoogleGenAIConnectionError | None:
        """The error to raise in place of one of google-genai or google-auth.

        It must be raised after the ``except`` block, so that the original is not its context: that one holds the
        request, and the request the key.

        Returns:
            None where the connection is not at fault. What the given error says is without credentials then.
        """
        from google.auth.exceptions import DefaultCredentialsError, RefreshError, TransportError

        if isinstance(error, DefaultCredentialsError):
            return self._error(
                "it has no service account key, and this worker has no default credentials. Put the key's JSON into the"
                " connection's field Service account key, or give the worker credentials (GOOGLE_APPLICATION_CREDENTIALS)."
            )
        if isinstance(error, RefreshError) and not error.retryable:
            said = redact(str(error.args[0]) if error.args else type(error).__name__, self._secrets())
            reason = f"Google gives no access token for its credentials ({said}). {self._advice()}"
            unreachable = isinstance(error.__cause__, TransportError)  # the metadata server of the machine
            return GoogleGenAIConnectionError(self.conn_id, reason, permanent=not unreachable)
        if not is_refusal(error):
            mask(error, self._secrets())
            return None
        what = f"the credentials, in project {self.project!r}, {self.location}" if self.vertex else "the API key"
        said = quote(error, self._secrets())
        return self._error(f"Google refuses {what} ({said}). {self._advice()}", getattr(error, "code", None))

    def describe(self, error: BaseException) -> str:
        """An error in one line without credentials, for where errors are shown rather than raised."""
        return redact(f"{type(error).__name__}: {error}", self._secrets())

    def _secrets(self) -> list[str]:
        token = getattr(self.credentials, "token", None)
        return [secret for secret in (self.api_key, token) if secret]

    def _advice(self) -> str:
        if not self.vertex:
            return "Put a valid key into the connection's field API key; https://aistudio.google.com/apikey makes keys."
        whose = "The service account" if self.credentials is not None else "The account of the worker's default credentials"
        return (
            f"{whose} needs the role Vertex AI User (roles/aiplatform.user) in that project; see the connection's fields"
            " Service account key and Project id."
        )

    def _error(self, reason: str, code: int | None = None) -> GoogleGenAIConnectionError:
        return GoogleGenAIConnectionError(self.conn_id, reason, code)


def read_account(connection: Connection) -> Account:
    """Reads a connection of type google_genai or google_genai_vertex. Sends nothing.

    Raises:
        GoogleGenAIConnectionError: The type is another one, or a field is missing or malformed.
    """
    conn_id = connection.conn_id
    base_url = _base_url(connection.host, connection.port)
    if connection.conn_type == GEMINI:
        api_key = (connection.password or "").strip()
        if not api_key:
            raise GoogleGenAIConnectionError(conn_id, "it has no API key. Put one into its field API key (password).")
        return Account(conn_id, None, None, base_url, api_key=api_key)
    if connection.conn_type != VERTEX:
        raise GoogleGenAIConnectionError(
            conn_id, f"its type is {connection.conn_type!r}; needed is {GEMINI!r} or {VERTEX!r}. Change its type."
        )
    # Tokens are fetched with it in a thread. Were it first imported there, an answer that google-genai reads meanwhile would
    # fail on the half-imported module.
    import google.auth.transport.requests  # noqa: F401

    extra = read_extra(connection)
    credentials, key_project = _credentials(conn_id, connection.password or extra.get("keyfile_dict"))
    project = str(extra.get("project") or key_project or "").strip()
    if not project:
        raise GoogleGenAIConnectionError(
            conn_id, "it names no Google Cloud project. Fill in its field Project id (extra: project)."
        )
    location = str(extra.get("location") or DEFAULT_LOCATION).strip()
    return Account(conn_id, project, location, base_url, credentials=credentials)


def read_extra(connection: Connection) -> dict[str, Any]:
    """The connection's extra fields.

    Not by ``extra_dejson``: that talks to the task's supervisor, which must not be done on an event loop.

    Raises:
        GoogleGenAIConnectionError: They are no JSON object.
    """
    try:
        extra = json.loads(connection.extra or "{}")
    except ValueError:
        extra = None
    if not isinstance(extra, dict):
        raise GoogleGenAIConnectionError(connection.conn_id, "its extra field is not a JSON object. Correct it.")
    return extra


def _base_url(host: str | None, port: int | None) -> str | None:
    if not host:
        return None
    url = host.rstrip("/") if "://" in host else f"https://{host.rstrip('/')}"
    parts = urlsplit(url)
    # A port beside a whole address is there for the Test button alone; see get_provider_info.py.
    return parts._replace(netloc=f"{parts.netloc}:{port}").geturl() if port and parts.port is None else url


def _credentials(conn_id: str, key: str | Mapping[str, Any] | None) -> tuple[Credentials | None, str | None]:
    """Credentials of a service account key and its project; (None, None) without a key."""
    if not key:
        return None, None
    from google.oauth2 import service_account

    # Raised outside of the handlers: the errors in there may quote what they could not read.
    problem = None
    try:
        info = json.loads(key) if isinstance(key, str) else dict(key)
        credentials = service_account.Credentials.from_service_account_info(info, scopes=SCOPES)  # type: ignore[no-untyped-call]
    except (ValueError, TypeError, AttributeError) as error:
        problem = type(error).__name__
    if problem is not None:
        raise GoogleGenAIConnectionError(
            conn_id,
            f"its service account key cannot be read ({problem}). Paste the whole JSON file that Google Cloud gave for the"
            ' key: it has "type": "service_account", client_email, private_key and token_uri.',
        )
    return credentials, info.get("project_id")
