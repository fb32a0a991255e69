"""Embedding models: how one is named, told apart from another, and how passages get their vectors."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from adk_airflow_llama_index.errors import EmbeddingModelError

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding

GEMINI = "gemini"
"""The name under which any process can make the Gemini embedding model again."""

GEMINI_MODEL = "gemini-embedding-2-preview"
"""The model that ADK's ``FilesRetrieval`` uses when it is given none."""

MAX_QUERY_CHARACTERS = 16_000
"""A longer query is cut before it is embedded: models refuse or ignore more than some thousand tokens."""

_USE_VERTEX_AI = "GOOGLE_GENAI_USE_VERTEXAI"

_SHAPING_FIELDS = (
    "dimensions",
    "embed_dim",
    "output_dimensionality",
    "query_instruction",
    "task_type",
    "text_instruction",
)
"""The settings of LlamaIndex's models after which the same text has another vector. Keys and headers are
not among them, and the whole model is never written down for their sake."""

Vectors = NDArray[np.float32]
"""One row per passage, of length 1 (or 0 for a passage that the model gave no direction)."""


def resolve_model(embed_model: BaseEmbedding | str | None) -> BaseEmbedding | None:
    """The model object for what a user passed as ``embed_model``.

    Raises:
        EmbeddingModelError: An unknown name, or the Gemini model without its package or its key.
    """
    if embed_model is None:
        return None
    if isinstance(embed_model, str):
        if embed_model != GEMINI:
            raise EmbeddingModelError(
                f"Unknown embedding model {embed_model!r}: pass {GEMINI!r}, a LlamaIndex BaseEmbedding, or None for BM25 alone."
            )
        return _gemini()
    from llama_index.core.base.embeddings.base import BaseEmbedding as LlamaIndexEmbedding

    if not isinstance(embed_model, LlamaIndexEmbedding):
        raise EmbeddingModelError(
            f"embed_model must be a LlamaIndex BaseEmbedding, {GEMINI!r} or None, not {type(embed_model).__name__}."
        )
    return embed_model


def _gemini() -> BaseEmbedding:
    try:
        package = importlib.import_module("llama_index.embeddings.google_genai")
    except ImportError as error:
        raise EmbeddingModelError(
            "The Gemini embedding model needs the package llama-index-embeddings-google-genai: "
            "install adk-airflow-llama-index[gemini]."
        ) from error
    try:
        with _vertex_ai_off_means_off():
            # One text per request, as ADK does: this model may answer several with one vector for all.
            model = package.GoogleGenAIEmbedding(model_name=GEMINI_MODEL, embed_batch_size=1)
    except Exception as error:
        # Not chained: what the client says about its credentials does not belong in a task's log.
        raise EmbeddingModelError(
            f"The Gemini embedding model could not be made ({type(error).__name__}): set GOOGLE_API_KEY or "
            "GEMINI_API_KEY, or pass your own GoogleGenAIEmbedding as embed_model."
        ) from None
    return cast("BaseEmbedding", model)


@contextmanager
def _vertex_ai_off_means_off() -> Iterator[None]:
    """Hides GOOGLE_GENAI_USE_VERTEXAI while it says no, as the ``.env`` that ``adk create`` writes does.

    LlamaIndex takes any value of it for yes, also "0" and "FALSE". To everyone else a variable that says no and
    none at all are the same, so another thread cannot tell the difference.
    """
    value = os.environ.get(_USE_VERTEX_AI, "")
    if value.lower() not in ("0", "false"):
        yield
        return
    os.environ.pop(_USE_VERTEX_AI, None)
    try:
        yield
    finally:
        os.environ[_USE_VERTEX_AI] = value


def model_identity(model: BaseEmbedding) -> dict[str, str]:
    """What two model objects have in common when they give the same vectors; no credentials."""
    identity = {"class": type(model).__qualname__, "model_name": model.model_name}
    for source in (model, getattr(model, "embedding_config", None)):
        for field in _SHAPING_FIELDS:
            value = source.get(field) if isinstance(source, Mapping) else getattr(source, field, None)
            if value is not None:
                identity[field] = str(value)
    return identity


class EmbeddingJournal:
    """The vectors that a build has already got, so that a build after a crash does not pay for them again.

    A file beside the versions, one line per text, appended as the answers arrive. A line that a crash cut
    short is ignored. The refresh lock guards it; it is discarded when the version that it was for is
    published.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._vectors: dict[str, list[float]] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                try:
                    key, vector = json.loads(line)
                    self._vectors[key] = [float(number) for number in vector]
                except (ValueError, TypeError):
                    continue

    def __contains__(self, text: str) -> bool:
        return self._key(text) in self._vectors

    def __getitem__(self, text: str) -> list[float]:
        return self._vectors[self._key(text)]

    def add(self, texts: Sequence[str], vectors: Sequence[Sequence[float]]) -> None:
        """Writes the vectors of ``texts`` down before anything else is asked of the model."""
        with self._path.open("a", encoding="utf-8") as file:
            for text, vector in zip(texts, vectors, strict=True):
                self._vectors[self._key(text)] = list(vector)
                # The line break comes first, so that a line cut short does not spoil the next one.
                file.write("\n" + json.dumps([self._key(text), list(vector)]))

    def discard(self) -> None:
        self._path.unlink(missing_ok=True)

    @staticmethod
    def _key(text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()


def embed_passages(
    model: BaseEmbedding, texts: Sequence[str], journal: EmbeddingJournal, progress: Callable[[str], None]
) -> Vectors:
    """The unit vectors of ``texts`` (not empty); the model is asked for those the journal does not hold.

    Raises:
        EmbeddingModelError: The model's vectors are not of one length.
    """
    pending = [text for text in dict.fromkeys(texts) if text not in journal]
    for start in range(0, len(pending), model.embed_batch_size):
        batch = pending[start : start + model.embed_batch_size]
        journal.add(batch, model.get_text_embedding_batch(batch))
        progress(f"embedded {start + len(batch)} of {len(pending)} passages")
    vectors = [journal[text] for text in texts]
    if len({len(vector) for vector in vectors}) > 1:
        raise EmbeddingModelError(f"The embedding model {model.model_name!r} gave vectors of different lengths.")
    return unit_rows(np.asarray(vectors, dtype=np.float32))


def embed_query(model: BaseEmbedding, query: str) -> Vectors:
    """The unit vector of ``query``, as a matrix of one row."""
    vector = model.get_query_embedding(query[:MAX_QUERY_CHARACTERS])
    return unit_rows(np.asarray([vector], dtype=np.float32))


def unit_rows(vectors: NDArray[Any]) -> Vectors:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    return cast("Vectors", rows)
