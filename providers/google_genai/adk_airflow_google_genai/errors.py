"""The one error that says a connection is at fault, and Google's errors: which of them it stands for, and none with a key."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

_MAX_QUOTED = 400
# A gateway may pass on the message without the reason API_KEY_INVALID.
_BAD_KEY = re.compile(r"\bAPI key (not valid|expired|not found)", re.IGNORECASE)
# Keys as Google issues them: its messages quote the key itself where it is suspended or restricted.
_KEY = re.compile(r"AIza[\w-]{20,}|AQ\.[\w-]{20,}|ya29\.[\w.-]+")


class GoogleGenAIConnectionError(RuntimeError):
    """A connection cannot be used: a field is missing or wrong, or Google refuses its credentials.

    Attributes:
        conn_id: The connection.
        reason: What is wrong and what to do, without the connection's id; never holds a credential.
        code: HTTP status of Google's answer (400, 401, 403), or None where nothing was sent.
        permanent: Another try would fail in the same way; a task of adk-airflow makes none.
    """

    def __init__(self, conn_id: str, reason: str, code: int | None = None, *, permanent: bool = True) -> None:
        super().__init__(conn_id, reason, code)
        self.conn_id = conn_id
        self.reason = reason
        self.code = code
        self.permanent = permanent

    def __str__(self) -> str:
        return f"Connection {self.conn_id!r}: {self.reason}"


def http_status(error: BaseException) -> int | None:
    """The HTTP status of an error of google-genai, in the words of both of its API surfaces; None for other errors."""
    for name in ("code", "status_code"):  # the second is the Interactions API's
        status = getattr(error, name, None)
        if isinstance(status, int):
            return status
    return None


def is_refusal(error: BaseException) -> bool:
    """Whether Google's answer says that the credentials are not good enough: 401, 403, or 400 for a bad API key."""
    status = http_status(error)
    if status != 400:
        return status in (401, 403)
    said = str(_body(error).get("message"))
    return bool(_BAD_KEY.search(said)) or any(reason.startswith("API_KEY_") for reason in _reasons(error))


def _reasons(error: BaseException) -> list[str]:
    """The machine-readable reasons of an error body, such as API_KEY_INVALID."""
    body = _body(error)
    details = body.get("details")
    listed = details if isinstance(details, list) else []
    return [str(detail["reason"]) for detail in listed if isinstance(detail, dict) and "reason" in detail]


def quote(error: BaseException, secrets: Collection[str]) -> str:
    """Google's own words for an error, such as ``403 PERMISSION_DENIED: ...``, on one line and without secrets."""
    body = _body(error)
    head = " ".join(str(part) for part in (http_status(error), body.get("status"), *_reasons(error)) if part)
    return redact(f"{head}: {body.get('message') or getattr(error, 'message', None) or error}", secrets)


def redact(text: str, secrets: Collection[str]) -> str:
    """The text on one line, cut at 400 characters, with secrets and whatever looks like a Google key replaced."""
    text = " ".join(_masked_text(text, secrets).split())
    return text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}..."


def mask(error: BaseException, secrets: Collection[str]) -> None:
    """Takes secrets, and whatever looks like a Google key, out of what an error says, without another change to it.

    Its class, status and other attributes stay, so that retries and callbacks take it for what it is. An error below it (its
    cause or context) whose text cannot be changed is taken away.
    """
    for link in ("__cause__", "__context__"):
        below = getattr(error, link)
        if below is not None:
            mask(below, secrets)
            if _masked_text(said := f"{below} {below.args}", secrets) != said:
                setattr(error, link, None)
    error.args = _masked(error.args, secrets)
    for name, value in list(vars(error).items()):
        masked = _masked(value, secrets)
        if masked is not value:
            setattr(error, name, masked)


def _masked(value: Any, secrets: Collection[str]) -> Any:
    """The same object, or a copy where a text in it holds a secret."""
    if isinstance(value, str):
        text = _masked_text(value, secrets)
        return value if text == value else text
    if type(value) in (list, tuple):
        items = [_masked(item, secrets) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else type(value)(items)
    if type(value) is dict:
        entries = {_masked(key, secrets): _masked(item, secrets) for key, item in value.items()}
        unchanged = all(key in entries and entries[key] is item for key, item in value.items())
        return value if unchanged else entries
    return value


def _masked_text(text: str, secrets: Collection[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, "***")
    return _KEY.sub("***", text)


def is_timeout(error: BaseException) -> bool:
    """Whether a request waited longer than it was to: asyncio's, httpx's and the Interactions API's errors for that."""
    return any(cls.__name__ in ("TimeoutError", "TimeoutException", "APITimeoutError") for cls in type(error).__mro__)


def _body(error: BaseException) -> dict[str, Any]:
    details = getattr(error, "details", None) or getattr(error, "body", None)
    if not isinstance(details, dict):
        return {}
    inner = details.get("error", details)
    return inner if isinstance(inner, dict) else {}
