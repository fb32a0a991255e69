"""The model of the fault tests: it writes down each request that reached it, and may end the process that asks."""

from __future__ import annotations

import re
import threading
import time
from typing import Any

import psutil

from tests.faults.dags import fault_calls
from tests.servers.gemini import GeminiRequest, GeminiServer, Reply, call, calls, cut, error, slow, text

LIMIT = 6.0
"""Seconds after which one that was refused with 429 may come again."""


class FaultyModel(GeminiServer):
    """Does what the agent's instruction says: ``case=... line=... plan=T1,T2+T3,helper(),>other``, one turn after the other.

    ``T1`` looks the number 1 up, ``T2+T3`` two in one turn (as lines of their own, ``line-T2``), ``helper()`` calls the tool
    ``helper``, ``>other`` transfers to an agent. Then it tells what was found. A line that ends in ``#`` is one per number in
    the user's words: ``item#`` of "7" is ``item7``.

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
        case, line = _found(r"case=(\S+)", request.system), _found(r"line=(\S+)", request.system)
        if line.endswith("#"):
            line = line[:-1] + _found(r"(\d+)", request.texts[0])
        turns = [content for content in request.contents if content.get("role") == "model"]
        this = f"M{len(turns) + 1}"
        fault_calls.write(case, "begin", line, this)
        if fault_calls.is_due(case, "kill", line, this):
            _end_process(self._asking.port)
            fault_calls.write(case, "kill", line, this)
        if fault_calls.happens(case, "fail", line, this):
            return error(503, message="as the test says")
        if self.outage > time.time():
            fault_calls.write(case, "outage", line, this)
            return error(503, message="as the test says")
        if fault_calls.happens(case, "limit", line, this):
            return error(429, message="as the test says", retry_delay=LIMIT)
        while fault_calls.marked(case, "hold", line, this):
            time.sleep(0.05)
        reply = _planned(request, line)
        if fault_calls.happens(case, "cut", line, this):
            return cut(reply)
        if fault_calls.happens(case, "never", line, this):
            return slow(reply, 3600)
        fault_calls.write(case, "end", line, this)
        return reply


def _planned(request: GeminiRequest, line: str) -> Reply:
    """The next turn of the plan, or what came of it."""
    plan = [turn for turn in _found(r"plan=(\S*)", request.system).split(",") if turn]
    at = sum(any("functionCall" in part for part in content.get("parts", [])) for content in request.contents)
    if at >= len(plan):
        return text(f"{line} found {_values(request)}")
    turn = plan[at]
    if turn.startswith(">"):
        return call("transfer_to_agent", {"agent_name": turn[1:]})
    if turn.endswith("()"):
        return call(turn[:-2], {"request": "Look it up."})
    names = turn.split("+")
    lines = [line] if len(names) == 1 else [f"{line}-{name}" for name in names]
    return calls(("look_up", {"number": int(name[1:]), "line": each}) for name, each in zip(names, lines, strict=True))


def _values(request: GeminiRequest) -> list[Any]:
    parts = [part for content in request.contents for part in content.get("parts", [])]
    answers = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
    return [answer.get("value", answer.get("result")) for answer in answers]


def _found(pattern: str, where: str) -> str:
    match = re.search(pattern, where)
    assert match, f"no {pattern} in {where!r}"
    return match[1]


def _end_process(port: int) -> None:
    """Ends the process that holds this local port, as the kernel does when memory runs out, and waits until it is gone."""
    pids = {found.pid for found in psutil.net_connections("tcp") if found.laddr and found.laddr.port == port and found.pid}
    try:
        process = psutil.Process(pids.pop())
        process.kill()
        while process.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)
    except (KeyError, psutil.NoSuchProcess):
        pass  # another call has ended it
