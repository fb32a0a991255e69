"""``load_agents``: every ADK project in a folder as a DAG, by one line in a DAG file.

google-adk's own ``AgentLoader`` finds and imports the projects, as for ``adk web`` and ``adk run``, ``.env`` files included.
While a DAG file is parsed, what one project's ``.env`` sets does not reach the next project or stay in the process; the task
that runs a project's agent has it in its environment. In a task only the project it belongs to is imported.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, BaseOperator, Param, get_parsing_context

from adk_airflow.errors import AgentsFolderError

if TYPE_CHECKING:
    from google.adk.apps.app import App

    from adk_airflow.runtime.adk.cli import ProjectLoader

BROKEN = "broken_project"
BROKEN_TAG = "broken-adk-project"

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
    loader = ProjectLoader(path)
    projects = {name: _Project(loader, name) for name in loader.names()}
    if not projects:
        raise AgentsFolderError(
            f"load_agents: no ADK project is in {path}. A project is a folder with an agent.py, a root_agent.yaml or an"
            " __init__.py, as 'adk create' makes it."
        )
    arguments = {name: {**dag_arguments, **own} for name, own in _by_project(path, projects, agents or {}).items()}
    if "dag_id" in dag_arguments:
        raise AgentsFolderError("load_agents: each project's DAG has an id of its own. Give dag_id per project, in agents=.")
    context = get_parsing_context()
    dags = {}
    for name, project in projects.items():
        dag_id = arguments[name].pop("dag_id", name)
        if context.dag_id is not None and context.dag_id != dag_id:
            continue
        if context.task_id == BROKEN:
            dags[name] = _broken_dag(project, dag_id, arguments[name], None)
        elif context.dag_id is not None:
            dags[name] = _make_dag(project, dag_id, arguments[name])
        else:
            try:
                if not project.is_none():
                    dags[name] = _make_dag(project, dag_id, arguments[name])
            except (Exception, SystemExit) as error:
                dags[name] = _broken_dag(project, dag_id, arguments[name], error)
    return dags


class _Project:
    """An ADK project; called, it gives its App, with its ``.env`` in the environment.

    Tasks call it too, so that their agents find in the environment what they find under ``adk run``.
    """

    def __init__(self, loader: ProjectLoader, name: str) -> None:
        self.loader = loader
        self.name = name
        self._app: App | None = None

    def __call__(self) -> App:
        """The project's App; an agent without one gets an App named like the project, as ``adk run`` gives it.

        Raises:
            AgentsFolderError: Its name is that of a module which Python would import, or has imported, from elsewhere.
            Exception: Whatever the project, or google-adk, fails with.
        """
        from google.adk.apps.app import App

        if self._app is None:
            self._check_module()
            found: Any = self.loader.load(self.name)
            self._check_module()
            self._app = found if isinstance(found, App) else App(name=self.name, root_agent=found)
        else:
            self.loader.set_environment(self.name)
        return self._app

    @property
    def path(self) -> Path:
        """The project's folder."""
        return self.loader.folder / self.name

    def is_none(self) -> bool:
        """Whether the folder is just a package that projects share: an ``__init__.py`` without an agent."""
        if any((self.path / file).exists() for file in ("agent.py", "agent", "root_agent.yaml")):
            return False
        with _own_environment(), contextlib.suppress(ValueError):
            self()
        module = sys.modules.get(self.name)
        return self._app is None and module is not None and not {"root_agent", "app"} & vars(module).keys()

    def _check_module(self) -> None:
        module = sys.modules.get(self.name)
        if module is None:
            return
        places = [*getattr(module, "__path__", []), *([module.__file__] if getattr(module, "__file__", None) else [])]
        if not any(Path(place).resolve().is_relative_to(self.path) for place in places):
            raise AgentsFolderError(
                f"project {self.name!r}: Python has another module of this name ({', '.join(places) or 'built in'}), and"
                f" google-adk imports a project by its folder's name. Rename the folder {self.path}."
            )


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
        except (Exception, SystemExit) as error:
            raise AgentsFolderError(f"ADK project {self.project!r} is broken: {_one_line(error)}") from error
        raise AgentsFolderError(
            f"ADK project {self.project!r} was broken when its DAG file was parsed: see the DAG's documentation. Here and now"
            " it is not: once the DAG shows its own tasks, trigger it again."
        )


