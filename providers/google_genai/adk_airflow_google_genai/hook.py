"""Hooks of the two connection types: google-genai's client for tasks, and the answer of the Test button."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook

from adk_airflow_google_genai.errors import GoogleGenAIConnectionError, http_status

if TYPE_CHECKING:
    from google.genai import Client
    from google.genai.types import HttpOptionsOrDict

# Counting tokens costs nothing, and needs the same permission as generating.
PROBE_MODEL = "gemini-2.5-flash"
PROBE_TIMEOUT = 15_000  # ms


class GoogleGenAIHook(BaseHook):
    """google-genai's own client with the credentials of a connection (of either type).

    Args:
        conn_id: The connection; it is read at the first use, so constructing the hook costs nothing.
    """

    conn_name_attr = "conn_id"
    default_conn_name = "google_genai_default"
    conn_type = "google_genai"
    hook_name = "Gemini API"

    def __init__(self, conn_id: str = default_conn_name, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.conn_id = conn_id

    def get_client(self, http_options: HttpOptionsOrDict | None = None) -> Client:
        """A new client.

        Args:
            http_options: As ``google.genai.Client`` takes them; the connection's base URL goes before theirs.

        Raises:
            GoogleGenAIConnectionError: The connection lacks something.
            AirflowNotFoundException: There is no such connection.
        """
        from google.genai import Client, types

        from adk_airflow_google_genai.account import read_account

        account = read_account(self.get_connection(self.conn_id))
        options = types.HttpOptions.model_validate(http_options or {})
        if account.base_url:
            options = options.model_copy(update={"base_url": account.base_url})
        return Client(**account.client_kwargs(), http_options=options)

    def get_conn(self) -> Client:
        """The same as ``get_client()``."""
        return self.get_client()

    def test_connection(self) -> tuple[bool, str]:
        """Counts the tokens of one word: whether it went well, and a sentence for the user, without credentials."""
        from adk_airflow_google_genai.account import read_account

        try:
            account = read_account(self.get_connection(self.conn_id))
        except GoogleGenAIConnectionError as error:
            return False, _sentence(error)
        where = f"Vertex AI, project {account.project}, {account.location}" if account.vertex else "the Gemini API"
        try:
            # The client is kept until the answer is there: it closes its connections when it is collected.
            client = self.get_client({"timeout": PROBE_TIMEOUT})
            client.models.count_tokens(model=PROBE_MODEL, contents="Hello")
        except Exception as error:
            refusal = account.refusal(error)
            if refusal is not None:
                return False, _sentence(refusal)
            if http_status(error) == 404 and getattr(error, "status", None) == "NOT_FOUND":
                return True, f"{where} accepts the credentials; it does not offer {PROBE_MODEL} there."
            return False, f"No answer from {where}: {account.describe(error)}"
        return True, f"{where} accepts the credentials."


class GoogleGenAIVertexHook(GoogleGenAIHook):
    """The same for connections of type ``google_genai_vertex``; Airflow wants one hook class per type."""

    default_conn_name = "google_genai_vertex_default"
    conn_type = "google_genai_vertex"
    hook_name = "Vertex AI (Gemini)"

    def __init__(self, conn_id: str = default_conn_name, **kwargs: Any) -> None:
        super().__init__(conn_id, **kwargs)


def _sentence(error: GoogleGenAIConnectionError) -> str:
    """Without the connection's id: a connection that is tested has one of the moment."""
    return f"Connection: {error.reason}"
