"""Which files a workflow came from: its module, what that imports of the user's own, and what is read meanwhile."""

from __future__ import annotations

import ast
import importlib.machinery
import os
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

# Those of this project too, where it is installed from a checkout.
_LIBRARIES = (
    *(os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("purelib", "platlib", "stdlib", "platstdlib")),
    os.path.realpath(Path(__file__).parents[1]) + os.sep,
)
_FOR_WRITING = os.O_WRONLY | os.O_RDWR
_watching: list[Watch] = []


def find_module(name: str) -> Path | None:
    """The file of a module, without importing anything; None for one that has none, or is not there."""
    path: Sequence[str] | None = None
    spec: importlib.machinery.ModuleSpec | None = None
    parts = name.split(".")
    for at in range(len(parts)):
        full = ".".join(parts[: at + 1])
        try:
            spec = next((found for finder in sys.meta_path if (found := finder.find_spec(full, path)) is not None), None)
            if spec is None:
                return None
            path = list(spec.submodule_search_locations or ())
        except KeyError:  # a namespace package in one that is not imported: Python would ask that for its folders
            spec, path = None, [place for folder in path or () if os.path.isdir(place := os.path.join(folder, parts[at]))]
    if spec is None or not spec.has_location or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    return Path(spec.origin)


class Watch:
    """Notes what a module that is imported meanwhile comes from; a context manager.

    Args:
        module: The module.
        folder: Where its first package lies. Files that are read elsewhere do not count.

    Attributes:
        files: Afterwards: the files that the module came from, in the order of their names.
        absent: Afterwards: files in the folder that were asked for and are not there, such as a module whose import may fail.
        libraries: Afterwards: the installed packages that these modules import, by the names in their import statements.
    """

    def __init__(self, module: str, folder: Path) -> None:
        self._module = module
        self._folder = os.path.realpath(folder) + os.sep
        self._opened: set[str] = set()
        self._before: set[str] = set()
        self.files: list[Path] = []
        self.absent: list[Path] = []
        self.libraries: set[str] = set()

    def __enter__(self) -> Watch:
        _listen()
        self._before = set(sys.modules)
        _watching.append(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _watching.remove(self)
        if error is None:
            self._follow()

    def opened(self, path: str) -> None:
        """A file is opened for reading."""
        path = os.path.realpath(path)
        if path.startswith(self._folder) and "__pycache__" not in path:
            self._opened.add(path)

    def _follow(self) -> None:
        """Goes from the module to what it imports, as far as that is no library."""
        files = {Path(path) for path in self._opened if os.path.isfile(path)}
        absent = {Path(path) for path in self._opened if not os.path.exists(path)}
        imported = [name for name in sys.modules.keys() - self._before if not self._is_library(name.partition(".")[0])]
        todo = [self._module, *imported]  # also what no statement names
        seen: set[str] = set()
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            if self._is_library(name.partition(".")[0]):
                self.libraries.add(name.partition(".")[0])
                continue
            path = _file_of(name)
            if path is not None:
                files.add(path)
                todo += _imported_by(name, path)
            elif name not in sys.modules:
                absent |= self._where_it_would_be(name)
        self.files, self.absent = sorted(files), sorted(absent)

    def _where_it_would_be(self, name: str) -> set[Path]:
        """The files in the folder that would be the module, if its package is there."""
        path = Path(self._folder, *name.split("."))
        return {path.with_suffix(".py"), path / "__init__.py"} if path.parent.is_dir() else set()

    @cache  # noqa: B019  # as short-lived as the object
    def _is_library(self, package: str) -> bool:
        """Whether a package is Python's or installed; not the one that the watched module is in."""
        if package == self._module.partition(".")[0]:
            return False
        if package in sys.builtin_module_names or package in sys.stdlib_module_names:
            return True
        path = find_module(package)
        if path is None:  # also a package without a file of its own, such as google
            found = getattr(sys.modules.get(package), "__path__", None)
            return found is not None and not any(os.path.realpath(place).startswith(self._folder) for place in found)
        return os.path.realpath(path).startswith(_LIBRARIES)


def _file_of(name: str) -> Path | None:
    origin = getattr(getattr(sys.modules.get(name), "__spec__", None), "origin", None)
    if origin is None:
        return find_module(name) if name not in sys.modules else None
    return Path(origin) if str(origin).endswith(".py") else None


def _imported_by(name: str, path: Path) -> Iterator[str]:
    """What the statements of a module import, and the packages that it is in; in functions too."""
    is_package = path.name == "__init__.py"
    parts = name.split(".")
    yield from (".".join(parts[:at]) for at in range(1, len(parts)))
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for statement in ast.walk(tree):
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            around = parts if is_package else parts[:-1]
            around = around[: len(around) - statement.level + 1] if statement.level else []
            module = ".".join([*around, *([statement.module] if statement.module else [])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in statement.names)


@cache
def _listen() -> None:
    """Python keeps such a hook until its end; it does nothing while nobody watches."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and _watching and isinstance(arguments[0], str) and not arguments[2] & _FOR_WRITING:
            for watch in _watching:
                watch.opened(arguments[0])

    sys.addaudithook(hook)
