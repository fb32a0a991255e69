"""Each private name of google-adk that the room `runtime/adk/` relies on: that it is there, and is as it is relied on.

google-adk may change these in any version. When one fails after an update, the message says what of ours breaks.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from typing import Any

import pytest
from fastapi.openapi.models import APIKey
from google.adk.agents.context import Context
from google.adk.apps.app import App
from google.adk.auth.auth_tool import AuthConfig
from google.adk.auth.credential_manager import CredentialManager
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools import FunctionTool
from google.adk.tools.authenticated_function_tool import AuthenticatedFunctionTool
from google.adk.workflow import START, Workflow
from google.genai import types

from adk_airflow.runtime.adk import cli
from tests.adk.rule import ROOM, private_names_in

A_KEY = APIKey.model_validate({"in": "header", "name": "key"})
ADK = f"google-adk {version('google-adk')}"


@dataclass(frozen=True)
class Pin:
    """What is relied on, and what breaks without it.

    Attributes:
        breaks: What of ours then does not work.
        has: Of a function: all its parameters but `self`, in order. Of a class: some of its fields.
    """

    breaks: str
    has: tuple[str, ...] = ()


PARTS = "a task could not run its nodes alone (hosted.py)"
LIMITS = "max_iterations would have no effect (hosted.py)"
ITEMS = "a task could not run some of a parallel worker's items (engine.py)"
WORKERS = "a parallel worker would not be known as one (graph.py)"
SCHEMAS = "what a task reads and gives would not be checked by the node's schemas (graph.py)"
STEPS = "AdkToolOperator and as_node() could not run a tool as a step (tool_node.py, tool_run.py)"
PROJECTS = "load_agents would find no projects (cli.py)"
SERVICES = "[adk_airflow] memory_service_uri and session_service_uri could not name services of google-adk (cli.py)"

RUNS = "runs of nodes would not be recorded (recorded_nodes.py)"
AGAIN = "what an earlier try finished would be done again (recorded_nodes.py)"
ASKING = "a plan would not announce a tool that asks a person (may_ask.py)"

PINS = {
    # -- ADK's engine -----------------------------------------------------------------------------------------
    "google.adk.workflow._workflow:_LoopState": Pin(
        PARTS,
        (
            "interrupt_ids", "join_arrivals", "node_branches", "node_outputs", "nodes", "pending_tasks", "run_counters",
            "trigger_buffer",
        ),
    ),
    "google.adk.workflow._node_state:NodeState": Pin(PARTS, ("status",)),
    "google.adk.workflow._node_status:NodeStatus": Pin(PARTS, ("COMPLETED",)),
    "google.adk.workflow._trigger:Trigger": Pin(PARTS, ("input", "use_sub_branch", "branch")),
    "google.adk.workflow:Workflow._run_impl": Pin(PARTS, ("ctx", "node_input")),
    "google.adk.workflow:Workflow._seed_start_triggers": Pin(PARTS, ("loop_state", "ctx", "node_input")),
    "google.adk.workflow:Workflow._start_node_task": Pin(LIMITS, ("loop_state", "ctx", "node_name", "trigger")),
    "google.adk.workflow:Workflow._handle_completion": Pin(
        "a node that waits for more would not be noticed (hosted.py)", ("loop_state", "node_name", "node", "child_ctx", "ctx")
    ),
    "google.adk.workflow:Workflow._buffer_downstream_triggers": Pin(
        PARTS, ("loop_state", "node_name", "output", "route", "branch")
    ),
    "google.adk.workflow:Workflow._buffer_barrier_trigger": Pin(
        "a join would not get what other tasks gave it (hosted.py)", ("loop_state", "target_name")
    ),
    "google.adk.workflow:Workflow._has_terminal_output": Pin(PARTS, ("loop_state",)),
    "google.adk.workflow:Workflow._finalize": Pin(PARTS, ("loop_state", "ctx")),
    "google.adk.workflow:Workflow._get_static_node_by_name": Pin(ITEMS, ("name",)),
    "google.adk.workflow:Workflow._iter_static_children": Pin("a task would open the toolsets of all nodes (hosted.py)"),
    "google.adk.workflow:Workflow._require_graph": Pin(PARTS),
    "google.adk.agents.context:Context._interrupt_ids": Pin("a question in a part would be missed (engine.py, hosted.py)"),
    "google.adk.agents.context:Context._error": Pin(ITEMS),
    "google.adk.agents.context:Context._error_node_path": Pin("the error of an item would not say which one (engine.py)"),
    "google.adk.agents.context:Context._run_node_internal": Pin(
        ITEMS,
        (
            "node", "node_input", "use_as_output", "run_id", "use_sub_branch", "override_branch", "override_isolation_scope",
            "raise_on_wait", "return_ctx", "resume_inputs", "skip_run_id_validation",
        ),
    ),
    "google.adk.agents.llm.task._finish_task_tool:is_finish_task_terminal_fr": Pin(
        "an agent in task mode that is a root would have no answer (agent_run.py)", ("event",)
    ),
    # -- runs of nodes, recorded and answered again -----------------------------------------------------------
    "google.adk.workflow:Workflow._run_loop": Pin(RUNS, ("loop_state", "ctx")),
    "google.adk.workflow._dynamic_node_scheduler:DynamicNodeScheduler": Pin(RUNS),
    "google.adk.workflow._dynamic_node_scheduler:DynamicNodeScheduler._run_node_internal": Pin(
        RUNS,
        (
            "ctx", "node", "name", "node_path", "run_id", "node_input", "use_as_output", "is_fresh", "use_sub_branch",
            "override_branch", "override_isolation_scope", "resume_inputs",
        ),
    ),
    "google.adk.workflow._dynamic_node_scheduler:DynamicNodeScheduler._record_result": Pin(AGAIN, ("run", "child_ctx", "node")),
    "google.adk.workflow._dynamic_node_scheduler:DynamicNodeRun": Pin(AGAIN, ("state",)),
    "google.adk.workflow.utils._replay_interceptor:InterceptionResult": Pin(
        AGAIN, ("should_run", "output", "route", "transfer_to_agent")
    ),
    "google.adk.workflow.utils._replay_interceptor:create_mock_context": Pin(
        AGAIN, ("parent_ctx", "node", "run_id", "result", "ancestors", "node_path", "branch")
    ),
    "google.adk.agents.context:Context._workflow_scheduler": Pin(RUNS),
    "google.adk.agents.context:Context._output_for_ancestors": Pin(AGAIN),
    "google.adk.agents.invocation_context:InvocationContext._enqueue_event": Pin(AGAIN, ("event",)),
    # -- its nodes and values ---------------------------------------------------------------------------------
    "google.adk.workflow:BaseNode._run_impl": Pin(ITEMS, ("ctx", "node_input")),
    "google.adk.workflow:BaseNode._requires_all_predecessors": Pin("a join would not wait (graph.py)"),
    "google.adk.workflow:BaseNode._validate_input_data": Pin(SCHEMAS, ("data",)),
    "google.adk.workflow:BaseNode._validate_output_data": Pin(SCHEMAS, ("data",)),
    "google.adk.workflow:FunctionNode._func": Pin("a task would not be described by its function's docstring (graph.py)"),
    "google.adk.workflow._node:Node._inner_node": Pin(WORKERS),
    "google.adk.workflow._parallel_worker:_ParallelWorker": Pin(WORKERS, ("max_parallel_workers",)),
    "google.adk.workflow._parallel_worker:_ParallelWorker._node": Pin(WORKERS),
    "google.adk.workflow._parallel_worker:_unwrap_content_input": Pin(
        "a parallel worker would not read a list in a message's text (graph.py)", ("node_input", "inner_node")
    ),
    "google.adk.workflow._workflow:get_common_branch_prefix": Pin("a join would have no branch (graph.py)", ("branches",)),
    "google.adk.events._branch_path:_BranchPath": Pin("a task could not tell the branch of its node (graph.py)"),
    "google.adk.utils._schema_utils:validate_schema": Pin(SCHEMAS, ("schema", "json_text")),
    "google.adk.workflow._errors:DynamicNodeFailError": Pin("a log would end with ADK's wrapper, not the cause (graph.py)"),
    "google.adk.workflow._errors:WorkflowConfigurationError": Pin("two outputs would not be the error of ADK (graph.py)"),
    "google.adk.workflow._tool_node:_ToolNode": Pin(STEPS, ("tool",)),
    "google.adk.workflow._tool_node:_ToolNode._run_impl": Pin(STEPS, ("ctx", "node_input")),
    "google.adk.workflow._tool_node:_ToolNode._take_requested_confirmation": Pin(
        "a step whose tool asks for confirmation would wait for ever (tool_node.py)", ("ctx", "args")
    ),
    # -- what asks a person -----------------------------------------------------------------------------------
    "google.adk.tools.function_tool:FunctionTool._require_confirmation": Pin(ASKING),
    "google.adk.tools.authenticated_function_tool:AuthenticatedFunctionTool._credentials_manager": Pin(ASKING),
    "google.adk.auth.credential_manager:CredentialManager._auth_config": Pin(ASKING),
    # -- its credentials --------------------------------------------------------------------------------------
    "google.adk.auth.auth_credential:_CREDENTIAL_SECRET_KEYS": Pin(
        "Airflow's masker would not know what ADK's auth machinery handles (credentials.py)"
    ),
    # -- its command line -------------------------------------------------------------------------------------
    "google.adk.cli.utils.agent_loader:AgentLoader": Pin(PROJECTS, ("list_agents", "load_agent")),
    "google.adk.cli.utils.envs:load_dotenv_for_agent": Pin(
        "a task would not find its project's .env (cli.py)", ("agent_name", "agent_parent_folder", "filename")
    ),
    "google.adk.cli.service_registry:get_service_registry": Pin(SERVICES),
    "google.adk.cli.utils.service_factory:create_session_service_from_options": Pin(
        SERVICES, ("base_dir", "session_service_uri", "session_db_kwargs", "app_name_to_dir", "use_local_storage")
    ),
}  # fmt: skip


def find(name: str) -> Any:
    """What a name of `PINS` stands for; a private attribute of a pydantic class is found as it is declared."""
    module, _, path = name.partition(":")
    found: Any = import_module(module)
    for part in path.split("."):
        declared = getattr(found, "__private_attributes__", {})
        found = declared[part] if part in declared else getattr(found, part)
    return found


def parts_of(found: Any) -> Iterable[str]:
    if not isinstance(found, type):
        return list(inspect.signature(found).parameters)
    fields = [field.name for field in dataclasses.fields(found)] if dataclasses.is_dataclass(found) else []
    return {*dir(found), *getattr(found, "model_fields", {}), *fields}


@pytest.fixture(scope="module")
def context() -> Context:
    """The context of a node that runs."""
    seen: list[Context] = []

    def look(ctx: Context) -> None:
        seen.append(ctx)

    async def run() -> None:
        workflow = Workflow(name="wf", edges=[(START, look)])
        sessions = InMemorySessionService()  # type: ignore[no-untyped-call]
        await sessions.create_session(app_name="app", user_id="u", session_id="s")
        runner = Runner(app=App(name="app", root_agent=workflow), session_service=sessions)
        message = types.Content(role="user", parts=[types.Part(text="hello")])
        async for _ in runner.run_async(user_id="u", session_id="s", new_message=message):
            pass

    asyncio.run(run())
    return seen[0]


@pytest.mark.parametrize("name", PINS)
def test_it_is_there_and_as_it_is_relied_on(name: str, context: Context) -> None:
    pin = PINS[name]
    owner, _, attribute = name.rpartition(".")
    made = {
        "google.adk.agents.context:Context": lambda: context,
        "google.adk.tools.function_tool:FunctionTool": lambda: FunctionTool(find),
        "google.adk.tools.authenticated_function_tool:AuthenticatedFunctionTool": lambda: AuthenticatedFunctionTool(func=find),
        "google.adk.auth.credential_manager:CredentialManager": lambda: CredentialManager(AuthConfig(auth_scheme=A_KEY)),
    }
    if owner in made and attribute in vars(made[owner]()):
        return
    try:
        found = find(name)
    except (ImportError, AttributeError):
        pytest.fail(f"{ADK} has no {name}: {pin.breaks}", pytrace=False)
    if isinstance(found, type):
        missing = set(pin.has) - set(parts_of(found))
        assert not missing, f"{ADK}: {name} has no {', '.join(sorted(missing))}: {pin.breaks}"
    elif inspect.isfunction(found):
        parameters = [part for part in parts_of(found) if part != "self"]
        assert parameters == list(pin.has), f"{ADK}: {name} takes {parameters}, not {list(pin.has)}: {pin.breaks}"


def test_each_private_name_of_the_room_is_pinned() -> None:
    used = {name for path in ROOM.glob("*.py") for name in private_names_in(path)}
    pinned = {name.rpartition(":" if "." not in name.partition(":")[2] else ".")[2] for name in PINS}

    assert used - pinned == set(), "pin them in PINS: what is relied on, and what breaks without"
    assert pinned - used == set(), "the room does not use them any more"


def test_the_branch_of_a_run_is_that_of_its_trigger_and_its_name_and_number() -> None:
    branch_path = find("google.adk.events._branch_path:_BranchPath")

    assert str(branch_path.create_sub_branch("a@1", name="b", run_id="2")) == "a@1.b@2", (
        f"{ADK}: branches of tasks would differ"
    )


def test_a_loader_of_projects_says_where_they_are(tmp_path: Any) -> None:
    loader = find("google.adk.cli.utils.agent_loader:AgentLoader")(str(tmp_path))

    assert loader.agents_dir == str(tmp_path), f"{ADK}: {PROJECTS}"


def test_the_loggers_of_errors_are_those_of_google_adk() -> None:
    import google.adk.runners
    import google.adk.workflow._node_runner

    found: list[logging.Logger] = [google.adk.workflow._node_runner.logger, google.adk.runners.logger]

    assert [logger.name for logger in found] == list(cli._LOGGERS_OF_ERRORS), f"{ADK}: `adk-airflow run` would show tracebacks"
