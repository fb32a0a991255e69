"""Google ID tokens of the worker's default credentials: a service account, a metadata server, a key file."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from adk_airflow_toolbox.errors import ToolboxUnavailableError


def id_token_getter(
    audience: str, *, conn_id: str, prefix: str = "", hide: Callable[[str], None]
) -> Callable[[], Awaitable[str]]:
    """What gives an ID token for ``audience``, with ``prefix`` before it; fetches one when there is none or it expires.

    Each token goes to ``hide`` first, which keeps it out of logs. What is returned raises ``ToolboxUnavailableError`` when
    there are no credentials or Google gives no token.
    """
    lock = threading.Lock()
    credentials: list[Any] = []

    def fetch() -> str:
        from google.auth.exceptions import GoogleAuthError, TransportError
        from google.auth.transport.requests import Request
        from google.oauth2 import id_token

        request = Request()
        with lock:
            try:
                if not credentials:
                    credentials.append(id_token.fetch_id_token_credentials(audience, request))  # type: ignore[no-untyped-call]
                (found,) = credentials
                if not found.valid:
                    found.refresh(request)
            except GoogleAuthError as error:
                # The class only: Google's answer, which the message quotes, may hold a token.
                raise ToolboxUnavailableError(
                    f"connection {conn_id!r}: no Google ID token for {audience!r} ({type(error).__name__})."
                    " The worker needs default credentials of a service account.",
                    permanent=not (
                        error.retryable or isinstance(error, TransportError) or isinstance(error.__cause__, TransportError)
                    ),
                ) from None
            token = str(found.token)
        hide(token)
        return token

    async def get() -> str:
        token = await asyncio.to_thread(fetch)
        return prefix + token

    return get
