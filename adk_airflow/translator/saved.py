"""Graphs of workflows given by name, kept in files, so that parsing a DAG file imports neither google-adk nor the workflow.

A file holds a graph, the content (by SHA-256) of every file that it came from, and the versions of google-adk, Airflow, this
project, Python and the packages that these files import. It is used while all of that is as it was: a change is seen the next
time the DAG file is parsed. Files are looked for in two folders:

* ``adk_plans`` beside the workflow's module (in the DAGs folder), where ``adk-airflow plan --write`` puts them for deployments
  that may write nothing;
* ``adk_plans`` in AIRFLOW_HOME, where a parse leaves what it had to import a workflow for.

What a graph came from is found while its module is imported (``sources``): the modules that it imports, those of libraries left
out, and the files that are read meanwhile. What a workflow takes from elsewhere (environment, network, time) is not seen. So
each task compares its workflow with the graph (``fingerprint``), and refuses to run another one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import platform
import tempfile
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adk_airflow.translator.graph import Edge, Graph, Node
from adk_airflow.translator.sources import Watch, find_module

if TYPE_CHECKING:
    from collections.abc import Iterable

log = logging.getLogger(__name__)

FOLDER = "adk_plans"
_FORMAT = 1
_VERSIONS_OF = ("adk-airflow", "apache-airflow-core", "apache-airflow-task-sdk", "google-adk")


def graph_of(reference: str) -> tuple[Graph, bool]:
    """The graph of a workflow given by name, and whether it is from a file; else the workflow was imported for it.

    Args:
        reference: ``package.module:attribute``.

    Raises:
        AdkAirflowError: As for ``plan_workflow``.
    """
    place = _folder_of(reference)
    folders = [folder for folder in (place and place / FOLDER, _own_folder(place)) if folder is not None] if _wanted() else []
    for folder in folders:
        if (saved := _read(folder / _name(reference), place)) is not None:
            return saved, True
    graph, text = _make(reference, place)
    if folders and text is not None:
        with contextlib.suppress(OSError):
            _write(folders[-1] / _name(reference), text)
    return graph, False


def save(reference: str) -> Path:
    """Writes the graph of a workflow beside its module; returns the file.

    Raises:
        AdkAirflowError: As for ``plan_workflow``.
        ValueError: It came from files that are not in the folder of the module, so that they cannot be found again elsewhere.
        OSError: It cannot be written.
    """
    place = _folder_of(reference)
    _, text = _make(reference, place)
    if place is None or text is None:
        raise ValueError(f"workflow {reference!r} does not come from files below one folder")
    path = place / FOLDER / _name(reference)
    _write(path, text)
    return path


def _wanted() -> bool:
    from airflow.sdk import conf

    return bool(conf.getboolean("adk_airflow", "save_plans", fallback=True))


def _name(reference: str) -> str:
    return reference.replace(":", "-") + ".json"


def _folder_of(reference: str) -> Path | None:
    """The folder that the module's first package, or the module itself, lies in."""
    origin = find_module(reference.partition(":")[0].partition(".")[0])
    if origin is None:
        return None
    return origin.parent.parent if origin.name == "__init__.py" else origin.parent


def _own_folder(place: Path | None) -> Path | None:
    """The folder in AIRFLOW_HOME for modules that lie in ``place``."""
    if place is None:
        return None
    from airflow.sdk import conf

    home = os.environ.get("AIRFLOW_HOME") or conf.get("core", "airflow_home", fallback="~/airflow")
    return Path(home).expanduser() / FOLDER / hashlib.sha256(str(place).encode()).hexdigest()[:16]


# -- making --------------------------------------------------------------------------------------------------


def _make(reference: str, place: Path | None) -> tuple[Graph, str | None]:
    """The graph of the workflow, and the text to keep; None for one that does not come from files below one folder."""
    from adk_airflow.runtime import source as sources
    from adk_airflow.translator.graph import read_graph

    if place is None:
        return read_graph(sources.load(reference)), None
    with Watch(reference.partition(":")[0], place) as watch:
        graph = read_graph(sources.load(reference))
    if not watch.files or any(not path.is_relative_to(place) for path in (*watch.files, *watch.absent)):
        return graph, None
    files = {path.relative_to(place).as_posix(): _digest(path) for path in watch.files}
    absent = [path.relative_to(place).as_posix() for path in watch.absent]
    by_package = packages_distributions()
    libraries = {name for package in watch.libraries for name in by_package.get(package, ()) if package != "google"}
    versions = _versions([*_VERSIONS_OF, *sorted(libraries)])
    data = {"format": _FORMAT, "versions": versions, "files": files, "absent": absent, "graph": asdict(graph)}
    return graph, json.dumps(data, indent=1, ensure_ascii=False)


def _write(path: Path, text: str) -> None:
    """Writes it whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, new = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(new, path)
    except BaseException:
        os.unlink(new)
        raise


# -- reading -------------------------------------------------------------------------------------------------


def _read(path: Path, place: Path | None) -> Graph | None:
    """The graph in a file, if all that it came from is as it was."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] != _FORMAT or data["versions"] != _versions(data["versions"]) or place is None:
            return None
        if any(_digest(place / name) != digest for name, digest in data["files"].items()):
            return None
        if any((place / name).exists() for name in data["absent"]):
            return None
        return _graph(data["graph"])
    except OSError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        log.warning("%s cannot be used and is left out: %s: %s", path, type(error).__name__, error)
        return None


def _graph(data: dict[str, Any]) -> Graph:
    nodes = tuple(_read_node(node) for node in data["nodes"])
    edges = tuple(Edge(**{**edge, "routes": tuple(edge["routes"])}) for edge in data["edges"])
    return Graph(**{**data, "nodes": nodes, "edges": edges, "plugins": tuple(data["plugins"])})


def _read_node(data: dict[str, Any]) -> Node:
    inner = data["inner"]
    return Node(**{**data, "inner": inner and _graph(inner), "questions": tuple(data["questions"])})


def _digest(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def _versions(names: Iterable[str]) -> dict[str, str]:
    """Those of installed distributions, and of Python."""
    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in names:
        with contextlib.suppress(PackageNotFoundError):
            found.setdefault(name, version(name))
    return found
