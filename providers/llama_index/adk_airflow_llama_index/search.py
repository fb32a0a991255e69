"""Questions to a persisted index: BM25, embeddings, or both fused."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from adk_airflow_llama_index.embedding import Vectors, embed_query, model_identity, resolve_model
from adk_airflow_llama_index.errors import EmbeddingModelError
from adk_airflow_llama_index.versions import BM25_DIR, TERMS, VECTORS, Manifest, read_version, unusable_version

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding

SearchMode = Literal["bm25", "dense", "fused"]


def check_search(top_k: int, mode: SearchMode | None) -> None:
    """Refuses what no search can mean.

    Raises:
        ValueError: ``top_k`` is below 1, or the mode is unknown.
    """
    if top_k < 1:
        raise ValueError(f"top_k is {top_k}; ask for at least one document.")
    if mode not in (None, *get_args(SearchMode)):
        raise ValueError(f"Unknown search mode {mode!r}; use 'bm25', 'dense', 'fused' or None.")


CACHED_INDEXES = 4
"""How many versions a process keeps in memory."""

FUSION_DEPTH = 100
"""How many documents of each ranking are fused."""

FUSION_CONSTANT = 60
"""The k of reciprocal rank fusion: a document at rank r of a ranking gets 1 / (k + r) from it."""


@dataclass(frozen=True)
class Passage:
    """The best passage of a document for a query.

    Attributes:
        document: Path of the document below the source directory.
        text: The passage as it stands in the document.
        score: Higher is better, and above 0: BM25 score, cosine similarity, or reciprocal rank sum, after the mode.
    """

    document: str
    text: str
    score: float


@dataclass(frozen=True)
class _LoadedVersion:
    """A version in memory.

    Attributes:
        location: Its directory.
        manifest: What it says about itself.
        bm25: The ``bm25s.BM25``; its corpus holds LlamaIndex's nodes as dicts, by document and position.
        vectors: One row per passage of the corpus; None without embeddings.
    """

    location: Path
    manifest: Manifest
    bm25: Any
    vectors: Vectors | None


_load_lock = threading.Lock()


@lru_cache(maxsize=CACHED_INDEXES)
def _load(location: Path) -> PersistedIndex:
    manifest = read_version(location)
    from bm25s import BM25

    from adk_airflow_llama_index.terms import VERSION

    if manifest.libraries.get(TERMS) != VERSION:
        raise unusable_version(location, "was built by a release that took other terms from texts")
    try:
        bm25 = BM25.load(str(location / BM25_DIR), load_corpus=True)
        vectors = np.load(location / VECTORS) if VECTORS in manifest.files else None
    except FileNotFoundError as error:
        raise unusable_version(location, "was removed while it was read") from error
    return PersistedIndex(_LoadedVersion(location, manifest, bm25, vectors))


def open_index(location: str | Path, *, embed_model: BaseEmbedding | str | None = None) -> PersistedIndex:
    """The index version at ``location``, as ``RefreshReport.location`` names it.

    It is read into memory when a process asks for it first and kept there (the last ``CACHED_INDEXES`` of
    them). Never builds anything and never reads the documents.

    Args:
        location: The directory of the version.
        embed_model: The model that the version was built with. Needed for dense and fused search unless the
            version was built with a model's name ("gemini"); not used by a version without embeddings.

    Raises:
        IndexNotFoundError: There is no version at ``location``, or it is damaged.
        EmbeddingModelError: ``embed_model`` is not the model that the version was built with.
    """
    # The lock makes threads that ask for the same version at once wait for one load.
    with _load_lock:
        index = _load(Path(location).absolute())
    return index.with_model(embed_model)


class PersistedIndex:
    """An immutable version of an index; made by ``open_index``. Threads may share it."""

    def __init__(self, loaded: _LoadedVersion, model: BaseEmbedding | None = None) -> None:
        self._loaded = loaded
        self._model = model
        self._model_lock = threading.Lock()

    def with_model(self, embed_model: BaseEmbedding | str | None) -> PersistedIndex:
        settings = self._loaded.manifest.settings
        built_with = settings.get("embed_model")
        if built_with is None or embed_model in (None, settings.get("embed_model_name")):
            return self
        model = resolve_model(embed_model)
        given = model_identity(model) if model else None
        if given != built_with:
            raise EmbeddingModelError(
                f"The index {self.location!r} was built with the embedding model {built_with}, "
                f"not with {given}: pass that model, or run refresh_index with the other one."
            )
        return PersistedIndex(self._loaded, model)

    @property
    def location(self) -> str:
        """The directory of the version."""
        return str(self._loaded.location)

    @property
    def documents(self) -> list[str]:
        """The names of the documents, sorted."""
        return sorted(self._loaded.manifest.documents)

    @property
    def has_embeddings(self) -> bool:
        """Whether it was built with an embedding model, for dense and fused search."""
        return self._loaded.vectors is not None

    def search(self, query: str, *, top_k: int = 5, mode: SearchMode | None = None) -> list[Passage]:
        """The best passage of each of the ``top_k`` best documents, best first; equal scores by document name.

        A query that is blank, or of which (with BM25) no word but stop words occurs anywhere, finds nothing.

        Args:
            query: Any text, of any length.
            top_k: Documents at most.
            mode: "bm25", "dense" (cosine similarity of embeddings) or "fused" (reciprocal rank fusion of
                both); None takes "fused" when the index has embeddings, else "bm25".

        Raises:
            EmbeddingModelError: Dense or fused on an index without embeddings, or without its embedding
                model.
            ValueError: ``top_k`` is below 1 or the mode is unknown.
        """
        check_search(top_k, mode)
        mode = mode or ("fused" if self.has_embeddings else "bm25")
        if mode != "bm25" and not self.has_embeddings:
            raise EmbeddingModelError(
                f"Search mode {mode!r} needs embeddings, which the index {self.location!r} does not have: "
                "run refresh_index with embed_model, or search with mode 'bm25'."
            )
        if not query.strip():
            return []
        if mode == "bm25":
            return self._bm25(query, top_k)
        if mode == "dense":
            return self._dense(query, top_k)
        depth = max(FUSION_DEPTH, top_k)
        return _fuse([self._bm25(query, depth), self._dense(query, depth)])[:top_k]

    def why_nothing(self, query: str, *, mode: SearchMode | None = None) -> str:
        """Why ``search`` finds nothing for this query in this mode: a sentence for people and models."""
        from adk_airflow_llama_index.terms import query_terms

        if not query.strip():
            return "The query is blank: ask with words of the text that you are looking for."
        if mode == "dense":
            return "No passage resembles the query."
        searched = "No passage resembles the query, and it" if mode != "bm25" and self.has_embeddings else "The query"
        if not query_terms(query):
            return (
                f"{searched} has no word to search for: stop words, single letters or digits and punctuation are not indexed."
                " Ask with other words."
            )
        return f"{searched} has no word that occurs in the {len(self.documents)} documents. Ask with other words."

    def _bm25(self, query: str, top_k: int) -> list[Passage]:
        known = self._known_terms(query)
        return self._ranked(self._loaded.bm25.get_scores(known), top_k) if known else []

    def _known_terms(self, query: str) -> list[str]:
        from adk_airflow_llama_index.terms import query_terms

        vocabulary = self._loaded.bm25.vocab_dict
        return [term for term in query_terms(query) if term in vocabulary]

    def _dense(self, query: str, top_k: int) -> list[Passage]:
        vectors = self._loaded.vectors
        assert vectors is not None
        query_vector = embed_query(self._embed_model(), query)
        if query_vector.shape[1] != vectors.shape[1]:
            raise EmbeddingModelError(
                f"The embedding model gave {query_vector.shape[1]} numbers for the query, the index "
                f"{self.location!r} holds vectors of {vectors.shape[1]}: use the model it was built with."
            )
        return self._ranked(vectors @ query_vector[0], top_k)

    def _ranked(self, scores: NDArray[Any], top_k: int) -> list[Passage]:
        """The best passages of the best documents by the score of each passage; one of 0 or below is no match."""
        from llama_index.core.vector_stores.utils import metadata_dict_to_node

        rounded = np.round(scores.astype(np.float64), 6)
        matches = np.flatnonzero(rounded > 0)
        best: dict[str, Passage] = {}
        # Passages lie in the order of document and position, so a stable sort leaves equal scores in that order.
        for row in matches[np.argsort(-rounded[matches], kind="stable")]:
            entry = self._loaded.bm25.corpus[row]
            document = entry["ref_doc_id"]
            if document not in best:
                text = metadata_dict_to_node(entry).get_content()
                best[document] = Passage(document, text, float(rounded[row]))
                if len(best) == top_k:
                    break
        return list(best.values())

    def _embed_model(self) -> BaseEmbedding:
        with self._model_lock:
            if self._model is None:
                name = self._loaded.manifest.settings.get("embed_model_name")
                if name is None:
                    raise EmbeddingModelError(
                        f"The index {self.location!r} was built with the embedding model "
                        f"{self._loaded.manifest.settings['embed_model']}: pass it as embed_model to "
                        "open_index or IndexRetrieval, or search with mode 'bm25'."
                    )
                self._model = resolve_model(name)
            assert self._model is not None
            return self._model


def _fuse(rankings: list[list[Passage]]) -> list[Passage]:
    """Reciprocal rank fusion of documents; each shows the passage of the ranking that ranks it best.

    LlamaIndex's QueryFusionRetriever fuses passages: a document whose best passage differs between the
    rankings would count as two weak ones.
    """
    scores: dict[str, float] = {}
    shown: dict[str, tuple[int, Passage]] = {}
    for ranking in rankings:
        for rank, passage in enumerate(ranking, start=1):
            scores[passage.document] = scores.get(passage.document, 0.0) + 1 / (FUSION_CONSTANT + rank)
            if passage.document not in shown or rank < shown[passage.document][0]:
                shown[passage.document] = (rank, passage)
    return [
        Passage(document, shown[document][1].text, score)
        for document, score in sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    ]
