"""The model of the fault tests: it writes down each request that reached it, and may end the process that asks."""

from __future__ import annotations

import re
import threading
from typing import Any

import psutil

from tests.faults.dags import fault_calls
from tests.servers.gemini import GeminiRequest, GeminiServer, Reply, call, error, text


class FaultyModel(GeminiServer):
    """Lets an agent look up as many numbers as its instruction says (``steps=5``), one after the other, then answers.

    The instruction names the case and the agent too: ``case=... line=...``.
    """

    def __init__(self) -> None:
        super().__init__(self._reply)
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
        fault_calls.write(case, "end", line, this)
        if len(responses) < steps:
            return call("look_up", {"number": len(responses) + 1})
        return text(f"{line} found {[response['value'] for response in responses]}")


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
            threading.Event().wait(0.01)
    except psutil.NoSuchProcess:
        pass
