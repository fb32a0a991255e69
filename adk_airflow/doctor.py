"""``adk-airflow doctor``: what of this machine's Airflow keeps workflows from running well, and what to do about it.

It looks and reports; what it writes, into each place of a service, it removes again. Where it runs on every machine of an
Airflow, what one of them lacks is found too.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import importlib
import json
import os
import sys
import uuid
from collections.abc import Awaitable, Callable, Iterator
from importlib.metadata import PackageNotFoundError, distribution, distributions, entry_points
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from adk_airflow.errors import ServiceConfigurationError

_SUPPORTED = ("apache-airflow", "google-adk", "google-genai")
_OURS = "adk-airflow"
_GROUPS = ("adk_airflow.llm", "adk_airflow.memory", "adk_airflow.sessions")
_SECONDS = 30.0
_NOBODY = "adk-airflow-doctor"
_SHARED = {"artifacts": "s3://bucket/artifacts", "memory": "s3://bucket/memory", "sessions": "a PostgreSQL database"}


@dataclasses.dataclass(frozen=True)
class Finding:
    """What one check found.

    Attributes:
        check: What was looked at, such as ``memory``.
        ok: Whether it is as it should be.
        found: What is there, in a sentence without secrets.
        remedy: What to do about a problem; empty where there is none.
    """

    check: str
    ok: bool
    found: str
    remedy: str = ""


def doctor(*, as_json: bool = False) -> int:
    """Prints what every check found.

    Returns:
        0: all is well; 1: there is a problem.
    """
    with contextlib.redirect_stdout(sys.stderr):  # what services log is no finding
        found = list(findings())
    if as_json:
        print(json.dumps([dataclasses.asdict(finding) for finding in found], indent=1))
    else:
        for finding in found:
            print(f"{'ok     ' if finding.ok else 'PROBLEM'}  {finding.check}: {finding.found}")
            if finding.remedy:
                print(f"         {finding.remedy}")
    return 0 if all(finding.ok for finding in found) else 1


def findings() -> Iterator[Finding]:
    """Every check, one after the other; none raises."""
    for check in (_versions, _providers, _artifacts, _memory, _sessions, _encryption, _dags, _byte_code):
        try:
            yield from check()
        except Exception as error:
            name = check.__name__.strip("_").replace("_", " ")
            yield Finding(name, False, f"could not be looked at: {type(error).__name__}: {error}", "See the error.")


def _versions() -> Iterator[Finding]:
    """What is installed, against what the installed distributions of this project ask for."""
    from packaging.requirements import Requirement

    ours = {dist.name: dist for dist in distributions() if str(dist.name).startswith(_OURS)}
    for name in _SUPPORTED:
        asked = [
            (own, need.specifier)
            for own, dist in sorted(ours.items())
            for need in map(Requirement, dist.requires or [])
            if need.name == name and not (need.marker and not need.marker.evaluate({"extra": ""}))
        ]
        wanted = ",".join(sorted({str(specifier) for _, specifier in asked}))
        try:
            version = distribution(name).version
        except PackageNotFoundError:
            yield Finding(name, False, f"is not installed; supported is {wanted}", f'Install it: pip install "{name}{wanted}"')
            continue
        refused = [own for own, specifier in asked if not specifier.contains(version, prereleases=True)]
        if refused:
            remedy = f'Install a supported one: pip install -c constraints.txt "{name}{wanted}"'
            yield Finding(name, False, f"{version} is installed; {', '.join(refused)} supports {wanted}", remedy)
        else:
            yield Finding(name, True, f"{version}, of {wanted}")


def _providers() -> Iterator[Finding]:
    """Whether all that Airflow and the services find by entry point can be loaded."""
    points = [point for group in _GROUPS for point in entry_points(group=group)]
    points += [
        point
        for point in entry_points(group="apache_airflow_provider")
        if point.dist is not None and point.dist.name.startswith(_OURS)
    ]
    names = set()
    for point in points:
        owner = point.dist.name if point.dist is not None else point.value
        try:
            point.load()
            names.add(owner)
        except Exception as error:
            yield Finding(
                "providers",
                False,
                f"{owner}: its entry point {point.name!r} in {point.group!r} cannot be loaded: {type(error).__name__}: {error}",
                f"Install it anew: pip install --force-reinstall {owner}",
            )
    if _OURS not in names:
        remedy = "Install it into the environment of this Airflow: pip install adk-airflow"
        yield Finding("providers", False, "Airflow does not find adk-airflow itself as a provider", remedy)
    else:
        yield Finding("providers", True, ", ".join(sorted(names)))


def _artifacts() -> Iterator[Finding]:
    from adk_airflow.runtime.services import settings

    yield from _service("artifacts", "artifacts_uri", settings.default_artifact_service)


def _memory() -> Iterator[Finding]:
    from adk_airflow.runtime.services import settings

    def search(service: Any) -> Awaitable[Any]:
        return service.search_memory(app_name=_NOBODY, user_id=_NOBODY, query="anything")  # type: ignore[no-any-return]

    yield from _service("memory", "memory_service_uri", lambda: settings.default_memory_service(_NOBODY), search)


def _sessions() -> Iterator[Finding]:
    from airflow.sdk import conf

    from adk_airflow.runtime.services import settings

    if not any(conf.get("adk_airflow", f"session_{kind}", fallback="") for kind in ("service_uri", "conn_id")):
        yield Finding("sessions", True, "none is kept beyond its run: [adk_airflow] session_service_uri is not set")
        return

    def read(service: Any) -> Awaitable[Any]:
        return service.list_sessions(app_name=_NOBODY, user_id=_NOBODY)  # type: ignore[no-any-return]

    make = lambda: settings.durable_session_service(_NOBODY, "adk-airflow doctor")  # noqa: E731
    yield from _service("sessions", "session_service_uri", make, read)


def _service(
    check: str, setting: str, make: Callable[[], Any], ask: Callable[[Any], Awaitable[Any]] | None = None
) -> Iterator[Finding]:
    """Whether a service can be made and used, and whether other machines see what it keeps.

    Args:
        check: The service.
        setting: The option of ``[adk_airflow]`` that names it.
        make: Makes it.
        ask: Asks it for something that is not there; for services that are no place of object storage.
    """
    option = f"[adk_airflow] {setting}"
    try:
        service = make()
    except ServiceConfigurationError as error:
        yield Finding(check, False, str(error), f"Correct {option}, or the connection beside it.")
        return
    root = getattr(service, "root", None)
    try:
        if root is not None:
            where = f"{root.protocol or 'file'}://{root.path}"
            _probe(root)
        else:
            assert ask is not None
            where = type(service).__name__
            asyncio.run(asyncio.wait_for(_ask(ask, service), _SECONDS))
    except Exception as error:
        said = f"{type(error).__name__}: {error}" if root is not None else type(error).__name__  # may quote a password
        yield Finding(check, False, f"{where} cannot be used: {said}", f"Make it reachable and writable, or change {option}.")
        return
    folder = _folder_of(setting, service)
    if folder is None or _only_local_executor():
        yield Finding(check, True, f"{where} can be {'read and written' if root is not None else 'asked'}")
    elif _mount_point(folder) == Path("/"):
        yield Finding(
            check,
            False,
            f"{folder} is on this machine's own disk, and the executor ({_executors()}) runs tasks on others too: what a"
            " task keeps, tasks elsewhere do not find",
            f"Set {option} to a place that all machines reach, such as {_SHARED[check]}, or mount one volume here on each.",
        )
    else:
        yield Finding(
            check, True, f"{folder} can be written, on a volume that every machine must mount ({_mount_point(folder)})"
        )


async def _ask(ask: Callable[[Any], Awaitable[Any]], service: Any) -> None:
    try:
        await ask(service)
    finally:
        if close := getattr(service, "close", None):
            await close()


def _probe(root: Any) -> None:
    """Writes a file into a place of object storage, reads it and removes it."""
    from adk_airflow.runtime.services import storage

    path, content = root / f"{_NOBODY}-{uuid.uuid4().hex}", b"written by adk-airflow doctor"
    storage.replace_file(path, content)
    try:
        if root.fs.cat_file(path.path) != content:
            raise OSError("what was written is not what is read")
        if path.name not in storage.names_in(root):
            raise OSError("what was written is not listed")
    finally:
        root.fs.rm_file(path.path)


def _folder_of(option: str, service: Any) -> Path | None:
    """The folder of this machine in which a service keeps its things; None: it is elsewhere."""
    from airflow.sdk import conf

    if (root := getattr(service, "root", None)) is not None:
        return Path(root.path) if (root.protocol or "file") in ("file", "local") else None
    scheme, _, rest = (conf.get("adk_airflow", option, fallback="") or "").strip().partition("://")
    return Path("/" + rest.partition("?")[0].lstrip("/")).parent if scheme.partition("+")[0] == "sqlite" else None


def _mount_point(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if os.path.ismount(path))


def _executors() -> str:
    from airflow.sdk import conf

    return str(conf.get("core", "executor"))


def _only_local_executor() -> bool:
    # Several may be named, each after a team and with an alias: "team=LocalExecutor,other:CeleryExecutor".
    names = [name.strip() for name in _executors().replace(";", ",").replace("=", ",").split(",")]
    return {name for name in names if name.endswith("Executor")} <= {"LocalExecutor"}


def _encryption() -> Iterator[Finding]:
    from airflow.sdk import conf
    from cryptography.fernet import Fernet

    key = (conf.get("core", "fernet_key", fallback="") or "").strip()
    key = "" if key == "{FERNET_KEY}" else key  # Airflow's default before its command has written one down
    make = "python -c 'from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())'"
    remedy = f"Set [core] fernet_key, the same on every machine (AIRFLOW__CORE__FERNET_KEY). To make one: {make}"
    if not key:
        yield Finding("encryption", False, "[core] fernet_key is empty: passwords are in the database as they are", remedy)
        return
    try:
        for part in key.split(","):
            Fernet(part)
    except ValueError:
        yield Finding("encryption", False, "[core] fernet_key is no Fernet key: 32 bytes in URL-safe base64", remedy)
    else:
        yield Finding("encryption", True, "[core] fernet_key is set")


def _dags() -> Iterator[Finding]:
    from airflow.sdk import conf

    folder = Path(conf.get("core", "dags_folder"))
    if not folder.is_dir() or not os.access(folder, os.R_OK | os.X_OK):
        what = "cannot be read" if folder.exists() else "is not there"
        remedy = "Set [core] dags_folder to it, and let the user that runs Airflow read it."
        yield Finding("DAGs folder", False, f"{folder} {what}", remedy)
        return
    place = Path(cache_from_source(str(folder / "dag.py"))).parent
    there = next(path for path in (place, *place.parents) if path.exists())
    if sys.dont_write_bytecode or not os.access(there, os.W_OK):
        yield Finding(
            "DAGs folder",
            False,
            f"{folder} can be read, but the byte code of its files cannot be kept: every task compiles them anew",
            "Unset PYTHONDONTWRITEBYTECODE, and where the folder is read-only set PYTHONPYCACHEPREFIX to a folder that is not.",
        )
    else:
        yield Finding("DAGs folder", True, str(folder))


def _byte_code() -> Iterator[Finding]:
    """Whether what a task imports is compiled; a process that imports a module compiles it, and keeps that where it may."""
    for module in ("airflow.sdk", "google.adk.runners", "google.adk.workflow"):
        importlib.import_module(module)
    specs = [module.__spec__ for module in list(sys.modules.values()) if getattr(module, "__spec__", None) is not None]
    sources = [
        (spec.origin, spec.cached) for spec in specs if spec and spec.origin and spec.origin.endswith(".py") and spec.cached
    ]
    missing = sorted({origin for origin, cached in sources if os.path.exists(origin) and not os.path.exists(cached)})
    if missing:
        folders = sorted({str(Path(origin).parent) for origin in missing})
        yield Finding(
            "byte code",
            False,
            f"{len(missing)} of {len(sources)} modules are compiled anew by every process, such as {missing[0]}",
            f"Unset PYTHONDONTWRITEBYTECODE, and where you may write: python -m compileall -q {os.path.commonpath(folders)}",
        )
    else:
        yield Finding("byte code", True, f"{len(sources)} modules are compiled")
