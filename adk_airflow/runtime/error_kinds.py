"""What kind of error a task failed with: whether another try can help, and when.

The kind is read from the error itself, from the members of a group, from the error that ADK wraps (of a dynamic node), and from
the errors that it was raised from. Libraries are told by the names of their classes and by attributes that they share
(``status_code``, ``response.headers``), so none is imported: google-genai, Anthropic, OpenAI, LiteLLM, httpx, aiohttp,
requests, google-auth, google-api-core.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from adk_airflow.runtime.answers import http_status, requested_wait

# What libraries look up and do not find: a connection of Airflow's, credentials of Google's.
_NOT_THERE = {"AirflowNotFoundException", "DefaultCredentialsError"}
_TIMEOUTS = {
    *("TimeoutError", "TimeoutException", "APITimeoutError", "Timeout", "NodeTimeoutError"),
    *("DeadlineExceeded", "DeadlineExceededError"),
}
_CUT = {
    *("ClientPayloadError", "PayloadEncodingError", "RemoteProtocolError", "IncompleteRead", "ChunkedEncodingError"),
    "ServerDisconnectedError",
}
_UNREACHED = {
    *("ConnectionError", "APIConnectionError", "ClientConnectionError", "NetworkError", "ProxyError", "gaierror"),
    *("ProtocolError", "NewConnectionError", "URLError", "TransportError"),
}
# Of httpx's TransportErrors these are mistakes of the caller.
_MISTAKES = {"UnsupportedProtocol", "LocalProtocolError"}

_BUSY = {429, 503, 529}
# 4xx that are about the moment, not about the request.
_MOMENTARY = {408, 409, 412, 421, 423, 424, 425, 429, 499}
_NEVER = {501, 505}

_MOST = 100  # errors that are looked at, of one in another


class Kind(Enum):
    """What an error says of another try."""

    REFUSED = "refused"
    """The same would happen again."""
    BUSY = "busy"
    """The server is there and wants to be asked later: 429, 503, 529."""
    INTERRUPTED = "interrupted"
    """A time-out, a connection that failed or broke, a server's own error."""
    UNKNOWN = "unknown"
    """Nothing that is known: Airflow's own ``retries`` and ``retry_delay`` are for it."""


@dataclass(frozen=True)
class Finding:
    """The kind of an error, and where it was read.

    Attributes:
        kind: What it says of another try.
        error: The error that says so: the one given, or one in it.
        what: The kind in words, such as ``HTTP 429``.
        wait: Seconds, more than 0, that the server asks to wait; None when it does not say.
    """

    kind: Kind
    error: BaseException
    what: str = ""
    wait: float | None = None


def kind_of(error: BaseException) -> Finding:
    """What kind of error it is, as far as another try goes.

    A group is refused when all of it is; otherwise it counts as that of its members that has to be waited for longest.
    """
    return _find(error, set())


def is_permanent(error: BaseException) -> bool:
    """Whether the same task would fail again.

    So it is with an HTTP answer that refuses the request (400, 401, 403, 404, ...), credentials or a connection that are not
    there, and errors whose class says so by an attribute ``permanent = True``, as those of adk-airflow and its providers do.
    """
    return kind_of(error).kind is Kind.REFUSED


def timed_out(error: BaseException) -> bool:
    """Whether a request ended at a time limit: of Python, httpx, aiohttp, requests, anthropic, openai, or by the server's."""
    return bool(_TIMEOUTS & class_names(error)) or http_status(error) in (408, 504)


def cut_off(error: BaseException) -> bool:
    """Whether an answer ended before it was whole: the connection closed in the middle of it."""
    return bool(_CUT & class_names(error))


def class_names(error: BaseException) -> set[str]:
    """The names of an error's classes."""
    return {cls.__name__ for cls in type(error).__mro__}


def _find(error: BaseException, seen: set[int]) -> Finding:
    nothing = Finding(Kind.UNKNOWN, error)
    if id(error) in seen or len(seen) >= _MOST:
        return nothing
    seen.add(id(error))
    if isinstance(error, BaseExceptionGroup):
        return _of_group([_find(one, seen) for one in error.exceptions])
    if not isinstance(error, Exception):
        return nothing
    said = getattr(error, "permanent", None)
    if said is True:
        return Finding(Kind.REFUSED, error, "this does not pass by itself")
    found = _of_itself(error) or _of_origin(error, seen) or nothing
    return replace(found, kind=Kind.UNKNOWN) if said is False and found.kind is Kind.REFUSED else found


def _of_group(found: list[Finding]) -> Finding:
    open_ones = [one for one in found if one.kind is not Kind.REFUSED]
    known = [one for one in open_ones if one.kind is not Kind.UNKNOWN]
    return max(known or open_ones or found, key=lambda one: one.wait or 0)


def _of_itself(error: Exception) -> Finding | None:
    """What an error says without those that it comes from; None for nothing."""
    if isinstance(getattr(error, "error", None), Exception):  # ADK's error of a dynamic node speaks for that one
        return None
    names = class_names(error)
    if _NOT_THERE & names:
        return Finding(Kind.REFUSED, error, "what is needed is not there")
    if cut_off(error):  # before the status: aiohttp gives a cut answer the code 400
        return Finding(Kind.INTERRUPTED, error, "the answer was cut off")
    status = http_status(error)
    if status is not None:
        kind = _of_status(status)
        return Finding(kind, error, f"HTTP {status}", None if kind is Kind.REFUSED else requested_wait(error))
    if _TIMEOUTS & names:
        return Finding(Kind.INTERRUPTED, error, "a request timed out")
    if _UNREACHED & names and not _MISTAKES & names:
        return Finding(Kind.INTERRUPTED, error, "the connection failed")
    return _of_google_auth(error, names)


def _of_status(status: int) -> Kind:
    if status in _BUSY:
        return Kind.BUSY
    refused = status in _NEVER or (status < 500 and status not in _MOMENTARY)
    return Kind.REFUSED if refused else Kind.INTERRUPTED


def _of_google_auth(error: Exception, names: set[str]) -> Finding | None:
    """Credentials that could not be renewed: the library knows whether they may be another time."""
    retryable: Any = getattr(error, "retryable", None)
    if "RefreshError" not in names or not isinstance(retryable, bool) or error.__cause__ is not None:
        return None
    if retryable:
        return Finding(Kind.INTERRUPTED, error, "credentials could not be renewed")
    return Finding(Kind.REFUSED, error, "the credentials are refused")


def _of_origin(error: Exception, seen: set[int]) -> Finding | None:
    for origin, certain in _origins(error):
        found = _find(origin, seen)
        # An error that was only being handled may have nothing to do with it, so it is no reason to give up.
        if found.kind is not Kind.UNKNOWN and (certain or found.kind is not Kind.REFUSED):
            return found
    return None


def _origins(error: Exception) -> Iterator[tuple[BaseException, bool]]:
    """What an error stands for or was raised from, and whether it says so itself."""
    inner = getattr(error, "error", None)
    if isinstance(inner, Exception):
        yield inner, True
    if error.__cause__ is not None:
        yield error.__cause__, True
    elif error.__context__ is not None and not error.__suppress_context__:
        yield error.__context__, False
