"""The errors a user of an index can cause; each message says where and what to do."""

from __future__ import annotations


class IndexSourceError(ValueError):
    """The directory given to ``refresh_index`` cannot become an index; the index that existed is untouched."""


class IndexNotFoundError(LookupError):
    """No usable index version at the location: missing, half-written or damaged."""


class EmbeddingModelError(ValueError):
    """The embedding model cannot be made, is missing, or is not the one the index was built with.

    Attributes:
        permanent: Another try would fail in the same way; a task of adk-airflow makes none.
    """

    permanent = True
