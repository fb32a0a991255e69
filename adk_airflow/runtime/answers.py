"""What an HTTP answer that became an error says: its status, and when to come again. In any library's words."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

# Anthropic's words for errors in the middle of a stream, which has begun with status 200.
_TYPES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
# google.rpc.RetryInfo in JSON, also where a library keeps the body as text only.
_RETRY_INFO = re.compile(r"""retryDelay\\?['"]\s*:\s*\\?['"](\d+(?:\.\d+)?)s""")


def http_status(error: BaseException) -> int | None:
    """The status of an HTTP answer that became an error; None for other errors."""
    for holder in (error, getattr(error, "response", None), getattr(error, "resp", None)):  # resp: googleapiclient
        for name in ("status_code", "status", "code"):  # aiohttp warns of its "code"
            status = getattr(holder, name, None)
            if isinstance(status, int) and not isinstance(status, bool) and 400 <= status < 600:
                return int(status)
    kind = getattr(error, "type", None)
    return _TYPES.get(kind) if isinstance(kind, str) and hasattr(error, "body") else None


def requested_wait(error: BaseException) -> float | None:
    """Seconds that the server asks to wait before the next request: the longest that it says. None where it says nothing, or 0.

    Read from the headers ``Retry-After`` (seconds or a date), ``retry-after-ms`` and ``x-ms-retry-after-ms``, and from Google's
    ``RetryInfo`` in the body.
    """
    waits = [wait for wait in (*_of_headers(error), *_of_body(error)) if math.isfinite(wait) and wait > 0]
    return max(waits, default=None)


def _of_headers(error: BaseException) -> Iterator[float]:
    holders: list[Any] = [getattr(error, name, None) for name in ("headers", "resp", "litellm_response_headers")]
    for headers in (getattr(getattr(error, "response", None), "headers", None), *holders):
        if headers is None or not callable(getattr(headers, "items", None)):
            continue
        given = {str(name).lower(): str(value).strip() for name, value in headers.items()}
        for name, part in (("retry-after-ms", 0.001), ("x-ms-retry-after-ms", 0.001), ("retry-after", 1.0)):
            if (seconds := _number(given.get(name, ""))) is not None:
                yield seconds * part
        if (until := given.get("retry-after", "")) and _number(until) is None:
            yield from _until(until, given.get("date", ""))


def _until(date: str, now: str) -> Iterator[float]:
    """Seconds to a date, by the server's clock where its answer tells the time."""
    if (end := _moment(date)) is not None:
        yield end - (_moment(now) or time.time())


def _moment(date: str) -> float | None:
    """An HTTP date, which is in UTC unless it says otherwise, in seconds since 1970; None for what is none."""
    try:
        found = parsedate_to_datetime(date)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _of_body(error: BaseException) -> Iterator[float]:
    details = getattr(error, "details", None)
    for part in details if isinstance(details, (list, tuple)) else ():  # google-api-core has RetryInfo as a message
        delay = getattr(part, "retry_delay", None)
        if isinstance(seconds := getattr(delay, "seconds", None), int):
            yield seconds + getattr(delay, "nanos", 0) / 1e9
    for source in (details, getattr(error, "body", None), error):
        text = source if isinstance(source, str) else str(source) if isinstance(source, (Mapping, list, BaseException)) else ""
        for seconds_text in _RETRY_INFO.findall(text):
            yield float(seconds_text)


def _number(text: Any) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
