"""The terms of a text for BM25: what is counted in documents and looked up for a query.

English is what bm25s makes of it by default: words of two characters or more, without stop words, stemmed. Three things come
on top, since BM25 finds what is the same and nothing else:

* Text is normalised, so that one word in two Unicode forms is one term.
* A word with accents counts without them, too: ``cafe`` finds ``café``, and ``café`` finds it better.
* Scripts that put no space between words, and Korean, whose particles stand at the word, are cut into pairs of characters.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from itertools import pairwise

import regex
import Stemmer
from bm25s.stopwords import STOPWORDS_EN

VERSION = "2"
"""Raised when a text gets other terms than before: an index that was built with others is built anew."""

# Of no meaning in a word: soft hyphens, joiners, variation selectors, Arabic's stretching; vowel signs that may be left out.
_IGNORED = regex.compile(r"(?V1)[[\p{Default_Ignorable_Code_Point}\u0640]--[\u200b]]")
_POINTED = regex.compile(r"([\p{Arabic}\p{Hebrew}])\p{Mn}+")
# Thai, Lao, Khmer, Burmese and their kin are what Unicode's line breaking needs a dictionary for (SA).
_UNSPACED = (
    r"\p{Script_Extensions=Han}\p{Script_Extensions=Hiragana}\p{Script_Extensions=Katakana}\p{Script_Extensions=Bopomofo}"
    r"\p{Script=Yi}\p{Script=Tangut}\p{Script=Nushu}\p{Script=Javanese}\p{Script=Balinese}\p{Line_Break=SA}"
)
_LETTER = r"[\p{L}\p{N}\p{M}]"
# A line of such a script may end, and a zero width space stand, in the middle of a word.
_WRAPPED = regex.compile(rf"(?V1)(?<=[[{_UNSPACED}]&&{_LETTER}])(?:\u200b|[ \t]*\r?\n[ \t]*)(?=[[{_UNSPACED}]&&{_LETTER}])")
_PAIRED = rf"[[{_UNSPACED}\p{{Script=Hangul}}]&&{_LETTER}]"
_TERM = regex.compile(
    rf"(?V1)(?P<run>{_PAIRED}[{_PAIRED}\p{{M}}]*)|(?P<word>[[\p{{L}}\p{{N}}_]--{_PAIRED}][[\p{{L}}\p{{N}}\p{{M}}_]--{_PAIRED}]+)"
)
_CHARACTER = regex.compile(r"\X")
_ACCENTED = regex.compile(r"[\p{Latin}\p{Greek}\p{Cyrillic}]\p{Mn}+")
# Letters that Unicode does not take for another one with an accent.
_PLAIN = str.maketrans({"ı": "i", "ø": "o", "ł": "l", "đ": "d", "ħ": "h", "æ": "ae", "œ": "oe"})
_STOP_WORDS = frozenset(STOPWORDS_EN)


def document_terms(texts: Iterable[str]) -> list[list[str]]:
    """The terms of each text, in its order and as often as they occur in it."""
    stemmer = Stemmer.Stemmer("english")
    return [list(_terms(text, stemmer, query=False)) for text in texts]


def query_terms(text: str) -> list[str]:
    """The terms to look up; none for a query of stop words, single letters or digits and punctuation alone."""
    # A stemmer of its own for each call: threads must not share one.
    return list(_terms(text, Stemmer.Stemmer("english"), query=True))


def _terms(text: str, stemmer: Stemmer.Stemmer, *, query: bool) -> Iterator[str]:
    for found in _TERM.finditer(_normalised(text)):
        run = found["run"]
        if run is None:
            word = found["word"]
            if word in _STOP_WORDS:
                continue
            yield stemmer.stemWord(word)
            plain = _without_accents(word)
            if plain != word:
                yield stemmer.stemWord(plain)
            continue
        characters = _CHARACTER.findall(run)
        # A document has both, so that a query of one character finds it; a longer query is more exact without them.
        if not query or len(characters) == 1:
            yield from characters
        yield from map("".join, pairwise(characters))


def _normalised(text: str) -> str:
    """One form for what reads the same: compatibility forms (full width, ligatures), case, ignorable characters, line ends."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    # Without these, letters meet that make one character.
    bare = unicodedata.normalize("NFKC", _POINTED.sub(r"\1", _IGNORED.sub("", folded)))
    return str(_WRAPPED.sub("", bare))


def _without_accents(word: str) -> str:
    if word.isascii():
        return word
    decomposed = unicodedata.normalize("NFD", word.translate(_PLAIN))
    return unicodedata.normalize("NFC", _ACCENTED.sub(lambda found: found[0][0], decomposed))
