"""A gRPC server and an HTTP server in a process of their own: ``python -m tests.preload.echo`` prints their addresses."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import grpc


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"http")

    def log_message(self, *_: Any) -> None:
        """Nothing."""


def main() -> None:
    echo = grpc.unary_unary_rpc_method_handler(lambda request, context: request)
    server = grpc.server(ThreadPoolExecutor())
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Echo", {"Say": echo}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    http = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    Thread(target=http.serve_forever, daemon=True).start()
    print(f"127.0.0.1:{port} http://127.0.0.1:{http.server_port}", flush=True)
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main()
