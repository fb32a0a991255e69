"""The model of the fault tests: it writes down each request that reached it, and may end the process that asks."""

from __future__ import annotations

import re
import threading
import time
from typing import Any

import psutil

from tests.faults.dags import fault_calls
from tests.servers.gemini import GeminiRequest, GeminiServer, Reply, call, cut, error, slow, text

LIMIT = 6.0
"""Seconds after which one that was refused with 429 may come again."""


class FaultyModel(GeminiServer):
    """Lets an agent look up as many numbers as its instruction says (``steps=5``), one after the other, then answers.

    The instruction names the case and the agent too: ``case=... line=...``.

    Attributes:
        outage: Until when all are answered 503, in seconds since the epoch.
    """

    def __init__(self) -> None:
        super().__init__(self._reply)
        self.outage = 0.0
        self._asking = threading.local()

    def _serve(self, handler: Any) -> None:
        self._asking.port = handler.client_address[1]
        super()._serve(handler)

    def _reply(self, request: GeminiRequest) -> Reply:
        case, steps = _found(r"case=(\S+)", request.system), int(_found(r"steps=(\d+)", request.system))
        line = _found(r"line=(\w+)", request.system)
        responses = _responses(request)
        this = f"M{len(responses) + 1}"
        fault_calls.write(case, "begin", line, this)
        if fault_calls.happens(case, "kill", line, this):
            _end_process(self._asking.port)
        if fault_calls.happens(case, "fail", line, this):
            return error(503, message="as the test says")
        if self.outage > time.time():
            fault_calls.write(case, "outage", line, this)
            return error(503, message="as the test says")
        if fault_calls.happens(case, "limit", line, this):
            return error(429, message="as the test says", retry_delay=LIMIT)
        while fault_calls.marked(case, "hold", line, this):
            time.sleep(0.05)
        reply = text(f"{line} found {[response['value'] for response in responses]}")
        if len(responses) < steps:
            reply = call("look_up", {"number": len(responses) + 1})
        if fault_calls.happens(case, "cut", line, this):
            return cut(reply)
        if fault_calls.happens(case, "never", line, this):
            return slow(reply, 3600)
        fault_calls.write(case, "end", line, this)
        return reply


def _responses(request: GeminiRequest) -> list[dict[str, Any]]:
    parts = [part for content in request.contents for part in content.get("parts", [])]
    return [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]


def _found(pattern: str, where: str) -> str:
    match = re.search(pattern, where)
    assert match, f"no {pattern} in {where!r}"
    return match[1]


def _end_process(port: int) -> None:
    """Ends the process that holds this local port, as the kernel does when memory runs out, and waits until it is gone."""
    [pid] = {found.pid for found in psutil.net_connections("tcp") if found.laddr and found.laddr.port == port and found.pid}
    process = psutil.Process(pid)
    process.kill()
    try:
        while process.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)
    except psutil.NoSuchProcess:
        pass
