"""A small client for Airflow's public REST API (``/api/v2``), as far as the commands and the tests need it."""

from __future__ import annotations

import contextlib
import difflib
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx

from adk_airflow.local.errors import AirflowApiError, DagImportError

Json = dict[str, Any]

# Seconds for which a request that SQLite was too busy for is made again.
_BUSY = 30.0
_HEALTH_PARTS = ("metadatabase", "scheduler", "dag_processor")


class AirflowClient:
    """Requests to one Airflow; logs in by itself, and again when the token has run out.

    Answers are Airflow's JSON objects, unchanged. Every method raises ``AirflowApiError`` when the request is
    refused or not answered, naming the request and the answer.

    Args:
        url: Address of the API server, without a path.
        login: Gives user name and password when they are needed.
        timeout: Seconds for one request.
        page_size: Entries that are asked for at once; Airflow gives at most 100.
    """

    def __init__(
        self,
        url: str,
        *,
        login: Callable[[], tuple[str, str]],
        timeout: float = 30.0,
        page_size: int = 100,
    ) -> None:
        self._login = login
        self._page_size = page_size
        # trust_env: a proxy of the shell would not reach this machine's own ports
        self._http = httpx.Client(base_url=url, timeout=timeout, trust_env=False)

    def __enter__(self) -> AirflowClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    # -- health ------------------------------------------------------------------------------------------

    def unhealthy(self, *, since: float = 0.0, only: Sequence[str] = _HEALTH_PARTS) -> list[str]:
        """What is not healthy yet, e.g. ``["scheduler", "dag_processor"]``; empty when all is well.

        Without an answer it is ``["api-server"]``.

        Args:
            since: Seconds since the epoch; an older heartbeat does not count. After a crash Airflow calls a
                component healthy for 30 s more.
            only: The parts to look at.
        """
        try:
            response = self._http.get("/api/v2/monitor/health", timeout=5.0)
            report: Json = response.json() if response.status_code == 200 else {}
        except (httpx.HTTPError, ValueError):
            return ["api-server"]
        return [part for part in only if not _is_healthy(report.get(part) or {}, part, since)]

    def warm_up(self) -> None:
        """Makes the API that tasks report to ready; its first request takes 5 s and more, later ones none.

        Without it that time would be the first task's.
        """
        _answer(self._http_request("GET", "/execution/health", timeout=120.0))

    # -- DAGs --------------------------------------------------------------------------------------------

    def dag(self, dag_id: str) -> Json | None:
        """The DAG, None while Airflow does not know it."""
        try:
            return self.get(f"/dags/{dag_id}")
        except AirflowApiError as error:
            if error.status == 404:
                return None
            raise

    def import_errors(self) -> list[Json]:
        """The files that could not be imported: ``filename``, ``stack_trace``, ``timestamp``."""
        return list(self._pages("/importErrors", "import_errors"))

    def wait_for_dag(
        self,
        dag_id: str,
        *,
        dags: Path | None = None,
        since: float = 0.0,
        timeout: float = 60.0,
        check: Callable[[], None] = lambda: None,
    ) -> Json:
        """The DAG, once its file was parsed; import errors of other files do not matter.

        Args:
            dags: The DAGs folder. With it an import error of a file that names the DAG is told at once.
            since: Seconds since the epoch; a DAG that was parsed before (by an earlier start) does not count.
            timeout: Seconds to wait.
            check: Called between the requests; may raise to end the waiting.

        Raises:
            DagImportError: Its file cannot be imported (with the traceback), or no file defines the DAG.
        """
        deadline = time.monotonic() + timeout
        while True:
            check()
            dag = self.dag(dag_id)
            errors = [error for error in self.import_errors() if _epoch(error["timestamp"]) >= since]
            own = own_errors(errors, dag_id, dag, dags)
            if dag and not own and not dag["is_stale"] and _epoch(dag["last_parsed_time"]) >= since:
                return dag
            if own:
                raise DagImportError(_explain(f"Airflow could not import the DAG {dag_id!r}", own))
            if time.monotonic() > deadline:
                absence = self._absence(dag_id, timeout)
                raise DagImportError(_explain(f"{absence}\nThese files could not be imported", errors) if errors else absence)
            time.sleep(0.25)

    def dag_ids(self) -> list[str]:
        """The ids of all DAGs."""
        return [str(dag["dag_id"]) for dag in self._pages("/dags", "dags")]

    def tasks(self, dag_id: str) -> list[Json]:
        """The DAG's tasks: ``task_id``, ``downstream_task_ids``, ``is_mapped``, ..."""
        return list(self.get(f"/dags/{dag_id}/tasks")["tasks"])

    def missing_pools(self, dag_id: str) -> dict[str, list[str]]:
        """The pools that tasks of the DAG use and that are not there, each with the ids of those tasks."""
        known = {pool["name"] for pool in self._pages("/pools", "pools")}
        found: dict[str, list[str]] = {}
        for task in self.tasks(dag_id):
            if (pool := task.get("pool")) and pool not in known:
                found.setdefault(pool, []).append(str(task["task_id"]))
        return found

    def unpause(self, dag_id: str) -> Json:
        """Lets the scheduler run the DAG."""
        return self.request("PATCH", f"/dags/{dag_id}", json={"is_paused": False})

    def pause(self, dag_id: str) -> Json:
        """Keeps the scheduler from starting runs of the DAG."""
        return self.request("PATCH", f"/dags/{dag_id}", json={"is_paused": True})

    # -- runs --------------------------------------------------------------------------------------------

    def end_run(self, dag_id: str, run_id: str) -> Json:
        """Marks a run as failed, which ends its tasks."""
        return self.request("PATCH", f"/dags/{dag_id}/dagRuns/{run_id}", json={"state": "failed"})

    def trigger(
        self,
        dag_id: str,
        *,
        conf: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        logical_date: datetime | None = None,
    ) -> Json:
        """Starts a run; ``conf`` overrides the DAG's params. The answer has its ``dag_run_id``."""
        body: Json = {
            "conf": dict(conf or {}),
            "logical_date": logical_date.isoformat() if logical_date else None,
        }
        if run_id is not None:
            body["dag_run_id"] = run_id
        return self.request("POST", f"/dags/{dag_id}/dagRuns", json=body)

    def create_backfill(
        self, dag_id: str, from_date: datetime, to_date: datetime, *, conf: Mapping[str, Any] | None = None
    ) -> Json:
        """Runs the DAG for each interval between the two dates; the answer has the backfill's ``id``.

        The DAG is paused while Airflow writes the runs. On SQLite Airflow may answer 503 because something else
        writes, and then deletes the runs that it had made; a scheduler that had started one of them would end with
        ``StaleDataError``. After a 503 the request is made again, for 30 seconds.
        """
        body = {
            "dag_id": dag_id,
            "from_date": from_date.isoformat(),
            "to_date": to_date.isoformat(),
            "dag_run_conf": dict(conf or {}),
        }
        was_paused = self.get(f"/dags/{dag_id}")["is_paused"]
        self.pause(dag_id)
        try:
            return self._until_not_busy("POST", "/backfills", json=body)
        finally:
            if not was_paused:
                self.unpause(dag_id)

    def runs(self, dag_id: str) -> list[Json]:
        """The DAG's runs, oldest first."""
        return list(self._pages(f"/dags/{dag_id}/dagRuns", "dag_runs", order_by="run_after"))

    def run(self, dag_id: str, run_id: str) -> Json:
        """One run: ``state``, ``start_date``, ``end_date``, ``conf``, ..."""
        return self.get(f"/dags/{dag_id}/dagRuns/{run_id}")

    def task_instances(self, dag_id: str, run_id: str) -> list[Json]:
        """All task instances of a run; a mapped one has its ``map_index``, others -1."""
        return list(self._pages(f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances", "task_instances"))

    def xcom(self, dag_id: str, run_id: str, task_id: str, key: str = "return_value", *, map_index: int = -1) -> Any:
        """The value of an XCom as JSON, None when there is no such XCom."""
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/xcomEntries/{key}"
        try:
            return self.get(path, map_index=map_index, stringify=False)["value"]
        except AirflowApiError as error:
            if error.status == 404:
                return None
            raise

    def log(self, dag_id: str, run_id: str, task_id: str, *, try_number: int = 1, map_index: int = -1) -> list[str]:
        """The lines that one try of a task instance logged, tracebacks included; of these only what is in no library."""
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/logs/{try_number}"
        content = self.get(path, map_index=map_index, full_content=True).get("content") or []
        return [line for entry in content for line in _log_lines(entry)]

    def _absence(self, dag_id: str, waited: float) -> str:
        known = sorted(self.dag_ids())
        near = difflib.get_close_matches(dag_id, known, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Airflow knows: {', '.join(known) or 'no DAG at all'}."
        return (
            f"No file in the DAGs folder defines the DAG {dag_id!r} (waited {waited:.0f} s). {hint} "
            "Airflow only looks at files that contain the words `dag` and `airflow`."
        )

    # -- requests ----------------------------------------------------------------------------------------

    def get(self, path: str, **params: Any) -> Json:
        """A GET below ``/api/v2``."""
        return self.request("GET", path, params=params)

    def request(self, method: str, path: str, **options: Any) -> Json:
        """A request below ``/api/v2``; ``options`` as for ``httpx.Client.request``."""
        response = self._send(method, path, **options)
        if response.status_code == 401:
            self._http.headers.pop("Authorization", None)
            response = self._send(method, path, **options)
        return _answer(response)

    def _until_not_busy(self, method: str, path: str, **options: Any) -> Json:
        deadline = time.monotonic() + _BUSY
        while True:
            try:
                return self.request(method, path, **options)
            except AirflowApiError as error:
                if error.status != 503 or time.monotonic() > deadline:
                    raise
            time.sleep(0.5)

    def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        if "Authorization" not in self._http.headers:
            username, password = self._login()
            body = {"username": username, "password": password}
            token = _answer(self._http_request("POST", "/auth/token", json=body))["access_token"]
            self._http.headers["Authorization"] = f"Bearer {token}"
        return self._http_request(method, f"/api/v2{path}", **options)

    def _http_request(self, method: str, path: str, **options: Any) -> httpx.Response:
        try:
            return self._http.request(method, path, **options)
        except httpx.HTTPError as error:
            url = self._http.base_url.join(path)
            raise AirflowApiError(f"{method} {url} got no answer: {type(error).__name__}: {error}") from error

    def _pages(self, path: str, key: str, **params: Any) -> Iterator[Json]:
        offset = 0
        while True:
            page = self.get(path, limit=self._page_size, offset=offset, **params)
            yield from page[key]
            offset += self._page_size
            if offset >= int(page["total_entries"]):
                return


def _answer(response: httpx.Response) -> Json:
    request = f"{response.request.method} {response.request.url}"
    if response.is_success:
        try:
            return dict(response.json()) if response.content else {}
        except ValueError as error:
            raise AirflowApiError(f"{request} answered something that is not JSON: {response.text[:200]!r}") from error
    try:
        detail = response.json().get("detail")
    except (ValueError, AttributeError):
        detail = response.text[:500]
    raise AirflowApiError(f"{request} was answered with {response.status_code}: {detail}", response.status_code)


def _is_healthy(report: Json, part: str, since: float) -> bool:
    if report.get("status") != "healthy":
        return False
    return part == "metadatabase" or _epoch(report.get(f"latest_{part}_heartbeat")) >= since


def _epoch(date: str | None) -> float:
    return datetime.fromisoformat(date).timestamp() if date else 0.0


def own_errors(errors: list[Json], dag_id: str, dag: Json | None, dags: Path | None) -> list[Json]:
    """The import errors of the DAG's file: the one that Airflow knows it from, or all that name a DAG that it does not know.

    A file that names the DAG need not define it: while one of those is not broken, it may be the one that is still to come.
    """
    own = [error for error in errors if dag and error["filename"] == dag["relative_fileloc"]]
    if own or (dag and not dag["is_stale"]):
        return own
    named = set() if dags is None else _files_that_name(dag_id, dags)
    own = [error for error in errors if error["filename"] in named or Path(error["filename"]).stem == dag_id]
    return own if set(named) <= {error["filename"] for error in own} else []


def _files_that_name(dag_id: str, dags: Path) -> set[str]:
    """The DAG files with the DAG's id in them or as their name, relative to the DAGs folder."""
    names = re.compile(rf"(?<![\w-]){re.escape(dag_id)}(?![\w-])")
    found = set()
    for path in dags.rglob("*.py"):
        with contextlib.suppress(OSError):
            text = path.read_text(encoding="utf-8", errors="replace")
            is_read = all(word in text.lower() for word in ("dag", "airflow"))  # or Airflow leaves it out
            if is_read and (path.stem == dag_id or names.search(text)):
                found.add(str(path.relative_to(dags)))
    return found


def _explain(what: str, errors: list[Json]) -> str:
    traces = "\n".join(f"--- {error['filename']}:\n{str(error['stack_trace']).rstrip()}" for error in errors)
    return f"{what}:\n{traces}"


def _log_lines(entry: Any) -> list[str]:
    if isinstance(entry, str):
        return entry.splitlines()
    event = str(entry.get("event", ""))
    if event.startswith(("::group::", "::endgroup::")):
        return []
    lines = event.splitlines() or [""]
    for error in entry.get("error_detail") or []:
        frames = error.get("frames", [])
        own = [f for f in frames if not {"site-packages", "dist-packages"} & set(Path(f["filename"]).parts)]
        lines += [f"  ({len(frames) - len(own)} frames of libraries)"] if len(own) < len(frames) else []
        lines += [f'  File "{f["filename"]}", line {f["lineno"]}, in {f["name"]}' for f in own]
        lines.append(f"{error.get('exc_type')}: {error.get('exc_value')}")
    return lines
