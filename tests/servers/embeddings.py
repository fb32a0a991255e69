"""Vectors made of a text's words: the same on every machine, and near for texts that share words."""

from __future__ import annotations

import math
import re
import zlib

DIMENSIONS = 64


def embed(words: str, dimensions: int = DIMENSIONS) -> list[float]:
    """A vector of length 1; each word counts in the one dimension that its checksum names, whatever its case."""
    vector = [0.0] * dimensions
    for word in re.findall(r"\w+", words.lower()) or [""]:
        vector[zlib.crc32(word.encode()) % dimensions] += 1.0
    length = math.sqrt(sum(value * value for value in vector))
    return [round(value / length, 6) for value in vector]
