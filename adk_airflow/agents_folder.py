"""``load_agents``: every ADK project in a folder as a DAG, by one line in a DAG file.

google-adk's own ``AgentLoader`` finds and imports the projects, as for ``adk web`` and ``adk run``, ``.env`` files included.
While a DAG file is parsed, what one project's ``.env`` sets does not reach the next project or stay in the process; the task
that runs a project's agent has it in its environment. In a task only the project it belongs to is imported.
"""

from __future__ import annotations

import asyncio
import difflib
import itertools
import os
import re
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, BaseOperator, get_parsing_context

from adk_airflow.errors import AgentsFolderError
from adk_airflow.runtime import failures
from adk_airflow.runtime.project import Project, own_environment

BROKEN = "broken_project"
BROKEN_TAG = "broken-adk-project"

# What importing a project can fail with; Airflow's limit for a DAG file and an interrupt are the whole file's.
_FAILURES = (Exception, SystemExit, asyncio.CancelledError)

# What AdkDag and AdkAgentOperator take and a DAG does not.
_OF_AGENTS = ("mode", "nodes", "llm_conn_id", "session_id")


def load_agents(
    folder: str | os.PathLike[str],
    *,
    agents: Mapping[str, Mapping[str, Any]] | None = None,
    **dag_arguments: Any,
) -> dict[str, DAG]:
    """Makes a DAG of each ADK project in a folder; called at the top of a DAG file.

    A project is a folder as ``adk create`` makes it: ``agent.py`` or ``__init__.py`` with a ``root_agent`` or an ``app``, or a
    ``root_agent.yaml``. The DAG is named like the folder. A ``Workflow`` becomes an ``AdkDag``; any other agent a DAG
    with one ``AdkAgentOperator``, whose message is the run's ``params["input"]``. Airflow finds the DAGs by itself, if only
    the file contains the word "dag", as in ``dags = load_agents(...)``.

    A project that cannot be loaded does not take the others down: its DAG is there, tagged ``broken-adk-project``, shows the
    error as its documentation, and every run of it fails with that error.

    Args:
        folder: The folder with the projects, or one project; relative to the DAG file.
        agents: Per project, arguments that add to or replace those below; ``dag_id`` among them.
        **dag_arguments: For every project: arguments of ``airflow.sdk.DAG``, and ``llm_conn_id``, ``mode`` (for workflows).

    Returns:
        The DAGs by project, broken ones included. In a task: only the one it belongs to.

    Raises:
        AgentsFolderError: There is no such folder, no project in it, or ``agents`` names one that is not there.
    """
    from adk_airflow.runtime.adk.cli import ProjectLoader

    path = _resolve(folder, sys._getframe(1).f_globals.get("__file__"))
    if not path.is_dir():
        raise AgentsFolderError(f"load_agents: there is no folder {path}. A relative path is relative to the DAG file.")
    if "dag_id" in dag_arguments:
        raise AgentsFolderError("load_agents: each project's DAG has an id of its own. Give dag_id per project, in agents=.")
    loader = ProjectLoader(path)
    projects = {
        name: Project(loader, name) for name in sorted({*loader.names(), *(_unreadable(path) if loader.folder == path else ())})
    }
    if not projects:
        raise AgentsFolderError(
            f"load_agents: no ADK project is in {path}. A project is a folder with an agent.py, a root_agent.yaml or an"
            " __init__.py, as 'adk create' makes it."
        )
    _check_names(path, projects, agents or {})
    for project in projects.values():
        project.keep_other_module()
    context = get_parsing_context()
    dags = {}
    for name, wanted in _wanted(projects, agents or {}, dag_arguments).items():
        if context.dag_id is not None and context.dag_id != wanted.dag_id:
            continue
        if context.task_id == BROKEN:
            dags[name] = _broken_dag(wanted, None)
        elif context.dag_id is not None:
            dags[name] = wanted.make_dag()
        else:
            try:
                if not wanted.project.is_none():
                    dags[name] = wanted.make_dag()
            except _FAILURES as error:
                dags[name] = _broken_dag(wanted, error)
    return dags


