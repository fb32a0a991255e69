"""What a script answers, in no vendor's terms: each server writes it down in its own API's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
"""google.rpc status names of HTTP codes."""


@dataclass(frozen=True)
class Call:
    """A function call that the model asks for."""

    name: str
    args: Mapping[str, Any]
    id: str | None = None


@dataclass(frozen=True)
class Failure:
    """An error answer: the HTTP code and the vendor's word for it.

    `retry_delay` is in seconds, as the vendor says it (Google in the body, Anthropic in a header); `headers` are sent as they
    are; `reason` is Google's; with `page` the body is the HTML of a proxy, which knows nothing of the vendor's errors.
    """

    code: int
    status: str
    message: str
    retry_delay: float | None = None
    reason: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    page: bool = False


@dataclass(frozen=True)
class Reply:
    """One answer: texts and calls in their order, or a failure, or a body that is sent as it is.

    `delay` is in seconds, before the first byte; with `cut` the connection ends in the middle of the body; with `reset` it is
    reset before the first byte. Parts and a failure: a stream that begins well and then tells of an error. `tokens`, in
    Gemini's words (`thoughtsTokenCount`), are reported instead of or beside those that are counted.
    """

    parts: tuple[str | Call, ...] = ()
    failure: Failure | None = None
    body: Mapping[str, Any] | None = field(default=None, repr=False)
    delay: float = 0.0
    cut: bool = False
    reset: bool = False
    tokens: Mapping[str, int] = field(default_factory=dict)


def text(words: str) -> Reply:
    return Reply(parts=(words,))


def call(name: str, args: Mapping[str, Any] | None = None, id: str | None = None) -> Reply:
    return Reply(parts=(Call(name, args or {}, id),))


def calls(pairs: Iterable[tuple[str, Mapping[str, Any]]]) -> Reply:
    """Several function calls in one answer."""
    return Reply(parts=tuple(Call(name, args) for name, args in pairs))


def structured(value: Any) -> Reply:
    """The value as a JSON text, as a model answers that was given a response schema."""
    return text(json.dumps(value, ensure_ascii=False))


def error(
    code: int,
    status: str | None = None,
    message: str = "",
    retry_delay: float | None = None,
    reason: str | None = None,
    headers: Mapping[str, str] | None = None,
    page: bool = False,
) -> Reply:
    """An error in the vendor's error JSON. `retry_delay` is in seconds; a wrong key has the `reason` "API_KEY_INVALID"."""
    status = status or STATUSES.get(code, "UNKNOWN")
    return Reply(failure=Failure(code, status, message or status, retry_delay, reason, headers or {}, page))


def raw(body: Mapping[str, Any]) -> Reply:
    """A whole response body as the API words it, for what the other replies cannot say (also in a stream: as one chunk)."""
    return Reply(body=body)


def slow(reply: Reply | str, seconds: float) -> Reply:
    """The reply after so many seconds; the end of the server cuts the wait short."""
    reply = as_reply(reply)
    return replace(reply, delay=reply.delay + seconds)


def counted(reply: Reply | str, **tokens: int) -> Reply:
    """The reply with these counts of tokens, in Gemini's words: `counted("yes", promptTokenCount=100)`."""
    return replace(as_reply(reply), tokens=tokens)


def cut(reply: Reply | str) -> Reply:
    """The reply with the connection closed in the middle of its body."""
    return replace(as_reply(reply), cut=True)


def reset() -> Reply:
    """No answer: the connection is reset, as by a server that dies."""
    return Reply(reset=True)


def then(begun: Reply | str, failed: Reply) -> Reply:
    """A stream (of an agent that streams) that begins with a reply and then tells of an error."""
    return replace(as_reply(begun), failure=failed.failure)


def as_reply(answer: object) -> Reply:
    """The script's answer as a Reply.

    Raises:
        TypeError: It is neither a Reply nor a text.
    """
    if isinstance(answer, str):
        return text(answer)
    if isinstance(answer, Reply):
        return answer
    raise TypeError(f"the script answered {answer!r}; it must answer a text or one of text(), call(), error() and so on")


def pieces(words: str) -> list[str]:
    """The text in up to four pieces, as a stream sends it; joined they are the text again."""
    tokens = re.findall(r"\S+\s*|\s+", words)
    if len(tokens) < 2:
        middle = (len(words) + 1) // 2
        return [piece for piece in (words[:middle], words[middle:]) if piece] or [""]
    size = -(-len(tokens) // 4)
    return ["".join(tokens[start : start + size]) for start in range(0, len(tokens), size)]


def count_words(words: str) -> int:
    """What these servers count as tokens."""
    return len(words.split())
