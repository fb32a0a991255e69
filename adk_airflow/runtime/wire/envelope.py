"""The XCom ``adk``: what one task hands to the tasks after it, beside the plain output in ``return_value``.

It is one JSON text, so that Airflow's own XCom serialization never interprets a user's data. It begins with a version and a
digest of what follows, so that an envelope that is cut short, changed or made by another version is noticed before anything in
it is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from adk_airflow.errors import EnvelopeError, ValueNotTransferableError
from adk_airflow.runtime.wire import codec, digest, lineage
from adk_airflow.runtime.wire.sealed import Seal, as_it_is, opened
from adk_airflow.runtime.wire.worker import ItemOutput, WorkerRuns

XCOM_KEY = "adk"
VERSION = 3


Records = Mapping[str, Mapping[str, int]]
"""Tries of tasks: by task id, and by map index as text (``-1`` for none), the number of the try."""


@dataclass(frozen=True)
class Firing:
    """One run of a node.

    Attributes:
        node: Name of the node.
        output: The node's output, or None for no output (ADK's meaning).
        route: The route that the node emitted, or None.
        branch: ADK's branch after the run.
        next: The names of the nodes that this run triggers, in ADK's order; a name may stand twice.
        waiting: True when a ``wait_for_output`` node gave neither output nor route: it triggers nothing.
    """

    node: str
    output: Any = None
    route: Any = None
    branch: str | None = None
    next: tuple[str, ...] = ()
    waiting: bool = False

    def to_json(self, seal: Seal = as_it_is) -> dict[str, Any]:
        return _filled_first(
            {
                "node": self.node,
                "output": _encoded(self.output, "its output", seal),
                "route": _encoded(self.route, "its route", seal),
                "next": list(self.next),
                "branch": self.branch,
                "waiting": self.waiting,
            }
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Firing:
        return cls(
            node=_typed(data, "node", str),
            output=codec.decode(opened(data["output"])),
            route=codec.decode(opened(data["route"])),
            branch=_typed(data, "branch", str, type(None)),
            next=tuple(_texts(data["next"])),
            waiting=_typed(data, "waiting", bool),
        )


@dataclass(frozen=True)
class Envelope:
    """Everything a downstream task needs to go on as ADK would.

    Attributes:
        task: Id of the task that wrote it, with ``[map_index]`` when mapped.
        workflow: Name of the workflow.
        node: Name of the node, or of the part of the workflow, that the task runs.
        message: The user message that started the run (``google.genai.types.Content``).
        firings: The node's runs, in order.
        state: The session state after them.
        lost: State updates that were lost in merges so far.
        worker: For the ``items`` task of a parallel worker: its runs.
        outputs: For a mapped task of a parallel worker: the outputs of its items.
        scopes: For each nested workflow on the way here (``outer/inner``): ADK's branch for it, and whether it is a sub-branch.
        asked: The ids of the tasks so far in which a model was asked, this one included.
        records: The tries whose events a node after this may see: by task id and map index the number of the try.
        error: ``(type, message)`` of what the node failed with; the state up to then is kept, as ADK keeps it.
    """

    task: str
    workflow: str
    node: str
    message: Any = None
    firings: tuple[Firing, ...] = ()
    state: lineage.State = field(default_factory=dict)
    lost: tuple[lineage.LostUpdate, ...] = ()
    worker: WorkerRuns | None = None
    outputs: tuple[ItemOutput, ...] = ()
    scopes: Mapping[str, tuple[str | None, bool]] = field(default_factory=dict)
    asked: tuple[str, ...] = ()
    error: tuple[str, str] | None = None
    records: Records = field(default_factory=dict)

    def dumps(self, seal: Seal = as_it_is) -> str:
        """The envelope as JSON text. Each value is encoded here and nowhere else.

        Args:
            seal: Seals what nobody else may read.

        Raises:
            ValueNotTransferableError: An output or a route has no JSON form; the message says which.
        """
        body = codec.dumps(
            _filled_first(
                {
                    "task": self.task,
                    "workflow": self.workflow,
                    "node": self.node,
                    "error": None if self.error is None else list(self.error),
                    "firings": [firing.to_json(seal) for firing in self.firings],
                    "outputs": [item.to_json(lambda value: _encoded(value, "its output", seal)) for item in self.outputs],
                    "state": {key: self._entry(key, entry, seal) for key, entry in self.state.items()},
                    "message": seal(codec.encode(self.message), ""),
                    "lost": [[item.key, item.kept, item.lost] for item in self.lost],
                    "worker": None if self.worker is None else self.worker.to_json(),
                    "scopes": {path: list(scope) for path, scope in self.scopes.items()},
                    **({"asked": list(self.asked)} if self.asked else {}),
                    **({"records": self.records} if self.records else {}),
                }
            )
        ).removeprefix("{")
        return _head(digest.of(body)) + body

    def _entry(self, key: str, entry: lineage.Entry, seal: Seal) -> list[Any]:
        """What was written by a task before is told of there."""
        what = f"state key {key!r}" if entry.writer == self.task else ""
        return lineage.Entry(seal(entry.value, what, key), entry.writer, entry.over).to_json()

    @classmethod
    def loads(cls, text: Any, *, task: str) -> Envelope:
        """Reads an envelope.

        Args:
            text: The XCom value.
            task: Id of the task that wrote it, for the error.

        Raises:
            EnvelopeError: It is no envelope, cut short or changed, of another version, or holds a value that is not allowed.
        """
        advice = f"Clear task {task!r} so that it runs again."
        if not isinstance(text, str):
            raise EnvelopeError(f"XCom {XCOM_KEY!r} of task {task!r} is a {type(text).__name__}, not an envelope. {advice}")
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise EnvelopeError(f"XCom {XCOM_KEY!r} of task {task!r} is cut short or damaged ({error}). {advice}") from error
        version = data.get("adk_airflow") if isinstance(data, dict) else None
        if version != VERSION:
            raise EnvelopeError(
                f"XCom {XCOM_KEY!r} of task {task!r} has version {version!r}, this adk-airflow reads {VERSION}. {advice}"
            )
        try:
            found = cls(
                task=_typed(data, "task", str),
                workflow=_typed(data, "workflow", str),
                node=_typed(data, "node", str),
                message=codec.decode(opened(data["message"])),
                firings=tuple(Firing.from_json(item) for item in _typed(data, "firings", list)),
                state={key: lineage.Entry.from_json(item) for key, item in _typed(data, "state", dict).items()},
                lost=tuple(lineage.LostUpdate(*_texts(item)) for item in _typed(data, "lost", list)),
                worker=None if data["worker"] is None else WorkerRuns.from_json(data["worker"]),
                outputs=tuple(ItemOutput.from_json(item) for item in _typed(data, "outputs", list)),
                scopes={path: _scope(scope) for path, scope in _typed(data, "scopes", dict).items()},
                asked=tuple(_texts(data.get("asked", []))),
                error=None if data["error"] is None else _pair(_texts(data["error"])),
                records=_records(data.get("records", {})),
            )
            digest.check(text, _head(data["digest"]), data["digest"])
            return found
        except EnvelopeError as error:
            raise EnvelopeError(f"XCom {XCOM_KEY!r} of task {task!r}: {error}. {advice}") from error
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise EnvelopeError(
                f"XCom {XCOM_KEY!r} of task {task!r} is incomplete ({type(error).__name__}: {error}). {advice}"
            ) from error

    def firings_of(self, node: str) -> tuple[Firing, ...]:
        """The runs of one node, in order."""
        return tuple(firing for firing in self.firings if firing.node == node)

    def last_output(self, node: str) -> tuple[bool, Any]:
        """``(True, output)`` of the node as ADK keeps it after all runs, or ``(False, None)``.

        A run that completes without output clears what an earlier run gave; a run that is still waiting does not.
        """
        has, output = False, None
        for firing in self.firings_of(node):
            if not firing.waiting:
                has, output = firing.output is not None, firing.output
        return has, output


def _filled_first(data: dict[str, Any]) -> dict[str, Any]:
    """The fields that hold something before those that do not: people read the text, too."""
    return dict(sorted(data.items(), key=lambda item: item[1] is None or item[1] == [] or item[1] == {} or item[1] is False))


def _head(digest: object) -> str:
    return f'{{"adk_airflow":{VERSION},"digest":"{digest}",'


def _encoded(value: Any, what: str, seal: Seal) -> Any:
    try:
        return seal(codec.encode(value), what)
    except ValueNotTransferableError as error:
        raise ValueNotTransferableError(f"{what} cannot travel to another task: {error}") from None


def _typed(data: Any, key: str, *types: type) -> Any:
    """What stands under the key. Raises TypeError where it has another type: it must not pass for something that it is not."""
    value = data[key]
    if not isinstance(value, types):
        raise TypeError(f"{key!r} is a {type(value).__name__}")
    return value


def _texts(value: Any) -> list[str]:
    if not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
        raise TypeError(f"{value!r} is no list of texts")
    return value


def _records(value: Any) -> Records:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} are no records")
    for tries in value.values():
        if not isinstance(tries, dict) or not all(
            index.lstrip("-").isdecimal() and type(tries[index]) is int for index in tries
        ):
            raise TypeError(f"{tries!r} are no tries")
    return value


def merged_records(several: Iterable[Records]) -> Records:
    """All these tries; of one task instance the last."""
    found: dict[str, dict[str, int]] = {}
    for records in several:
        for task, tries in records.items():
            found.setdefault(task, {}).update(tries)
    return found


def _pair(value: list[str]) -> tuple[str, str]:
    first, second = value
    return first, second


def _scope(value: Any) -> tuple[str | None, bool]:
    branch, sub_branch = value
    if not (isinstance(branch, (str, type(None))) and isinstance(sub_branch, bool)):
        raise TypeError(f"{value!r} is no branch")
    return branch, sub_branch
