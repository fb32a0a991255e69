"""Any other MCP server, through ADK's own McpToolset: its process starts in the task that uses it and ends with it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from adk_airflow_toolbox import ToolsetTool
from google.adk.agents import LlmAgent
from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
from google.adk.workflow import Workflow, node
from mcp import StdioServerParameters

from adk_airflow.testing import WorkflowRun, run_workflow
from tests.servers.gemini import GeminiRequest, GeminiServer, call, error, text

Gemini = Callable[[Callable[[GeminiRequest], Any]], GeminiServer]
RunUntil = Callable[..., WorkflowRun]
SERVER = Path(__file__).with_name("mcp_arithmetic.py")


class Arithmetic:
    """Makes toolsets of the server and knows the processes that were started for them."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def toolset(self) -> McpToolset:
        command = StdioServerParameters(command=sys.executable, args=[str(SERVER), str(self._log)])
        return McpToolset(connection_params=StdioConnectionParams(server_params=command, timeout=60))

    def tool(self, name: str) -> ToolsetTool:
        return ToolsetTool(self.toolset, name)

    @property
    def started(self) -> list[int]:
        return [int(line) for line in self._lines if line.isdecimal()]

    @property
    def waits(self) -> bool:
        return "waiting" in self._lines

    @property
    def _lines(self) -> list[str]:
        return self._log.read_text().split() if self._log.exists() else []

    @property
    def running(self) -> list[int]:
        mine = {process.pid for process in psutil.Process().children(recursive=True)}
        return [pid for pid in self.started if pid in mine and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE]


@pytest.fixture
def arithmetic(tmp_path: Path) -> Arithmetic:
    return Arithmetic(tmp_path / "started.log")


def alone(step: Any) -> Workflow:
    return Workflow(name="sums", edges=[("START", step)])


def calculator(arithmetic: Arithmetic, **fields: Any) -> LlmAgent:
    return LlmAgent(name="calculator", model="gemini-2.5-flash", tools=[arithmetic.toolset()], **fields)


def test_making_a_workflow_starts_no_process(arithmetic: Arithmetic) -> None:
    alone(calculator(arithmetic))
    alone(node(arithmetic.tool("add")))
    assert arithmetic.started == []


def test_an_agent_uses_the_server_and_its_process_ends_with_the_task(arithmetic: Arithmetic, gemini: Gemini) -> None:
    running: list[int] = []

    def script(request: GeminiRequest) -> Any:
        running[:] = arithmetic.running
        if request.function_responses:
            return text(f"It is {request.function_responses[0]['response']['structuredContent']['result']}.")
        return call("add", {"a": 2, "b": 40})

    model = gemini(script)
    run = run_workflow(alone(calculator(arithmetic)), input="2 + 40?")
    assert (run.state, run.output) == ("success", "It is 42.")
    assert set(model.requests[0].tools) == {"add", "divide", "wait"}
    assert running == arithmetic.started
    assert (len(arithmetic.started), arithmetic.running) == (1, [])


def test_its_process_ends_when_the_agent_fails(arithmetic: Arithmetic, gemini: Gemini) -> None:
    gemini(lambda request: error(400, "INVALID_ARGUMENT", "no"))
    run = run_workflow(alone(calculator(arithmetic)), input="?")
    assert (run.state, run.error and run.error[0]) == ("failed", "ClientError")
    assert (len(arithmetic.started), arithmetic.running) == (1, [])


def test_its_process_ends_when_the_agent_is_cancelled(arithmetic: Arithmetic, gemini: Gemini, run_until: RunUntil) -> None:
    gemini(lambda request: call("wait", {"seconds": 600}))
    run_until(calculator(arithmetic), lambda: arithmetic.waits)
    assert (len(arithmetic.started), arithmetic.running) == (1, [])


def test_a_tool_of_the_server_is_a_step(arithmetic: Arithmetic) -> None:
    run = run_workflow(alone(node(arithmetic.tool("add"))), input={"a": 1}, state={"b": 2})
    assert run.state == "success"
    assert run.output["structuredContent"] == {"result": 3}
    assert (len(arithmetic.started), arithmetic.running) == (1, [])


def test_what_the_tool_answers_to_a_wrong_call_is_the_steps_output(arithmetic: Arithmetic) -> None:
    run = run_workflow(alone(node(arithmetic.tool("divide"))), input={"a": 1, "b": 0})
    assert run.state == "success"
    assert run.output["isError"] is True
    assert arithmetic.running == []


def test_a_tool_that_the_server_does_not_have_fails_the_step(arithmetic: Arithmetic) -> None:
    run = run_workflow(alone(node(arithmetic.tool("multiply"))), input={})
    assert run.error == ("ToolNotFoundError", "McpToolset has no tool 'multiply'. It has: add, divide, wait.")
    assert (len(arithmetic.started), arithmetic.running) == (1, [])


def test_the_process_of_a_step_ends_when_it_is_cancelled(arithmetic: Arithmetic, run_until: RunUntil) -> None:
    run_until(node(arithmetic.tool("wait")), lambda: arithmetic.waits, {"seconds": 600})
    assert (len(arithmetic.started), arithmetic.running) == (1, [])


def test_a_server_that_cannot_start_fails_the_step(tmp_path: Path) -> None:
    def broken() -> McpToolset:
        command = StdioServerParameters(command=sys.executable, args=[str(tmp_path / "nothing.py")])
        return McpToolset(connection_params=StdioConnectionParams(server_params=command, timeout=30))

    run = run_workflow(alone(node(ToolsetTool(broken, "add"))), input={"a": 1, "b": 2})
    assert (run.state, run.error and run.error[0]) == ("failed", "ConnectionError")
