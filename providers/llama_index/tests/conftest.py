"""What the tests share: a small collection, an embedding model that counts, and processes of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from pydantic import PrivateAttr

TEXTS = {
    "croniter.md": "A calendar helper. It reads cron expressions and tells when the next run of a job is due.",
    "guide/pools.md": "A pool limits how many tasks of a workflow run at once, whatever the scheduler would start.",
    "pendulum.md": "Dates and time zones made easy. Differences between dates are readable for people.",
    "sqlalchemy.md": "A toolkit for databases. It maps rows of tables to objects and writes the SQL.",
}


class WordEmbedding(BaseEmbedding):
    """One dimension per known word, so that a test can say which text is near which; it counts its work."""

    model_name: str = "words"
    vocabulary: tuple[str, ...] = ("cron", "pool", "date", "database", "task")
    fail_after: int | None = None
    _embedded: list[str] = PrivateAttr(default_factory=list)

    @property
    def embedded(self) -> list[str]:
        """The texts of documents, not of queries, that were embedded so far."""
        return self._embedded

    def _vector(self, text: str) -> list[float]:
        return [float(text.lower().count(word)) for word in self.vocabulary]

    def _get_text_embedding(self, text: str) -> list[float]:
        if self.fail_after is not None and len(self._embedded) >= self.fail_after:
            raise ConnectionError("the model does not answer")
        self._embedded.append(text)
        return self._vector(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._vector(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._vector(query)


@pytest.fixture
def new_embedding() -> Callable[..., WordEmbedding]:
    return WordEmbedding


@pytest.fixture
def write() -> Callable[[Path, dict[str, str]], Path]:
    """Writes texts below a directory, by their names, and returns it."""

    def write_texts(directory: Path, texts: dict[str, str]) -> Path:
        for name, text in texts.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return directory

    return write_texts


@pytest.fixture
def documents(tmp_path: Path, write: Callable[[Path, dict[str, str]], Path]) -> Path:
    return write(tmp_path / "documents", TEXTS)


@pytest.fixture
def start() -> Callable[..., subprocess.Popen[str]]:
    """Starts a Python program with arguments in a process of its own."""

    def start_python(program: str, *arguments: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", program, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start_python
