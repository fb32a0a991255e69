"""What only google-adk's command line has: the projects of a folder, services by URI, and loggers that write tracebacks.

None of it is in google-adk's public API; nothing of ours is imported here, so that every other room may call it.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.adk.memory.base_memory_service import BaseMemoryService
    from google.adk.sessions.base_session_service import BaseSessionService

# Those that write a node's error with its traceback, each once.
_LOGGERS_OF_ERRORS = ("google_adk.google.adk.workflow._node_runner", "google_adk.google.adk.runners")


class ProjectLoader:
    """Finds and imports the ADK projects of a folder, as ``adk web`` and ``adk run`` do.

    Args:
        folder: The folder with the projects, or one project.
    """

    def __init__(self, folder: Path) -> None:
        from google.adk.cli.utils.agent_loader import AgentLoader

        self._loader = AgentLoader(str(folder))

    @property
    def folder(self) -> Path:
        """The folder with the projects."""
        return Path(self._loader.agents_dir)

    def names(self) -> list[str]:
        """The names of the projects, sorted."""
        return self._loader.list_agents()

    def load(self, name: str) -> Any:
        """The App, agent or Workflow of a project, with its ``.env`` in the environment; imported once.

        Raises:
            ValueError: There is none.
            Exception: Whatever the project fails with.
        """
        return self._loader.load_agent(name)

    def set_environment(self, name: str) -> None:
        """Puts a project's ``.env`` into the environment; what was there before the first one stays."""
        from google.adk.cli.utils.envs import load_dotenv_for_agent

        load_dotenv_for_agent(name, str(self.folder))


def memory_service(uri: str, folder: str) -> BaseMemoryService | None:
    """The memory service that google-adk has for a URI, or that was registered with it; None: there is none.

    Args:
        uri: Such as ``agentengine://1234567890``.
        folder: The folder with the projects, where a service may look for settings.

    Raises:
        Exception: Whatever the service refuses the URI with.
    """
    from google.adk.cli.service_registry import get_service_registry

    return get_service_registry().create_memory_service(uri, agents_dir=folder)


def session_service(uri: str, folder: str) -> BaseSessionService:
    """The session service that google-adk has for a URI, or that was registered with it; else one over a database.

    Args:
        uri: Such as ``postgresql+asyncpg://user@host/database``.
        folder: The folder with the projects, where a service may look for settings.

    Raises:
        Exception: Whatever the service refuses the URI with.
    """
    from google.adk.cli.utils.service_factory import create_session_service_from_options

    return create_session_service_from_options(base_dir=folder, session_service_uri=uri, use_local_storage=False)


@contextlib.contextmanager
def short_failures(shown: Callable[[BaseException], str] | None = None) -> Iterator[None]:
    """Lets google-adk log a failure of a node meanwhile in a line, as a warning.

    It writes each as an error, twice, with its traceback, also that of an attempt which it tries again. What a task fails with
    Airflow shows, with the traceback.

    Args:
        shown: Makes the line of an error. None: failures are told elsewhere, and not logged at all.
    """

    def shorten(record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return True
        if shown is None or record.name == _LOGGERS_OF_ERRORS[1]:
            return False  # the root's failure is a node's that was written before
        record.msg, record.args, record.exc_info, record.exc_text = f"A run of a node failed: {shown(error)}", (), None, None
        record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
        return True

    for logger in _LOGGERS_OF_ERRORS:
        logging.getLogger(logger).addFilter(shorten)
    try:
        yield
    finally:
        for logger in _LOGGERS_OF_ERRORS:
            logging.getLogger(logger).removeFilter(shorten)
