"""What only google-adk's command line has: the projects of a folder, services by URI, and loggers that write tracebacks.

None of it is in google-adk's public API; nothing of ours is imported here, so that every other room may call it.
"""

from __future__ import annotations

import logging
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


def log_no_tracebacks() -> None:
    """Lets google-adk log no traceback of a node's error in this process: it writes each twice."""
    for logger in _LOGGERS_OF_ERRORS:
        logging.getLogger(logger).addFilter(_has_no_traceback)


def _has_no_traceback(record: logging.LogRecord) -> bool:
    return record.exc_info is None
