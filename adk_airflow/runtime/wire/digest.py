"""Tells a JSON text that came as it was written from one that was changed: it carries a digest of itself.

Against damage, not against a person who means it: who can change the text can make the digest anew.
"""

from __future__ import annotations

import hashlib

from adk_airflow.errors import EnvelopeError


def of(text: str) -> str:
    """32 hexadecimal digits."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def check(text: str, before: str, digest: object) -> None:
    """Compares what a text carries with what it is.

    Args:
        text: The whole text.
        before: All that stands before what the digest is of.
        digest: What the text carries.

    Raises:
        EnvelopeError: It was changed.
    """
    if not (text.startswith(before) and of(text[len(before) :]) == digest):
        raise EnvelopeError("it is not as it was written: its digest is another")