@dataclass(frozen=True)
class _Wanted:
    """The DAG that is to be made of a project.

    Attributes:
        project: The project.
        dag_id: The DAG's id.
        arguments: Its arguments, ``common`` ones included.
        common: Those of the DAGs of all projects.
        fault: Why there can be no such DAG; None: nothing is known against it.
    """

    project: Project
    dag_id: str
    arguments: Mapping[str, Any]
    common: Mapping[str, Any]
    fault: AgentsFolderError | None = None

    def make_dag(self) -> DAG:
        """Makes the DAG.

        Raises:
            AgentsFolderError: There can be no such DAG.
            Exception: Whatever the project, google-adk or Airflow fails with.
        """
        if self.fault is not None:
            raise self.fault
        return _make_dag(self.project, self.dag_id, self.arguments)


class BrokenProjectOperator(BaseOperator):
    """Stands for a project that could not become a DAG when its DAG file was parsed, and fails with the reason.

    Args:
        project: The project's name.
        make_dag: Tries once more, so that the log shows where it fails.
    """

    custom_operator_name = "broken ADK project"
    ui_color = "#f8d7da"

    def __init__(self, *, project: str, make_dag: Callable[[], object], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.project = project
        self._make_dag = make_dag

    def execute(self, context: Any) -> None:
        """Fails.

        Raises:
            AgentsFolderError: Always; its cause is what the project fails with.
        """
        try:
            self._make_dag()
        except _FAILURES as error:
            raise AgentsFolderError(f"ADK project {self.project!r} is broken: {failures.one_line(error)}") from error
        raise AgentsFolderError(
            f"ADK project {self.project!r} was broken when its DAG file was parsed: see the DAG's documentation. Here and now"
            " it is not: once the DAG shows its own tasks, trigger it again."
        )


def _resolve(folder: str | os.PathLike[str], dag_file: str | None) -> Path:
    path = Path(folder).expanduser()
    return (path if path.is_absolute() or dag_file is None else Path(dag_file).parent / path).resolve()


def _unreadable(folder: Path) -> Iterator[str]:
    """The names of folders in which google-adk cannot see whether they are projects: they may be."""
    for name in os.listdir(folder):
        if os.path.isdir(folder / name) and not name.startswith((".", "__pycache__")):
            try:
                os.scandir(folder / name).close()
            except OSError:
                yield name


def _check_names(path: Path, projects: Mapping[str, Project], agents: Mapping[str, Any]) -> None:
    for name in agents:
        if name not in projects:
            near = difflib.get_close_matches(name, projects, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else f" It has: {', '.join(projects)}."
            raise AgentsFolderError(f"load_agents: {path} has no project {name!r}, which agents= names.{hint}")


def _wanted(projects: Mapping[str, Project], agents: Mapping[str, Any], common: Mapping[str, Any]) -> dict[str, _Wanted]:
    """What is wanted of each project. One whose DAG cannot have the id that it should gets another, and the fault."""
    own = {name: agents.get(name) or {} for name in projects}
    ids = {name: given["dag_id"] if isinstance(given, Mapping) and "dag_id" in given else name for name, given in own.items()}
    taken: dict[str, str] = {}
    found = {}
    for name in sorted(projects, key=lambda name: ids[name] != name):  # a folder's own name goes before one that is given
        fault, dag_id = _id_fault(name, ids[name], taken), ids[name]
        if fault:
            dag_id = _free_id(name, {*taken, *map(str, ids.values())})
        taken[dag_id] = name
        if not isinstance(own[name], Mapping):
            fault = f"agents={{{name!r}: ...}} must be a dict of arguments, not {type(own[name]).__name__}."
        arguments = {**common, **own[name]} if isinstance(own[name], Mapping) else dict(common)
        arguments.pop("dag_id", None)
        error = AgentsFolderError(f"project {name!r}: {fault}") if fault else None
        found[name] = _Wanted(projects[name], dag_id, arguments, common, error)
    return {name: found[name] for name in projects}


def _id_fault(name: str, dag_id: Any, taken: Mapping[str, str]) -> str:
    """What is wrong with the id of a project's DAG; empty: nothing."""
    try:
        DAG(dag_id, schedule=None)
    except (TypeError, ValueError) as error:
        if dag_id == name:
            return f"its folder's name can be no DAG's id: {error}. Rename the folder, with letters, digits and underscores."
        return f"dag_id={dag_id!r} can be no DAG's id: {error}."
    if dag_id in taken:
        return f"dag_id={dag_id!r} is the id of the DAG of project {taken[dag_id]!r}, too. Give it another."
    return ""


def _free_id(name: str, taken: Collection[str]) -> str:
    near = re.sub(r"[^\w.-]+", "_", name, flags=re.ASCII)[:200]
    free = (near if number == 1 else f"{near}_{number}" for number in itertools.count(1))
    return next(dag_id for dag_id in free if dag_id not in taken)


def _make_dag(project: Project, dag_id: str, arguments: Mapping[str, Any]) -> DAG:
    from google.adk.workflow import Workflow

    from adk_airflow.dag import AdkDag

    given = dict(arguments)
    register = given.pop("auto_register", True)
    with own_environment():
        root = project().root_agent
        if isinstance(root, Workflow):
            dag: DAG = AdkDag(project, dag_id, auto_register=False, **given)
        else:
            dag = _agent_dag(project, root, dag_id, given)
    dag.validate()  # type: ignore[no-untyped-call]
    return _registered(dag, register)


def _registered(dag: DAG, register: bool = True) -> DAG:
    """The DAG, registered with Airflow: only one that is complete and valid may be."""
    dag.auto_register = register
    with dag:
        return dag


def _agent_dag(project: Project, agent: Any, dag_id: str, arguments: dict[str, Any]) -> DAG:
    from google.adk.agents.base_agent import BaseAgent

    from adk_airflow.dag import input_param
    from adk_airflow.operators.agent import AdkAgentOperator
    from adk_airflow.translator.node_doc import of_agent

    if not isinstance(agent, BaseAgent):
        raise AgentsFolderError(
            f"project {project.name!r}: its root_agent is a {type(agent).__name__}, which is neither an agent nor a Workflow."
            " Make it one: Workflow(name=..., edges=[('START', root_agent)])."
        )
    if arguments.pop("nodes", None):
        raise AgentsFolderError(f"project {project.name!r} is an agent, not a Workflow, so there are no nodes= to give.")
    arguments.pop("mode", None)
    of_task = {key: arguments.pop(key) for key in _OF_AGENTS if arguments.get(key) is not None}
    text = input_param("The message to the agent.")
    arguments["params"] = {"input": text, **(arguments.pop("params", None) or {})}
    arguments.setdefault("description", agent.description or f"ADK agent {agent.name}")
    arguments.setdefault("doc_md", f"ADK agent **{agent.name}**" + (f": {agent.description}" if agent.description else ""))
    dag = DAG(dag_id, auto_register=False, **arguments)
    page = failures.masked(of_agent(agent))
    dag.add_result(AdkAgentOperator(task_id=agent.name, agent=project, dag=dag, doc_md=page or None, **of_task).output)
    return dag


def _broken_dag(wanted: _Wanted, error: BaseException | None) -> DAG:
    """The DAG that stands for a project that cannot be loaded.

    Raises:
        Exception: Also the arguments that all projects share are wrong: then it is the DAG file that is.
    """
    try:
        return _registered(_one_task_dag(wanted, wanted.arguments, error))
    except Exception:
        return _registered(_one_task_dag(wanted, wanted.common, error))


def _one_task_dag(wanted: _Wanted, arguments: Mapping[str, Any], error: BaseException | None) -> DAG:
    name = wanted.project.name
    given = {key: value for key, value in arguments.items() if key not in (*_OF_AGENTS, "auto_register")}
    given["tags"] = sorted({*(given.get("tags") or ()), BROKEN_TAG})
    if error is not None:
        given["dag_display_name"] = f"{given.get('dag_display_name') or wanted.dag_id} (broken)"
        given["description"] = f"ADK project {name!r} is broken: {failures.one_line(error)}"
        given["doc_md"] = f"ADK project **{name}** is broken.\n\n```\n{_details(wanted.project, error)}\n```"
    dag = DAG(wanted.dag_id, auto_register=False, **given)
    # A function, since Airflow copies tasks deep, and agents are not made for it.
    fresh = replace(wanted, project=Project(wanted.project.loader, name))
    BrokenProjectOperator(task_id=BROKEN, project=name, make_dag=lambda: fresh.make_dag(), retries=0, dag=dag)
    dag.validate()  # type: ignore[no-untyped-call]
    return dag


def _details(project: Project, error: BaseException) -> str:
    """The traceback in the project's own files; google-adk's and ours say nothing about what to mend."""
    shown = traceback.TracebackException.from_exception(error)
    chain: traceback.TracebackException | None = shown
    while chain is not None:
        own = [frame for frame in chain.stack if Path(frame.filename).is_relative_to(project.path)]
        chain.stack = traceback.StackSummary.from_list(own)
        chain = chain.__cause__ or chain.__context__
    return failures.masked("".join(shown.format()).strip())
