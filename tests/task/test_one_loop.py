"""A task has one event loop: what a plugin opens when the message comes, a node and the plugin's other callbacks can use."""

from __future__ import annotations

import asyncio
from typing import Any

from google.adk import Workflow
from google.adk.apps.app import App
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.workflow import START, node

from adk_airflow import AdkDag
from adk_airflow.testing import run_dag


class Opens(BasePlugin):
    """Opens something that belongs to the event loop, once a process, as a client session does."""

    def __init__(self) -> None:
        super().__init__(name="opens")
        self.server: asyncio.Server | None = None
        self.calls = 0

    async def on_user_message_callback(self, *, invocation_context: Any, user_message: Any) -> Any:
        self.calls += 1
        if self.server is None:
            self.server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
        return None


def test_what_a_plugin_opened_when_the_message_came_can_be_used_by_the_node() -> None:
    plugin = Opens()

    async def ask(node_input: str) -> str:
        assert plugin.server is not None
        reader, writer = await asyncio.open_connection(*plugin.server.sockets[0].getsockname())
        assert await reader.read() == b""  # answered on the loop that the server was opened on
        writer.close()
        plugin.server.close()
        return node_input.upper()

    app = App(name="opening", root_agent=Workflow(name="wf", edges=[(START, node(ask))]), plugins=[plugin])
    run = run_dag(AdkDag(app, dag_id="one_loop"), conf={"input": "hi"})

    assert (run.state, run.output) == ("success", "HI")
    assert plugin.calls == 2
