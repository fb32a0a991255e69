"""The ADK tool through which a workflow asks a persisted index."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING, Any

from google.adk.tools.retrieval.base_retrieval_tool import BaseRetrievalTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from adk_airflow_llama_index.errors import IndexNotFoundError
from adk_airflow_llama_index.search import SearchMode, check_search, open_index

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding


class IndexRetrieval(BaseRetrievalTool):
    """Searches a persisted index: a tool of an ``LlmAgent``, or a fixed node of a graph.

    The constructor reads nothing, so the tool may stand at the top of a workflow module. The index is
    loaded when the tool is called first in a process. As a node, ``node(IndexRetrieval())``, its input is the
    query or ``{"query": ...}``; with ``parallel_worker=True``, a list of them.

    Its result is ``{"query": str, "passages": [{"document": str, "text": str, "score": float}, ...]}``, best
    passage first. When nothing was found the list is empty, and ``"message"`` says why, in words that a model can act on.

    Args:
        name: The tool's name, and the node's.
        description: What the model is told about it.
        location: ``RefreshReport.location`` of the version to search. None: it is in the state under
            ``state_key``.
        state_key: Where an earlier node put the location.
        top_k: Documents at most.
        mode: As in ``PersistedIndex.search``.
        embed_model: As in ``open_index``.

    Raises:
        ValueError: ``top_k`` is below 1, or the mode is unknown.
    """

    def __init__(
        self,
        *,
        name: str = "search_documents",
        description: str = "Searches the documents and returns the passages that answer a query best.",
        location: str | None = None,
        state_key: str = "index_location",
        top_k: int = 5,
        mode: SearchMode | None = None,
        embed_model: BaseEmbedding | str | None = None,
    ) -> None:
        super().__init__(name=name, description=description)
        check_search(top_k, mode)
        self.location = location
        self.state_key = state_key
        self.top_k = top_k
        self.mode = mode
        self.embed_model = embed_model

    def _get_declaration(self) -> types.FunctionDeclaration:
        declaration = super()._get_declaration()
        if isinstance(declaration.parameters_json_schema, dict):
            declaration.parameters_json_schema["required"] = ["query"]
        elif declaration.parameters is not None:
            declaration.parameters.required = ["query"]
        return declaration

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any]:
        """Searches for ``args["query"]``; other arguments are ignored.

        Raises:
            IndexNotFoundError: The state names no index, or there is none at the location.
        """
        query = args.get("query")
        if not isinstance(query, str):
            # The words of ADK's FunctionTool, which models know to answer with a better call.
            return {
                "error": f"Invoking `{self.name}()` failed as the following mandatory input parameters "
                "are not present:\nquery (a string)\nYou could retry calling this tool, but it is "
                "IMPORTANT for you to provide all the mandatory parameters."
            }
        location = self.location or tool_context.state.get(self.state_key)
        if not isinstance(location, str) or not location:
            raise IndexNotFoundError(
                f"The tool {self.name!r} was given no location, and the state has none under "
                f"{self.state_key!r}: run refresh_index in an earlier node and put its location there."
            )
        return await asyncio.to_thread(self._search, location, query)

    def _search(self, location: str, query: str) -> dict[str, Any]:
        index = open_index(location, embed_model=self.embed_model)
        passages = index.search(query, top_k=self.top_k, mode=self.mode)
        found = {"query": query, "passages": [dataclasses.asdict(passage) for passage in passages]}
        return found if passages else {**found, "message": index.why_nothing(query, mode=self.mode)}
