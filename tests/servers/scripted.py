"""The part that all servers share: HTTP on a free loopback port, in threads, and a script that answers each request."""

from __future__ import annotations

import json
import socket
import struct
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from tests.servers.replies import Reply

R = TypeVar("R")


@dataclass(frozen=True)
class Answer:
    """An HTTP response: one body, JSON or HTML, or `events` (each a whole server-sent event as text) as a chunked stream."""

    status: int
    body: Mapping[str, Any] | str | None = None
    events: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)


class ScriptError(AssertionError):
    """The script failed on a request, so the test did not test what it says. The first failure is its cause."""


class ScriptedServer(ABC, Generic[R]):
    """A server for the length of a `with` block. Each request is kept, then given to the script, and the reply sent.

    A script that raises makes the response a 500 with the exception's text, and the end of the block raises ScriptError.
    """

    def __init__(self, script: Callable[[R], Any]) -> None:
        self.requests: list[R] = []
        self._script = script
        self._failures: list[tuple[str, BaseException]] = []
        self._closing = threading.Event()
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.serve = self._serve
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), name=type(self).__name__, daemon=True)

    @property
    def url(self) -> str:
        """Such as http://127.0.0.1:40123, without a slash at its end."""
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    @abstractmethod
    def environment(self) -> dict[str, str]:
        """The variables that lead the vendor's client to this server."""

    @abstractmethod
    def read(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> R | None:
        """The request as scripts see it; None for a path that the API does not have. Header names are in lower case."""

    @abstractmethod
    def understand(self, request: R, answer: Any) -> Reply:
        """The script's answer as a Reply; TypeError if it is none."""

    @abstractmethod
    def answer(self, request: R, reply: Reply) -> Answer:
        """The reply in the API's words."""

    @abstractmethod
    def failure(self, code: int, message: str) -> Answer:
        """An error of the server itself in the API's words."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        if not self._failures:
            return
        path, first = self._failures[0]
        message = f"the script of {type(self).__name__} failed {len(self._failures)} time(s), first on {path} with {first!r}"
        if error is None:
            raise ScriptError(message) from first
        error.add_note(message)

    def _serve(self, handler: _Handler) -> None:
        headers = {name.lower(): value for name, value in handler.headers.items()}
        content = handler.rfile.read(int(headers.get("content-length", 0)))
        reply = Reply()
        try:
            request = self.read(handler.path, headers, json.loads(content) if content else {})
            if request is None:
                answer = self.failure(404, f"{type(self).__name__} does not know {handler.command} {handler.path}")
            else:
                self.requests.append(request)
                reply = self.understand(request, self._script(request))
                answer = self.answer(request, reply)
        except BaseException as failure:  # pytest.fail in a script is no Exception
            self._failures.append((handler.path.partition("?")[0], failure))
            answer = self.failure(500, f"{type(failure).__name__}: {failure}")
        self._closing.wait(reply.delay)
        if reply.reset:
            handler.reset()
        else:
            handler.send(answer, cut=reply.cut)


class _Http(ThreadingHTTPServer):
    # So that closing the server waits for the answers under way: none outlives its test.
    daemon_threads = False
    serve: Callable[[_Handler], None]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10
    server: _Http

    def do_POST(self) -> None:
        self.server.serve(self)

    do_GET = do_POST

    def send(self, answer: Answer, *, cut: bool) -> None:
        # One request each: no idle connection keeps a thread, and a cut needs no more than to stop writing.
        self.close_connection = True
        try:
            self.send_response(answer.status)
            self.send_header("Connection", "close")
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if answer.body is None:
                self._send_events(answer.events, cut)
            else:
                self._send_body(answer.body, cut)
        except (BrokenPipeError, ConnectionResetError):
            return  # the client did not wait

    def reset(self) -> None:
        """Closes the connection so that the client's side reads a reset instead of an end."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def _send_body(self, body: Mapping[str, Any] | str, cut: bool) -> None:
        data = (body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)).encode()
        kind = "text/html" if isinstance(body, str) else "application/json"
        self.send_header("Content-Type", f"{kind}; charset=UTF-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if cut else data)

    def _send_events(self, events: tuple[str, ...], cut: bool) -> None:
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events[: (len(events) + 1) // 2] if cut else events:
            data = event.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        if not cut:
            self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: a test's output is its own."""