def _resolve(folder: str | os.PathLike[str], dag_file: str | None) -> Path:
    path = Path(folder).expanduser()
    return (path if path.is_absolute() or dag_file is None else Path(dag_file).parent / path).resolve()


def _by_project(
    path: Path, projects: Mapping[str, _Project], agents: Mapping[str, Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    for name in agents:
        if name not in projects:
            near = difflib.get_close_matches(name, projects, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else f" It has: {', '.join(projects)}."
            raise AgentsFolderError(f"load_agents: {path} has no project {name!r}, which agents= names.{hint}")
    return {name: agents.get(name, {}) for name in projects}


@contextlib.contextmanager
def _own_environment() -> Iterator[None]:
    """Takes back what is set meanwhile in the process's environment."""
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update({name: value for name, value in before.items() if os.environ.get(name) != value})


def _make_dag(project: _Project, dag_id: str, arguments: Mapping[str, Any]) -> DAG:
    from google.adk.workflow import Workflow

    from adk_airflow.dag import AdkDag

    with _own_environment():
        root = project().root_agent
        if isinstance(root, Workflow):
            return AdkDag(project, dag_id, **arguments)
        return _agent_dag(project, root, dag_id, dict(arguments))


def _agent_dag(project: _Project, agent: Any, dag_id: str, arguments: dict[str, Any]) -> DAG:
    from google.adk.agents.base_agent import BaseAgent

    from adk_airflow.operators.agent import AdkAgentOperator

    if not isinstance(agent, BaseAgent):
        raise AgentsFolderError(
            f"project {project.name!r}: its root_agent is a {type(agent).__name__}, which is neither an agent nor a Workflow."
            " Make it one: Workflow(name=..., edges=[('START', root_agent)])."
        )
    if arguments.pop("nodes", None):
        raise AgentsFolderError(f"project {project.name!r} is an agent, not a Workflow, so there are no nodes= to give.")
    arguments.pop("mode", None)
    of_task = {key: arguments.pop(key) for key in _OF_AGENTS if arguments.get(key) is not None}
    text = Param("", type=["string", "object", "array", "null"], title="Input", description="The message to the agent.")
    arguments["params"] = {"input": text, **(arguments.pop("params", None) or {})}
    arguments.setdefault("description", agent.description or f"ADK agent {agent.name}")
    arguments.setdefault("doc_md", f"ADK agent **{agent.name}**" + (f": {agent.description}" if agent.description else ""))
    dag = DAG(dag_id, **arguments)
    task = AdkAgentOperator(task_id=agent.name, agent=project, dag=dag, **of_task)
    with dag:  # Airflow registers it at the end of this block, and only a DAG that is complete may be
        dag.add_result(task.output)
    return dag


def _broken_dag(project: _Project, dag_id: str, arguments: Mapping[str, Any], error: BaseException | None) -> DAG:
    given = {key: value for key, value in arguments.items() if key not in _OF_AGENTS}
    given["tags"] = sorted({*(given.get("tags") or ()), BROKEN_TAG})
    if error is not None:
        given["dag_display_name"] = f"{given.get('dag_display_name') or dag_id} (broken)"
        given["description"] = f"ADK project {project.name!r} is broken: {_one_line(error)}"
        given["doc_md"] = f"ADK project **{project.name}** is broken.\n\n```\n{_details(project, error)}\n```"
    with DAG(dag_id, **given) as dag:
        # A function, since Airflow copies tasks deep, and agents are not made for it.
        fresh = _Project(project.loader, project.name)
        BrokenProjectOperator(
            task_id=BROKEN,
            project=project.name,
            make_dag=lambda: _make_dag(fresh, dag_id, arguments),
            retries=0,
        )
    return dag


def _details(project: _Project, error: BaseException) -> str:
    """The traceback in the project's own files; google-adk's and ours say nothing about what to mend."""
    shown = traceback.TracebackException.from_exception(error)
    chain: traceback.TracebackException | None = shown
    while chain is not None:
        own = [frame for frame in chain.stack if Path(frame.filename).is_relative_to(project.path)]
        chain.stack = traceback.StackSummary.from_list(own)
        chain = chain.__cause__ or chain.__context__
    return "".join(shown.format()).strip()


def _one_line(error: BaseException) -> str:
    words = str(error).strip()
    return f"{type(error).__name__}: {words.splitlines()[0] if words else ''}"
