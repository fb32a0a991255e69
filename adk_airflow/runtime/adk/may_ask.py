"""What a node declares that may ask a person, read from the node, its tools and its sub-agents before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.adk.agents.base_agent import BaseAgent
from google.adk.auth.auth_tool import AuthConfig
from google.adk.tools.agent_tool import AgentTool
from google.adk.workflow import BaseNode

from adk_airflow.runtime.adk.graph import body_of


def questions_of(node: BaseNode) -> list[str]:
    """What may ask a person as ``node`` runs, a phrase each; nothing where it is not declared.

    What a function asks in its body (``RequestInput``, ``tool_context.request_confirmation()``) cannot be seen. The nodes of a
    nested workflow are not looked at, unless it is what a parallel worker runs.
    """
    body: Any = body_of(node)
    if body is not node and getattr(body, "graph", None) is not None:
        return list(dict.fromkeys(question for inner in body.graph.nodes for question in questions_of(inner)))
    found = ["asks a person to confirm"] if getattr(body, "require_confirmation", None) else []
    found += ["asks a person for credentials"] if getattr(body, "auth_config", None) else []
    found += _of_tool(body.tool) if hasattr(body, "tool") else []
    found += _of_agent(body, set()) if isinstance(body, BaseAgent) else []
    return list(dict.fromkeys(found))


def _of_agent(agent: Any, seen: set[int]) -> Iterator[str]:
    """An agent, what it may transfer to, and the agents that are its tools."""
    if id(agent) in seen:
        return
    seen.add(id(agent))
    if getattr(agent, "mode", None) == "task":
        yield f"agent {agent.name!r} is in task mode and may ask a person"
    for tool in getattr(agent, "tools", None) or ():
        if isinstance(tool, AgentTool):
            yield from _of_agent(tool.agent, seen)
        else:
            yield from _of_tool(tool)
    for inner in getattr(agent, "sub_agents", None) or ():
        yield from _of_agent(inner, seen)


def _of_tool(tool: Any) -> Iterator[str]:
    """A tool or a toolset; a plain function declares nothing."""
    name = getattr(tool, "name", None) or type(tool).__name__
    if getattr(tool, "is_long_running", False):
        yield f"tool {name!r} waits for a person or another system"
    if getattr(tool, "_require_confirmation", False):
        yield f"tool {name!r} asks a person to confirm"
    if _wants_login(tool):
        yield f"tool {name!r} may ask a person for credentials"


def _wants_login(tool: Any) -> bool:
    """Whether the tool needs a credential that only a person can give: OAuth2 or OpenID Connect without a service account."""
    config = getattr(getattr(tool, "_credentials_manager", None), "_auth_config", None)
    if not isinstance(config, AuthConfig) or (config.raw_auth_credential and config.raw_auth_credential.service_account):
        return False
    return str(getattr(getattr(config.auth_scheme, "type_", ""), "value", "")) in ("oauth2", "openIdConnect")
