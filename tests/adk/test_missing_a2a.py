"""Without the extra ``a2a`` what ADK tries in vain to import for every node fails at once, and with the error it had."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

# `a2a` counts as not installed. `asked` are the names that Python searched for and, at the end of all finders, did not find.
WITHOUT = """
import json, sys
sys.modules["a2a"] = None
asked = []
class Last:
    def find_spec(self, name, path=None, target=None):
        asked.append(name)
sys.meta_path.append(Last())

def error():
    try:
        from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
    except ImportError as error:
        return [type(error).__name__, error.name]
"""


def python(code: str) -> Any:
    """The JSON in the last line that a new process without `a2a` prints."""
    done = subprocess.run([sys.executable, "-c", WITHOUT + code], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_the_error_is_pythons_and_nothing_is_searched_or_run_for_it() -> None:
    before, after, searched, ran = python("""
from adk_airflow.runtime.adk.missing_a2a import fail_at_once
before = error()
fail_at_once()
fail_at_once()
error()
asked.clear()
after = error()
print(json.dumps([before, after, asked, "google.adk.agents.remote_a2a_agent" in sys.modules]))""")

    assert before[0] == "ModuleNotFoundError"
    assert after == ["ModuleNotFoundError", "a2a"]
    assert searched == []
    assert not ran


def test_where_it_comes_to_the_path_later_it_is_found(tmp_path: Path) -> None:
    (tmp_path / "a2a").mkdir()
    (tmp_path / "a2a" / "__init__.py").write_text("raise ImportError('the one of the path', name='found')")
    found = python(f"""
from adk_airflow.runtime.adk.missing_a2a import fail_at_once
fail_at_once()
before = error()
sys.path.append({str(tmp_path)!r})
sys.path[:] = [entry for entry in sys.path if "site-packages" not in entry or entry == {str(tmp_path)!r}] + [
    entry for entry in sys.path if "site-packages" in entry
]
del sys.modules["a2a"]
print(json.dumps([before, error()]))""")

    assert found == [["ModuleNotFoundError", "a2a"], ["ImportError", "found"]]


def test_a_node_run_searches_for_nothing_in_vain() -> None:
    code = """
import asyncio
from google.adk import Context
from google.adk.runners import InMemoryRunner
from google.adk.workflow import Workflow, node
from google.genai import types
from adk_airflow.runtime.adk.missing_a2a import fail_at_once

fail_at_once()

async def step(ctx: Context) -> str:
    return await ctx.run_node(node(lambda: "done", name="inside"))

async def run() -> list:
    workflow = Workflow(name="wf", edges=[("START", node(step, name="step", rerun_on_resume=True))])
    runner = InMemoryRunner(node=workflow, app_name="app")
    await runner.session_service.create_session(app_name="app", user_id="u", session_id="s")
    message = types.Content(role="user", parts=[types.Part(text="go")])
    return [event.output async for event in runner.run_async(user_id="u", session_id="s", new_message=message)]

asyncio.run(run())
asked.clear()
outputs = asyncio.run(run())
print(json.dumps([outputs[-1], asked]))"""

    assert python(code) == ["done", []]
