"""What nodes of other tasks said, given to the session of a task whose nodes can see it.

Most nodes see none of it: an ``LlmAgent`` in its usual mode is shown its input only. Which do is read from the nodes before
anything runs: agents in chat mode and those that are no ``LlmAgent``, sub-agents that may be handed over to, and code that
names the session. The events lie in ADK's session behind the user's message, as they would in one process. They belong to no
invocation, so that ADK's resuming, and its compaction between invocations, do not take them for unfinished work of this one.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.workflow import BaseNode

from adk_airflow.errors import AdkAirflowError
from adk_airflow.runtime.adk import record_form
from adk_airflow.runtime.adk.graph import body_of, function_of

if TYPE_CHECKING:
    from google.adk.apps.app import App
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session

_SESSION = {"session", "add_session_to_memory", "get_invocation_context", "invocation_context", "_invocation_context"}
_ALONE = ("single_turn", "task")
_CREDENTIAL = "adk_request_credential"

# -- who sees it ---------------------------------------------------------------------------------------------


def sees_history(nodes: Iterable[BaseNode], app: App) -> bool:
    """Whether one of these nodes, or a plugin of the App, may look at what other nodes said.

    Args:
        nodes: The nodes; of a nested workflow those in it.
        app: The App that they run in.
    """
    seen: set[int] = set()
    if app.events_compaction_config is not None:
        return True
    return any(_object_sees(plugin, seen) for plugin in app.plugins) or any(_node_sees(node, seen) for node in nodes)


def _node_sees(node: Any, seen: set[int]) -> bool:
    if id(node) in seen:
        return False
    seen.add(id(node))
    body = body_of(node)
    if (graph := getattr(body, "graph", None)) is not None:
        return any(_node_sees(inner, seen) for inner in graph.nodes)
    if isinstance(body, BaseAgent):
        return _agent_sees(body, seen)
    if (tool := getattr(body, "tool", None)) is not None:
        return _tool_sees(tool, seen)
    function = function_of(body)
    return _function_sees(function, seen) if function is not None else _object_sees(body, seen)


def _agent_sees(agent: BaseAgent, seen: set[int], *, inner: bool = False) -> bool:
    if not isinstance(agent, LlmAgent):
        return True
    if agent.mode not in _ALONE and (inner or agent.mode is not None):
        return True
    callbacks = [value for name in type(agent).model_fields if name.endswith("_callback") and (value := getattr(agent, name))]
    functions = [one for value in callbacks for one in (value if isinstance(value, list) else [value])]
    functions += [said for said in (agent.instruction, agent.global_instruction) if callable(said)]
    return (
        any(_function_sees(function, seen) for function in functions)
        or any(_tool_sees(tool, seen) for tool in agent.tools)
        or any(_agent_sees(below, seen, inner=True) for below in agent.sub_agents)
        or _object_sees(agent, seen)
    )


def _tool_sees(tool: Any, seen: set[int]) -> bool:
    function = getattr(tool, "func", None) or (tool if isinstance(tool, types.FunctionType) else None)
    return _function_sees(function, seen) if function is not None else _object_sees(tool, seen)


def _object_sees(thing: Any, seen: set[int]) -> bool:
    """Whether the methods that a class of the user's has do."""
    classes: list[type] = [cls for cls in type(thing).__mro__ if _is_of_user(cls.__module__)]
    return any(_function_sees(value, seen) for cls in classes for value in vars(cls).values())


def _function_sees(function: Any, seen: set[int]) -> bool:
    """Whether a function, or what it calls by name, names the session."""
    while isinstance(function, (functools.partial, types.MethodType, staticmethod, classmethod)):
        function = function.func if isinstance(function, functools.partial) else function.__func__
    if callable(function) and not isinstance(function, (types.FunctionType, type)):
        return not isinstance(function, types.BuiltinFunctionType) and _object_sees(function, seen)
    if not isinstance(function, types.FunctionType) or id(function) in seen or not _is_of_user(function.__module__):
        return False
    seen.add(id(function))
    names = set(_names(function.__code__))
    if names & _SESSION:
        return True
    used = [function.__globals__[name] for name in names if name in function.__globals__]
    for cell in function.__closure__ or ():
        try:
            used.append(cell.cell_contents)
        except ValueError:  # not filled yet
            continue
    return any(_used_sees(value, seen) for value in [*used, getattr(function, "__wrapped__", None)])


def _used_sees(value: Any, seen: set[int]) -> bool:
    if isinstance(value, BaseNode):  # it may run it
        return _node_sees(value, seen)
    if isinstance(value, type):
        return _is_of_user(value.__module__) and any(_function_sees(held, seen) for held in vars(value).values())
    return isinstance(value, (types.FunctionType, types.MethodType)) and _function_sees(value, seen)


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
        elif isinstance(constant, str):
            yield constant


def _is_of_user(module: str | None) -> bool:
    return (module or "").partition(".")[0] not in ("google", "airflow", "adk_airflow", "pydantic", "builtins", "typing")


# -- what they see -------------------------------------------------------------------------------------------


def events_of(session: Session, given: int) -> list[dict[str, Any]]:
    """What was said in a session, as JSON data, for tasks after this one; no request for credentials, and no answer to one.

    Args:
        session: The session at the end.
        given: How many events it was given from other tasks, behind the user's message.
    """
    return [_data(event) for event in session.events[1 + given :] if not _of_credentials(event)]


def _data(event: Event) -> dict[str, Any]:
    try:
        return record_form.of_event(event)
    except AdkAirflowError:  # its output or state has no JSON form, and cannot be seen from another task anyway
        actions = event.actions.model_copy(update={"state_delta": {}})
        return record_form.of_event(event.model_copy(update={"output": None, "actions": actions}))


def _of_credentials(event: Event) -> bool:
    told = [call.name for call in event.get_function_calls()] + [answer.name for answer in event.get_function_responses()]
    return bool(event.actions.requested_auth_configs) or _CREDENTIAL in told


class History(BasePlugin):
    """Puts events of other tasks into the session, once the user's message is in it.

    Args:
        events: In ADK's JSON form, in their order.
        stored: Gives the session as the session service keeps it.
    """

    def __init__(self, events: Sequence[Mapping[str, Any]], stored: Callable[[str, str, str], Session | None]) -> None:
        super().__init__(name="adk_airflow_history")
        self._events = [record_form.event_from(data, "") for data in events]
        self._stored = stored

    async def before_run_callback(self, *, invocation_context: Any) -> None:
        """Puts them there, before any other plugin or node looks."""
        events, self._events = self._events, []
        if not events:
            return
        session = invocation_context.session
        session.events.extend(events)
        kept = self._stored(session.app_name, session.user_id, session.id)
        if kept is not None and kept is not session:
            kept.events.extend(events)


def in_order(tasks: Iterable[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The events of several tasks in the order in which they were said, those of one task in theirs."""
    found: dict[str, tuple[float, dict[str, Any]]] = {}
    for events in tasks:
        latest = 0.0
        for event in events:
            latest = max(latest, float(event.get("timestamp") or 0.0))
            found.setdefault(str(event.get("id")), (latest, event))
    return [event for _, event in sorted(found.values(), key=lambda one: one[0])]
