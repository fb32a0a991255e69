"""Finds the workflow that a task belongs to.

An operator holds a reference, a plain string, so that it can be serialized, copied and mapped: ``package.module:attribute``
for a workflow that is imported, or a key that the DAG file registered for an object it made itself.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import inspect
import itertools
import os
import pkgutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from adk_airflow.errors import AgentLoadError, WorkflowLoadError
from adk_airflow.runtime import failures
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


def check_unchanged(workflow: Workflow, fingerprint: str) -> None:
    """Refuses a workflow whose nodes or edges are not those that its DAG was made of.

    Raises:
        WorkflowLoadError: They are others.
    """
    from adk_airflow.runtime.adk import graph

    if graph.fingerprint(workflow) != fingerprint:
        raise WorkflowLoadError(
            f"workflow {workflow.name!r} has other nodes or edges than its DAG was made of, although its files are the same:"
            " they depend on something else, such as the environment. Have the DAG made from the workflow each time:"
            " [adk_airflow] save_plans = False"
        )


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
        missing = error.name or ""
        if missing and (module_name == missing or module_name.startswith(missing + ".")):
            raise raises(f"{what} {reference!r}: there is no module {missing!r}. {_near_module(missing)}") from error
        raise raises(f"{what} {reference!r} {_reason(error)}. Install it where this runs.") from error
    except (Exception, SystemExit) as error:
        raise raises(f"{what} {reference!r} {_reason(error)}") from error
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise raises(
                f"{what} {reference!r}: {module_name} has no attribute {attribute!r}. {_near_attribute(found, name)}".strip()
            )
        found = getattr(found, name)
    return found


def _near_module(name: str) -> str:
    """What a missing module could be a misspelling of, and where it was looked for."""
    around, _, last = name.rpartition(".")
    package = sys.modules.get(around)
    if package is not None and not hasattr(package, "__path__"):
        return f"{around!r} is a module, not a package: {getattr(package, '__file__', None) or 'built in'}."
    # Python's own modules and those of installed packages are not the user's.
    own = [
        path or os.getcwd()
        for path in sys.path
        if os.path.isdir(path or ".") and not failures.is_library(os.path.join(path, ""))
    ]
    places = list(dict.fromkeys(map(os.path.abspath, getattr(package, "__path__", None) or own)))
    names = {module.name for module in pkgutil.iter_modules(places)}
    names |= {entry.name for place in places for entry in os.scandir(place) if entry.is_dir() and entry.name.isidentifier()}
    near = difflib.get_close_matches(last, names, n=1)
    hint = f"Did you mean {'.'.join(filter(None, [around, near[0]]))!r}? " if near else ""
    return f"{hint}It was looked for in {', '.join(places) or 'no folder'}{'' if around else ' and the installed packages'}."


def _near_attribute(found: Any, name: str) -> str:
    """What a missing attribute of a module or class could be a misspelling of, and what could have been meant."""
    from google.adk.apps.app import App
    from google.adk.workflow import BaseNode

    names = [other for other in vars(found) if not other.startswith("_")] if hasattr(found, "__dict__") else []
    meant = [other for other in names if isinstance(getattr(found, other, None), (App, BaseNode))]
    near = difflib.get_close_matches(name, meant, n=1) or difflib.get_close_matches(name, names, n=1)
    if near:
        return f"Did you mean {near[0]!r}?"
    return f"It has: {', '.join(meant)}." if meant else ""


def resolve(source: Any, *, described_as: str, app_name: str = "") -> Source:
    """Makes a Source of what a user gave: a Workflow, an App around one, or a function that returns either.

    Args:
        source: What the user gave.
        described_as: How errors call it.
        app_name: The App's name where there is no App. Empty: the workflow's.

    Raises:
        WorkflowLoadError: It is something else, or google-adk refuses it.
    """
    from google.adk.agents.base_agent import BaseAgent
    from google.adk.apps.app import App
    from google.adk.workflow import BaseNode, Workflow

    fail_at_once()
    if callable(source) and not isinstance(source, (BaseNode, App, type)):
        source = _called(source, f"workflow {described_as!r}", WorkflowLoadError)
    app = source if isinstance(source, App) else None
    root = app.root_agent if app is not None else source
    if not isinstance(root, Workflow):
        advice = (
            "An agent alone is one task: AdkAgentOperator(agent=...), or load_agents() for a folder of them. To have it as the"
            " node of a workflow: Workflow(name=..., edges=[('START', agent)])."
            if isinstance(root, BaseAgent)
            else "Make it a node: Workflow(name=..., edges=[('START', node)])."
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
        agent = _called(agent, f"agent {described_as!r}", AgentLoadError)
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


def _called(make: Callable[[], Any], what: str, raises: type[Exception]) -> Any:
    """What a function gives that makes a workflow or an agent.

    Raises:
        Exception: ``raises``, beginning with ``what``: it takes arguments, or fails.
    """
    with contextlib.suppress(TypeError, ValueError):  # of a callable that has no signature
        parameters = inspect.signature(make).parameters.values()
        needed = [
            one.name for one in parameters if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        ]
        if needed:
            raise raises(
                f"{what} is a function that needs arguments ({', '.join(needed)}), and it is called without. Name the object"
                " itself, or a function that makes it without arguments."
            )
    try:
        return make()
    except (Exception, SystemExit) as error:
        raise raises(f"{what} {_reason(error)}") from error


def _what(found: Any) -> str:
    if found is None:
        return "None"
    if isinstance(found, type):
        return f"the class {found.__name__}, not an instance of it"
    name = getattr(found, "name", "")
    return f"a {type(found).__name__}" + (f" {name!r}" if name else "")


def _reason(error: BaseException) -> str:
    """Why it could not be made, and where; in google-adk's own words where it is google-adk that refuses it."""
    from adk_airflow.runtime.adk import refusal

    place = failures.place_of(error)
    return refusal.reason(error) + (f" ({place})" if place else "")
