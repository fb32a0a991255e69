"""Turns a directory of documents into a persisted index version, doing the work that its changes ask for."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import FileLock

from adk_airflow_llama_index.embedding import (
    EmbeddingJournal,
    Vectors,
    embed_passages,
    model_identity,
    resolve_model,
)
from adk_airflow_llama_index.errors import EmbeddingModelError, IndexSourceError
from adk_airflow_llama_index.sources import SourceDocument, read_sources
from adk_airflow_llama_index.versions import BM25_DIR, FORMAT, VECTORS, IndexDirectory

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.node_parser import SentenceSplitter
    from llama_index.core.schema import BaseNode

CHUNK_SIZE = 1024
"""Tokens of a passage at most: LlamaIndex's default."""

CHUNK_OVERLAP = 200
"""Tokens that a passage shares with the one before it: LlamaIndex's default."""

_SENTENCE_END = re.compile(r"(?<=[.!?。！？]\s)|(?<=\n\n)")


def _sentences(text: str) -> list[str]:
    # An empty part, as behind the last full stop, sends LlamaIndex's splitter into endless recursion.
    return [part for part in _SENTENCE_END.split(text) if part]


@dataclass(frozen=True)
class RefreshReport:
    """What a refresh found and did.

    Attributes:
        location: Absolute path of the immutable version, for ``open_index`` and ``IndexRetrieval``.
        documents: How many there are: ``added + changed + reused``.
        passages: How many there are.
        added: Documents that the latest version with the same settings did not have (all, when there was none).
        changed: Documents of another content than in that version.
        removed: Documents of that version that are gone.
        reused: Documents whose passages (and embeddings) were taken over as they are.
        skipped: ``{"document": name, "reason": words}`` for every file that is not a document of the index.
        built: False when the version existed already.
        seconds: How long it took.
    """

    location: str
    documents: int
    passages: int
    added: int
    changed: int
    removed: int
    reused: int
    skipped: list[dict[str, str]]
    built: bool
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The report as plain JSON values."""
        return dataclasses.asdict(self)


def refresh_index(
    source_dir: str | Path,
    index_dir: str | Path,
    *,
    embed_model: BaseEmbedding | str | None = None,
    chunk_size: int = CHUNK_SIZE,
    chunk_overlap: int = CHUNK_OVERLAP,
    progress: Callable[[str], None] | None = None,
) -> RefreshReport:
    """Makes sure that ``index_dir`` holds a version of the index for what ``source_dir`` holds now.

    Every UTF-8 text file below ``source_dir`` is a document, named by its path below it; hidden files are
    ignored, anything else is skipped and reported. Unchanged documents (by content hash) keep their
    passages and embeddings; the BM25 statistics, which depend on all documents, are computed anew. The
    version is built aside and appears in one step; an index that was there stays as it is, whatever fails.
    Processes and threads may call this at once for the same ``index_dir``: they take turns.

    Args:
        source_dir: The directory of the documents.
        index_dir: The directory of the versions; made when missing, and not inside ``source_dir``.
        embed_model: None for BM25 alone (no key, no network), a LlamaIndex ``BaseEmbedding``, or "gemini".
        chunk_size: Tokens of a passage at most.
        chunk_overlap: Tokens that a passage shares with the one before it; less than ``chunk_size``.
        progress: Is told in words what is going on.

    Raises:
        IndexSourceError: ``source_dir`` is missing, no directory, or without a document that can be searched.
        EmbeddingModelError: The embedding model is unknown, or its package or key is missing.
        ValueError: The chunk size or overlap makes no sense.
    """
    started = time.monotonic()
    tell = progress or _silent
    if chunk_size < 1 or not 0 <= chunk_overlap < chunk_size:
        raise ValueError(
            f"chunk_size={chunk_size}, chunk_overlap={chunk_overlap}: a passage needs at least one token and "
            "an overlap of 0 or more that is smaller than the passage."
        )
    source, root = Path(source_dir).absolute(), Path(index_dir).absolute()
    if root.resolve().is_relative_to(source.resolve()):
        raise IndexSourceError(
            f"index_dir {str(root)!r} lies inside the document directory {str(source)!r}: the index would "
            "index itself. Give a directory beside it."
        )
    sources = read_sources(source)
    tell(f"read {len(sources.documents)} documents below {source}, skipped {len(sources.skipped)} files")
    model = resolve_model(embed_model)
    hashes = {document.name: document.sha256 for document in sources.documents}
    settings: dict[str, Any] = {"format": FORMAT, "chunk_size": chunk_size, "chunk_overlap": chunk_overlap}
    if model is not None:
        settings["embed_model"] = model_identity(model)
        # Only a model that goes by a name can be made again by a process that is given the location alone.
        settings["embed_model_name"] = embed_model if isinstance(embed_model, str) else None

    from adk_airflow_llama_index.terms import VERSION as terms_version

    root.mkdir(parents=True, exist_ok=True)
    with FileLock(root / ".lock"):
        directory = IndexDirectory(root, settings, terms_version)
        latest = directory.latest()
        before = latest[1].documents if latest else {}
        unchanged = {name for name, sha256 in hashes.items() if before.get(name) == sha256}
        version = directory.version(hashes)
        manifest = directory.reuse(version)
        built = manifest is None
        if manifest is None:
            kept = _load_passages(latest[0], unchanged) if latest else {}
            splitter = _splitter(chunk_size, chunk_overlap)
            passages: list[_Passage] = []
            for number, document in enumerate(sources.documents, start=1):
                passages += kept.get(document.name) or _split(splitter, document)
                if number % 500 == 0:
                    tell(f"prepared {number} of {len(sources.documents)} documents")
            vectors = None
            journal = EmbeddingJournal(directory.embedding_journal)
            if model is not None:
                vectors = _embed(model, passages, journal, tell)
            with directory.building(version) as building:
                _write(building, [passage.node for passage in passages], vectors, source)
                tell(f"publishing {version}")
                manifest = directory.publish(building, hashes, len(passages))
            journal.discard()
    added = len(hashes.keys() - before.keys())
    tell(f"{'built' if built else 'found'} {version}: {len(hashes)} documents, {len(unchanged)} unchanged")
    return RefreshReport(
        location=str(version),
        documents=len(hashes),
        passages=manifest.passages,
        added=added,
        changed=len(hashes) - len(unchanged) - added,
        removed=len(before.keys() - hashes.keys()),
        reused=len(unchanged),
        skipped=sources.skipped,
        built=built,
        seconds=round(time.monotonic() - started, 3),
    )


def _silent(_: str) -> None:
    """The progress that nobody asked for."""


@dataclass(frozen=True)
class _Passage:
    """A passage to be written.

    Attributes:
        node: The passage as LlamaIndex has it.
        vector: Its unit vector, when a version had it already.
    """

    node: BaseNode
    vector: Vectors | None = None


def _splitter(chunk_size: int, chunk_overlap: int) -> SentenceSplitter:
    from llama_index.core.node_parser import SentenceSplitter as LlamaIndexSplitter

    # LlamaIndex's default for sentences is NLTK's Punkt, whose current releases refuse to read data files
    # that an installer has hard-linked, as uv does. Sentence ends are a preference of the splitter, so this
    # will do.
    return LlamaIndexSplitter(
        chunk_size=chunk_size,
        chunk_overlap=chunk_overlap,
        chunking_tokenizer_fn=_sentences,
        include_metadata=False,
        include_prev_next_rel=False,
        id_func=lambda position, document: f"{document.id_}#{position}",
    )


def _split(splitter: SentenceSplitter, document: SourceDocument) -> list[_Passage]:
    from llama_index.core import Document

    return [_Passage(node) for node in splitter([Document(id_=document.name, text=document.text)])]


def _load_passages(version: Path, names: set[str]) -> dict[str, list[_Passage]]:
    """The passages, with their vectors, that an intact version has of the documents ``names``."""
    from bm25s import BM25
    from llama_index.core.vector_stores.utils import metadata_dict_to_node

    corpus = BM25.load(str(version / BM25_DIR), load_corpus=True).corpus
    vectors: Sequence[Vectors | None] = [None] * len(corpus)
    if (version / VECTORS).exists():
        vectors = np.load(version / VECTORS)
    passages: dict[str, list[_Passage]] = {}
    for entry, vector in zip(corpus, vectors, strict=True):
        if entry["ref_doc_id"] in names:
            passages.setdefault(entry["ref_doc_id"], []).append(_Passage(metadata_dict_to_node(entry), vector))
    return passages


def _embed(model: BaseEmbedding, passages: list[_Passage], journal: EmbeddingJournal, tell: Callable[[str], None]) -> Vectors:
    new = [passage.node.get_content() for passage in passages if passage.vector is None]
    fresh = iter(embed_passages(model, new, journal, tell) if new else ())
    rows = [next(fresh) if passage.vector is None else passage.vector for passage in passages]
    if len({len(row) for row in rows}) > 1:
        raise EmbeddingModelError(
            f"The embedding model {model.model_name!r} gives vectors of another length than before, under "
            "the same name and settings. Use another index_dir for it."
        )
    return np.stack(rows)


def _write(building: Path, nodes: list[BaseNode], vectors: Vectors | None, source: Path) -> None:
    from bm25s import BM25
    from bm25s.tokenization import Tokenized
    from llama_index.core.schema import MetadataMode
    from llama_index.core.vector_stores.utils import node_to_metadata_dict

    from adk_airflow_llama_index.terms import document_terms

    terms = document_terms(node.get_content(metadata_mode=MetadataMode.EMBED) for node in nodes)
    if not any(terms):
        raise IndexSourceError(
            f"The documents below {str(source)!r} hold no word to search for, only stop words or single "
            "characters; put documents with text there."
        )
    vocabulary: dict[str, int] = {}
    numbers = [[vocabulary.setdefault(term, len(vocabulary)) for term in of_node] for of_node in terms]
    bm25 = BM25()
    corpus = [node_to_metadata_dict(node) | {"node_id": node.node_id} for node in nodes]
    bm25.index(Tokenized(numbers, vocabulary), show_progress=False)
    bm25.save(str(building / BM25_DIR), corpus=corpus, show_progress=False)
    if vectors is not None:
        np.save(building / VECTORS, vectors, allow_pickle=False)
