"""Vertex AI Search whose data store is named by a connection instead of the agent's code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.adk.tools.vertex_ai_search_tool import VertexAiSearchTool

from adk_airflow_google_genai.account import read_extra
from adk_airflow_google_genai.errors import GoogleGenAIConnectionError

if TYPE_CHECKING:
    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.tool_context import ToolContext

_UNKNOWN = "named by the connection"


class VertexAiSearchConnectionTool(VertexAiSearchTool):
    """ADK's ``VertexAiSearchTool``, whose data store or search engine comes from a connection when the model is called.

    The search runs inside the model call, with the credentials of the model; so the agent needs a connection of type
    ``google_genai_vertex`` for its model, too, mostly this one.

    Args:
        conn_id: Connection of type ``google_genai_vertex`` with ``data_store`` or ``search_engine`` in its extra.
        filter: As ``VertexAiSearchTool`` takes it.
        max_results: As ``VertexAiSearchTool`` takes it.
    """

    def __init__(self, *, conn_id: str, filter: str | None = None, max_results: int | None = None) -> None:
        super().__init__(data_store_id=_UNKNOWN, filter=filter, max_results=max_results)
        self.data_store_id = None
        self.conn_id = conn_id

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        """Adds the search to the request.

        Raises:
            GoogleGenAIConnectionError: There is no such connection, or it names neither a data store nor a search engine,
                or both.
        """
        from airflow.sdk import BaseHook
        from airflow.sdk.exceptions import AirflowNotFoundException

        try:
            connection = await BaseHook.aget_connection(self.conn_id)
        except AirflowNotFoundException:
            raise GoogleGenAIConnectionError(
                self.conn_id, "Airflow has no such connection. Add one of type google_genai_vertex, or correct the id."
            ) from None
        extra = read_extra(connection)
        self.data_store_id, self.search_engine_id = _names(self.conn_id, extra)
        await super().process_llm_request(tool_context=tool_context, llm_request=llm_request)


def _names(conn_id: str, extra: dict[str, Any]) -> tuple[str | None, str | None]:
    data_store, search_engine = (str(extra.get(name) or "").strip() or None for name in ("data_store", "search_engine"))
    if (data_store is None) == (search_engine is None):
        raise GoogleGenAIConnectionError(
            conn_id,
            "it must name a data store or a search engine of Vertex AI Search, and not both. Fill in one of its fields"
            " Data store and Search engine (extra: data_store, search_engine).",
        )
    for name in (data_store, search_engine):
        if name is not None and not name.startswith("projects/"):
            raise GoogleGenAIConnectionError(
                conn_id, f"{name!r} is no full name of a data store or search engine: those begin with projects/..."
            )
    return data_store, search_engine
