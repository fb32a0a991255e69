"""The user's message as a workflow's START gets it: after the App's plugins had their say (``on_user_message_callback``)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

from google.adk.agents.context import Context
from google.adk.apps.app import App
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.workflow import BaseNode
from pydantic import PrivateAttr

from adk_airflow.runtime.adk.runner import Run, RunResult, drive
from adk_airflow.runtime.wire.envelope import Firing


class _Receiver(BaseNode):
    """Stands in for the workflow and notes what ADK's Runner gives it."""

    _result: RunResult = PrivateAttr()

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        self._result.firings.append(Firing(self.name, node_input))
        return
        yield  # makes this an async generator, as ADK expects


def plugins_see_messages(app: App) -> bool:
    """Whether a plugin of the App may change the user's message."""
    callbacks = [plugin.on_user_message_callback for plugin in app.plugins]
    return any(getattr(callback, "__func__", None) is not BasePlugin.on_user_message_callback for callback in callbacks)


async def receive(run: Run) -> RunResult:
    """Lets the plugins handle the run's message; the single firing holds it as the workflow would get it.

    No firing: a plugin's ``before_run_callback`` ends every run at once.
    """
    result = RunResult(state=run.state)
    receiver = _Receiver(name=run.workflow.name)
    receiver._result = result
    await drive(replace(run, remember=False, on_event=None), receiver, result)
    return result
