"""Which values hold a secret, and what stands in XCom in their place.

In the envelope, for the tasks of the workflow, such a value is sealed (``wire.sealed``); in plain forms, for people and other
tasks, ``***`` stands for the secret. A secret is what Airflow's own masker knows (connections, sensitive variables,
``mask_secret``, what ``runtime.adk.credentials`` tells it), a key of the environment, and what looks like a vendor's key. To
seal a value changes nothing for the tasks, so what is only called like a secret is sealed too, and so is all ``temp:`` state,
which ADK keeps nowhere.
"""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from adk_airflow.runtime import failures
from adk_airflow.runtime.wire.sealed import HOW_TO_SET_A_KEY, sealed

log = logging.getLogger(__name__)

_TEMP = "temp:"
# As ADK names the keys of the state that hold credentials.
_OF_CREDENTIALS = re.compile(r"adk_\w|.*_existing_exchanged_credential")
# Parts of ADK's credentials whose names Airflow does not count as sensitive; in text they may be JSON.
_PARTS = "auth_code|authCode|auth_response_uri|authResponseUri|code_verifier|codeVerifier|additional_headers|additionalHeaders"
_JSON_PART = re.compile(rf'"(?:(?:access|refresh|id)_?[tT]oken|client_?[sS]ecret|{_PARTS})"')
_CLASSES = "google.adk.auth."
_BASE64 = re.compile(r"[\w+/-]{8,}={0,2}", re.ASCII)

_WORDS = re.compile(r"[\s\"'<>,;]+")
_MOST_SECRET = 1000  # characters that Airflow's masker is told to look for


class Sealing:
    """Seals what holds a secret, and notes what it could not seal because Airflow has no Fernet key. A ``wire.sealed.Seal``."""

    def __init__(self) -> None:
        self.in_clear: dict[str, None] = {}

    def __call__(self, data: Any, what: str, key: str = "") -> Any:
        """The encoded value as it is, or sealed."""
        if not (key.startswith(_TEMP) or _names_secret(key, data) or holds_secret(data)):
            return data
        found = sealed(data, secrets_in(data))
        if found is not None:
            return found
        if what:
            self.in_clear[what] = None
        return data

    def warn(self, where: str) -> None:
        """Says in the log what stands in XCom as it is.

        Args:
            where: Who left it there: the workflow and the node.
        """
        if self.in_clear:
            log.warning(
                "%s: %s may hold a secret, and is in XCom in clear text, because Airflow has no Fernet key to seal it with. %s",
                where, ", ".join(self.in_clear), HOW_TO_SET_A_KEY,
            )  # fmt: skip


def holds_secret(data: Any) -> bool:
    """Whether there is a secret in JSON data, or what is named like one."""
    texts: list[str] = []
    for name, value in _parts(data):
        if _names_secret(name, value) or (name == "c" and str(value).startswith(_CLASSES)):
            return True
        texts += (name, *_readings(value))
    together = "\n".join(texts)
    return failures.holds_secret(together) or _JSON_PART.search(together) is not None


def secrets_in(data: Any) -> list[str]:
    """The words of JSON data in which there is a secret; a whole text where it is in none of its words alone."""
    found: dict[str, None] = {}
    for _, value in _parts(data):
        if not any(failures.holds_secret(text) for text in _readings(value)):
            continue
        words = [word for word in _WORDS.split(value) if any(failures.holds_secret(text) for text in _readings(word))]
        found.update(dict.fromkeys(words or [value[:_MOST_SECRET]]))
    return list(found)


def masked(data: Any, *, by_name: bool = False) -> tuple[Any, bool]:
    """JSON data for everybody's eyes, with ``***`` for each secret in it, and whether there was one.

    Args:
        data: The data.
        by_name: Also for what is only called like a secret, such as ``{"password": "x"}``.
    """
    texts = [text for name, value in _parts(data) for text in (name, *_readings(value))]
    named = by_name and any(_names_secret(name, value) for name, value in _parts(data))
    if not named and not failures.holds_secret("\n".join(texts)):
        return data, False
    return _masked(data, by_name), True


def _masked(data: Any, by_name: bool) -> Any:
    if isinstance(data, str):
        plain = next((text for text in _readings(data)[1:] if failures.holds_secret(text)), None)
        return failures.masked(data) if plain is None else "***"
    if isinstance(data, list):
        return [_masked(item, by_name) for item in data]
    if isinstance(data, dict):
        pairs = [
            [failures.masked(key), "***" if by_name and _names_secret(key, item) else _masked(item, by_name)]
            for key, item in data.items()
        ]
        found = dict(pairs)
        return found if len(found) == len(data) else pairs
    return data


def _parts(data: Any) -> Iterator[tuple[str, Any]]:
    """JSON data and each value in it with its name, which is empty where it has none."""
    waiting = [("", data)]
    while waiting:
        name, value = waiting.pop()
        yield name, value
        if isinstance(value, dict):
            waiting += value.items()
        elif isinstance(value, list):
            pair = len(value) == 2 and type(value[0]) is str  # as the codec writes a dict with other keys than text
            waiting += [(value[0] if pair and at else "", item) for at, item in enumerate(value)]


def _readings(value: Any) -> tuple[str, ...]:
    """A text, and what it says if it is Base64 of text."""
    if type(value) is not str:
        return ()
    if not _BASE64.fullmatch(value):
        return (value,)
    try:
        plain = base64.b64decode(value.rstrip("=") + "==", altchars=b"-_" if {"-", "_"} & set(value) else None)
    except ValueError:
        return (value,)
    return value, plain.decode(errors="replace")


def _names_secret(name: str, value: Any) -> bool:
    """Whether the value is called a secret, and is more than a number or a yes or no."""
    return is_sensitive(name) and any(type(part) is str and part for _, part in _parts(value))


@lru_cache(maxsize=4096)
def is_sensitive(name: str) -> bool:
    """Whether what has this name is taken for a secret, by Airflow or as a part of ADK's credentials."""
    return bool(name) and (
        _OF_CREDENTIALS.match(name) is not None or re.fullmatch(_PARTS, name) is not None or failures.is_sensitive(name)
    )
