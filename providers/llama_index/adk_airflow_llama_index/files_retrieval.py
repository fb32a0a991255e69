"""ADK's ``FilesRetrieval`` over a persisted index."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.adk.tools.retrieval.base_retrieval_tool import BaseRetrievalTool
from google.adk.tools.tool_context import ToolContext

from adk_airflow_llama_index.refresh import refresh_index
from adk_airflow_llama_index.search import open_index

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding

logger = logging.getLogger(__name__)


class FilesRetrieval(BaseRetrievalTool):
    """A drop-in for ``google.adk.tools.retrieval.files_retrieval.FilesRetrieval`` whose constructor does nothing.

    ADK's own reads and embeds its whole directory when it is made: at the top of a workflow module that is every parse of
    every process. This one does so when it is first called, into an index on disk that every other task and run finds. Only
    files that changed are embedded again, and tasks that start together take turns, so each file is embedded once.

    The result is ADK's: the text of the passage that is most similar to ``query``, or a sentence that says there is none. What
    differs: only UTF-8 text files are read, those of folders below included (others are logged as skipped); the file's path
    is not part of what is embedded; of two passages of one similarity the one of the first file by name is returned.

    Args:
        name: The tool's name.
        description: What the model is told about it.
        input_dir: The directory of the files.
        embedding_model: A LlamaIndex model. None: Gemini's, as in ADK.
        index_dir: Where the index is kept; the same for all tasks, on several machines a shared disk. None: beside the
            directory, with ``.index`` added to its name.
    """

    def __init__(
        self,
        *,
        name: str,
        description: str,
        input_dir: str,
        embedding_model: BaseEmbedding | None = None,
        index_dir: str | None = None,
    ) -> None:
        super().__init__(name=name, description=description)
        self.input_dir = input_dir
        self.embedding_model = embedding_model
        self.index_dir = index_dir
        self._location: str | None = None

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> str:
        """The text of the best passage for ``args["query"]``.

        Raises:
            IndexSourceError: The directory is missing, or holds no text.
            EmbeddingModelError: The package or key of the embedding model is missing.
        """
        return await asyncio.to_thread(self._search, args["query"])

    def _search(self, query: str) -> str:
        model = self.embedding_model or "gemini"
        if self._location is None:
            folder = Path(self.input_dir).absolute()
            index_dir = self.index_dir or folder.with_name(f"{folder.name}.index")
            # ADK's FilesRetrieval splits as LlamaIndex does by default.
            report = refresh_index(folder, index_dir, embed_model=model, chunk_size=1024, chunk_overlap=200)
            for skipped in report.skipped:
                logger.warning("%s: %s is not searched: %s", self.name, skipped["document"], skipped["reason"])
            self._location = report.location
        found = open_index(self._location, embed_model=model).search(query, top_k=1, mode="dense")
        return found[0].text if found else f"No matching result found for the query: {query}"
