"""A tiny MCP server on stdio: `python mcp_arithmetic.py LOG`. It writes its process id to LOG when it starts, and its waits."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from mcp.server.mcpserver import MCPServer

server = MCPServer("arithmetic")


def note(text: str) -> None:
    """Appends a line to the log."""
    with Path(sys.argv[1]).open("a") as log:
        log.write(f"{text}\n")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def divide(a: int, b: int) -> float:
    """Divides two numbers."""
    return a / b


@server.tool()
def wait(seconds: float) -> str:
    """Waits."""
    note("waiting")
    time.sleep(seconds)
    return "waited"


if __name__ == "__main__":
    note(str(os.getpid()))
    server.run()
