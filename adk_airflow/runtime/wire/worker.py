"""What the tasks of a parallel worker tell each other: its runs, the batch of a mapped task, the outputs of the items."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from adk_airflow.errors import EnvelopeError
from adk_airflow.runtime.wire import codec, digest
from adk_airflow.runtime.wire.sealed import opened
from adk_airflow.runtime.wire.triggers import Item, Trigger


@dataclass(frozen=True)
class WorkerRun:
    """One run of a parallel worker: how many items its list has, and ADK's branch for the run.

    Attributes:
        size: The number of items.
        branch: The branch of the predecessor's run, or None for the workflow's own.
        sub_branch: True when the predecessor triggered several nodes at once.
    """

    size: int
    branch: str | None = None
    sub_branch: bool = False

    @property
    def trigger(self) -> Trigger:
        """What the run was triggered by, without its input: that is in the batches."""
        return Trigger(None, self.branch, self.sub_branch)


@dataclass(frozen=True)
class WorkerRuns:
    """What ``items`` leaves beside the list that Airflow maps over: the worker's runs, and how many mapped tasks there are."""

    runs: tuple[WorkerRun, ...]
    mapped_tasks: int

    def to_json(self) -> list[Any]:
        return [self.mapped_tasks, [[run.size, run.branch, run.sub_branch] for run in self.runs]]

    @classmethod
    def from_json(cls, data: Any) -> WorkerRuns:
        mapped_tasks, runs = data
        made = tuple(WorkerRun(size, branch, sub_branch) for size, branch, sub_branch in runs)
        for run in made:
            if not (_is_count(run.size) and isinstance(run.branch, (str, type(None))) and isinstance(run.sub_branch, bool)):
                raise TypeError(f"{run} is no run of a worker")
        if not _is_count(mapped_tasks):
            raise TypeError(f"{mapped_tasks!r} is no number of mapped tasks")
        return cls(made, mapped_tasks)


@dataclass(frozen=True)
class ItemOutput:
    """What the body of a parallel worker gave for one item.

    Attributes:
        run: Which run of the worker it belongs to, from 0.
        index: The item's place in the list of that run.
        output: The output.
    """

    run: int
    index: int
    output: Any

    def to_json(self, encode: Callable[[Any], Any]) -> list[Any]:
        return [self.run, self.index, encode(self.output)]

    @classmethod
    def from_json(cls, data: Any) -> ItemOutput:
        run, index, output = data
        if not (_is_count(run) and _is_count(index)):
            raise TypeError(f"{data[:2]!r} is no place of an item")
        return cls(run, index, codec.decode(opened(output)))


@dataclass(frozen=True)
class Batch:
    """The items of one mapped task.

    Attributes:
        run: Which run of the worker they belong to, from 0.
        items: The items, neighbours in its list.
        single: Every mapped task takes one item, so it returns that item's output and no list.
    """

    run: int
    items: tuple[Item, ...]
    single: bool = True

    def dumps(self, encode: Callable[[Item], Any]) -> str:
        """The batch as JSON text; ``encode`` encodes the value of an item, and may seal it."""
        body = codec.dumps([self.run, self.single, [[item.index, encode(item)] for item in self.items]]).removeprefix("[")
        return f'["{digest.of(body)}",{body}'

    @classmethod
    def loads(cls, text: Any) -> Batch:
        """Reads what ``dumps`` wrote.

        Raises:
            EnvelopeError: It is something else, or holds a value that is not allowed.
        """
        try:
            written, run, single, items = json.loads(text)
            if not (_is_count(run) and isinstance(single, bool) and all(_is_count(index) for index, _ in items)):
                raise TypeError("an item has no place")
            found = cls(run, tuple(Item(index, codec.decode(opened(value))) for index, value in items), single)
            digest.check(text, f'["{written}",', written)
            return found
        except EnvelopeError:
            raise
        except (TypeError, ValueError, RecursionError) as error:
            raise EnvelopeError(f"{type(error).__name__}: {error}") from error


def batches(lists: Sequence[Sequence[Any]], size: int) -> list[Batch]:
    """Divides the lists of a worker's runs into batches of at most ``size`` items."""
    return [
        Batch(run, tuple(Item(at, items[at]) for at in range(first, min(first + size, len(items)))), size == 1)
        for run, items in enumerate(lists)
        for first in range(0, len(items), size)
    ]


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0
