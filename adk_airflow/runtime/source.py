"""Finds the workflow that a task belongs to.

An operator holds a reference, a plain string, so that it can be serialized, copied and mapped: ``package.module:attribute``
for a workflow that is imported, or a key that the DAG file registered for an object it made itself.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from adk_airflow.errors import AgentLoadError, WorkflowLoadError
from adk_airflow.runtime.adk.missing_a2a import fail_at_once

if TYPE_CHECKING:
    from google.adk.apps.app import App
    from google.adk.workflow import Workflow

_LIVE = "live:"
_registered: dict[str, Any] = {}


@dataclass(frozen=True)
class Source:
    """A workflow and the ADK App it runs in.

    Attributes:
        workflow: The workflow, or one nested in it; for ``AdkAgentOperator`` the agent in its place.
        app: The App.
        parents: For a nested workflow: the workflows around it, outermost first.
    """

    workflow: Workflow
    app: App
    parents: tuple[Workflow, ...] = ()

    def enter(self, scope: Sequence[str]) -> Source:
        """The workflow that is nested at ``scope``: the names of the workflows on the way to it."""
        found = self
        for name in scope:
            assert found.workflow.graph is not None
            inner: Any = next(node for node in found.workflow.graph.nodes if node.name == name)
            found = Source(inner, self.app, (*found.parents, found.workflow))
        return found


def register(key: str, source: Any) -> str:
    """Makes a reference for a workflow given as an object; ``key`` is what people know it by, such as the DAG's id.

    A task's process runs the same DAG file and so registers the same keys before the task runs. Another object under a key
    that is taken, as when two DAGs of one test process have the same id, gets a number.
    """
    free = (key if number == 1 else f"{key}#{number}" for number in itertools.count(1))
    name = next(name for name in free if _registered.setdefault(name, source) is source)
    return _LIVE + name


def load(reference: str, *, app_name: str = "") -> Source:
    """The workflow behind a reference.

    Args:
        reference: The reference.
        app_name: The App's name where there is no App. Empty: the workflow's.

    Raises:
        WorkflowLoadError: Nothing is there, google-adk refuses it, or it is no workflow; says which and why.
    """
    if reference.startswith(_LIVE):
        key = reference.removeprefix(_LIVE)
        if key not in _registered:
            raise WorkflowLoadError(
                f"the workflow of {key!r} is not known in this process: the DAG file that makes it has not run here"
            )
        return resolve(_registered[key], described_as=key, app_name=app_name)
    fail_at_once()  # before the import that builds the nodes
    return resolve(import_object(reference), described_as=reference, app_name=app_name)


def import_object(reference: str, *, what: str = "workflow", raises: type[Exception] = WorkflowLoadError) -> Any:
    """What ``package.module:attribute`` names.

    Args:
        reference: The name.
        what: What it should be, for the error.
        raises: The error's class; raised when nothing is there or its module cannot be imported.
    """
    module_name, separator, attribute = reference.partition(":")
    if not (module_name and separator and attribute) or module_name.startswith("."):
        raise raises(
            f"{what} {reference!r} is not of the form 'package.module:attribute', such as 'my_agents.router:root_agent'"
        )
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(error.name + ".")):
            raise raises(
                f"{what} {reference!r}: there is no module {error.name!r}. Put it beside the DAG file or install it."
            ) from error
        raise raises(f"{what} {reference!r} cannot be imported: {error}") from error
    except (Exception, SystemExit) as error:
        raise raises(f"{what} {reference!r} {_reason(error)}") from error
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise raises(f"{what} {reference!r}: {module_name} has no attribute {attribute!r}")
        found = getattr(found, name)
    return found


def resolve(source: Any, *, described_as: str, app_name: str = "") -> Source:
    """Makes a Source of what a user gave: a Workflow, an App around one, or a function that returns either.

    Args:
        source: What the user gave.
        described_as: How errors call it.
        app_name: The App's name where there is no App. Empty: the workflow's.

    Raises:
        WorkflowLoadError: It is something else, or google-adk refuses it.
    """
    from google.adk.apps.app import App
    from google.adk.workflow import BaseNode, Workflow

    fail_at_once()
    if callable(source) and not isinstance(source, (BaseNode, App, type)):
        try:
            source = source()
        except (Exception, SystemExit) as error:
            raise WorkflowLoadError(f"workflow {described_as!r} {_reason(error)}") from error
    app = source if isinstance(source, App) else None
    root = app.root_agent if app is not None else source
    if not isinstance(root, Workflow):
        advice = (
            "Make it a node: Workflow(name=..., edges=[('START', agent)])."
            if isinstance(root, BaseNode)
            else "Give a google.adk Workflow, an App whose root_agent is one, or 'package.module:attribute'."
        )
        raise WorkflowLoadError(f"workflow {described_as!r} is no Workflow but {_what(root)}. {advice}")
    if root.graph is None:
        raise WorkflowLoadError(f"workflow {root.name!r} has no edges: there is nothing to run")
    if app is None:
        # As the Runner does for a bare workflow: its name need not be a valid App name.
        app = App.model_construct(name=app_name or root.name, root_agent=root, plugins=[])
    return Source(root, app)


def load_agent(agent: Any, *, app_name: str) -> Source:
    """The agent that a reference names, or that was given as an object, in place of a workflow.

    Args:
        agent: ``package.module:attribute``, or the object: an agent, an App around one, or a function that returns either.
        app_name: The App's name where there is no App.

    Raises:
        AgentLoadError: Nothing is there, google-adk refuses it, or it is no agent; says which and why.
    """
    from google.adk.agents.base_agent import BaseAgent
    from google.adk.apps.app import App
    from google.adk.workflow import BaseNode

    described_as = agent if isinstance(agent, str) else getattr(agent, "name", agent)
    if isinstance(agent, str):
        agent = import_object(agent, what="agent", raises=AgentLoadError)
    if callable(agent) and not isinstance(agent, (BaseNode, App, type)):
        try:
            agent = agent()
        except (Exception, SystemExit) as error:
            raise AgentLoadError(f"agent {described_as!r} {_reason(error)}") from error
    root: Any = agent.root_agent if isinstance(agent, App) else agent
    if not isinstance(root, BaseAgent):
        advice = (
            "Use AdkDag, AdkTaskGroup or AdkWorkflowOperator for it."
            if isinstance(root, BaseNode)
            else "Give a google.adk agent, an App whose root_agent is one, or 'package.module:attribute'."
        )
        raise AgentLoadError(f"agent {described_as!r} is no agent but {_what(root)}. {advice}")
    app = agent if isinstance(agent, App) else App.model_construct(name=app_name, root_agent=root, plugins=[])
    return Source(cast("Workflow", root), app)


def _what(found: Any) -> str:
    if found is None:
        return "None"
    if isinstance(found, type):
        return f"the class {found.__name__}, not an instance of it"
    name = getattr(found, "name", "")
    return f"a {type(found).__name__}" + (f" {name!r}" if name else "")


def _reason(error: BaseException) -> str:
    """Why it could not be made, in google-adk's own words where it is google-adk that refuses it."""
    from adk_airflow.runtime.adk import refusal

    return refusal.reason(error)
