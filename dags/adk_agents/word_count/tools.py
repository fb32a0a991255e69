"""Helpers of this project; another project may have a ``tools.py`` too."""

import re


def words_of(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return re.findall(r"\w+", text.lower())
