"""One ADK project of a folder: a name that Python can import, its App, and its ``.env`` in the environment."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adk_airflow.errors import AgentsFolderError
from adk_airflow.runtime import failures

if TYPE_CHECKING:
    from google.adk.apps.app import App

    from adk_airflow.runtime.adk.cli import ProjectLoader


class Project:
    """An ADK project; called, it gives its App, with its ``.env`` in the environment.

    Tasks call it too, so that their agents find in the environment what they find under ``adk run``.

    Args:
        loader: What imports it.
        name: The name of its folder.
    """

    def __init__(self, loader: ProjectLoader, name: str) -> None:
        self.loader = loader
        self.name = name
        self._app: App | None = None

    def __call__(self) -> App:
        """The project's App; an agent without one gets an App named like the project, as ``adk run`` gives it.

        Raises:
            AgentsFolderError: Python has another module of its name, or google-adk refuses what is in it.
            Exception: Whatever the project, or google-adk, fails with.
        """
        from google.adk.apps.app import App

        if self._app is None:
            self._check_module()
            try:
                found: Any = self.loader.load(self.name)
                self._check_module()
                self._app = found if isinstance(found, App) else App(name=self.name, root_agent=found)
            except Exception as error:
                if (refusal := self._refusal(error)) is not None:
                    raise refusal from None
                raise
        else:
            self.loader.set_environment(self.name)
        return self._app

    @property
    def path(self) -> Path:
        """The project's folder; a symbolic link where it is one."""
        return self.loader.folder / self.name

    @property
    def _is_package(self) -> bool:
        return os.path.isfile(self.path / "__init__.py")

    def is_none(self) -> bool:
        """Whether the folder is just a package that projects share: an ``__init__.py`` without an agent."""
        os.listdir(self.path)  # what cannot be read is not known to be none
        if any(os.path.lexists(self.path / file) for file in ("agent.py", "agent", "root_agent.yaml")):
            return False
        with own_environment(), contextlib.suppress(ValueError):
            self()
        module = sys.modules.get(self.name)
        return self._app is None and module is not None and not {"root_agent", "app"} & vars(module).keys()

    def keep_other_module(self) -> None:
        """Imports the module of the project's name that Python has from elsewhere, if there is one.

        To be called before the folder is on Python's path, where it comes first: else whoever imports that module later in this
        process, maybe Python's own library, would get the project. A project without ``__init__.py`` hides no other module.
        """
        if self._is_package and self.name not in sys.modules and self._other_module() is not None:
            with contextlib.suppress(Exception):
                importlib.import_module(self.name)

    def _check_module(self) -> None:
        if (place := self._other_module()) is not None:
            raise AgentsFolderError(
                f"project {self.name!r}: Python has another module of this name ({place}), and google-adk imports a project by"
                f" its folder's name. Rename the folder {self.path}."
            )

    def _other_module(self) -> str | None:
        """Where Python has a module of the project's name that is not the project; None: nowhere."""
        module = sys.modules.get(self.name)
        if module is not None:
            # A namespace package such as google has several places, the project maybe among them; the first one counts.
            file = getattr(module, "__file__", None)
            place = next(iter(getattr(module, "__path__", ())), file)
            return None if place is not None and self._is_own(place) else file or place or "built in"
        origins = (spec.origin for spec in self._specs() if spec.origin)
        return next((origin for origin in origins if not self._is_own(origin)), None)

    def _is_own(self, place: str) -> bool:
        return Path(place).resolve().is_relative_to(self.path.resolve())

    def _specs(self) -> Iterator[ModuleSpec]:
        """What Python would import under the project's name from elsewhere than the folder of projects.

        Nor from a folder around it, such as that of DAG files, which Airflow imports under other names; except where it would
        be imported in the project's place.
        """
        if "." in self.name:
            return  # google-adk refuses it, and Python would look for a part of the name
        folder = self.loader.folder.resolve()
        places = {entry: Path(entry or ".").resolve() for entry in sys.path}
        around = folder.is_relative_to if self._is_package else folder.__eq__
        path = [entry for entry, place in places.items() if not around(place)]
        for finder in sys.meta_path:
            if (found := finder.find_spec(self.name, path if finder is PathFinder else None)) is not None:
                yield found

    def _refusal(self, error: BaseException) -> AgentsFolderError | None:
        """Why google-adk refuses the workflow or agent, in a sentence; None: the project fails with something else."""
        from adk_airflow.runtime.adk import refusal

        for cause in (error, error.__cause__):  # google-adk's loader puts its own error around some
            if cause is not None and refusal.is_refusal(cause):
                told = AgentsFolderError(f"project {self.name!r} {refusal.reason(cause)}")
                return told.with_traceback(cause.__traceback__)
        return None


@contextlib.contextmanager
def own_environment() -> Iterator[None]:
    """Takes back what is set meanwhile in the process's environment, and its secrets out of what fails."""
    before = dict(os.environ)
    try:
        yield
    except BaseException as error:
        failures.hide_secrets(error)
        raise
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update({name: value for name, value in before.items() if os.environ.get(name) != value})
