"""A parallel worker as three Airflow tasks: ``items`` makes the list, ``run`` is mapped over it, ``collect`` gathers."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from adk_airflow.errors import EnvelopeError, ValueNotTransferableError
from adk_airflow.operators.graph import AdkGraphOperator, AdkSpecOperator
from adk_airflow.runtime import sealing
from adk_airflow.runtime.envelopes import Envelopes
from adk_airflow.runtime.outbox import Outbox
from adk_airflow.runtime.wire import codec, json_form
from adk_airflow.runtime.wire.envelope import Envelope
from adk_airflow.runtime.wire.sealed import Seal
from adk_airflow.runtime.wire.triggers import Item
from adk_airflow.runtime.wire.worker import Batch, ItemOutput, WorkerRun, WorkerRuns, batches

if TYPE_CHECKING:
    from adk_airflow.runtime.adk.runner import Run, RunResult
    from adk_airflow.runtime.inbox import Inbox
    from adk_airflow.runtime.task import Task

LABEL_LENGTH = 120
_LABEL_KEYS = ("label", "query", "question", "name", "title", "id")


class AdkItemsOperator(AdkGraphOperator):
    """Makes the list of a parallel worker, as ADK does: a list as it is, anything else as one item.

    Returns a list with one element per mapped task: ``{"label": text for people, "batch": JSON text}``.

    Args:
        batch_size: Items per mapped task; None: one, or as many as Airflow's ``[core] max_map_length`` asks for.
    """

    custom_operator_name = "ADK items"

    def __init__(self, *, batch_size: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.batch_size = batch_size

    def run(self, task: Task) -> RunResult:
        """Leaves the worker's runs in the envelope, and makes the list to map over."""
        from airflow.sdk import conf

        from adk_airflow.runtime.adk import graph
        from adk_airflow.runtime.adk.runner import RunResult

        node = graph.find_node(task.source.workflow, self.spec.node)
        triggers = [arrival.trigger for arrival in task.inbox.arrivals]
        lists = [graph.worker_items(node, trigger.input) for trigger in triggers]
        lengths = list(map(len, lists))
        size = self.batch_size or smallest_batch(lengths, conf.getint("core", "max_map_length"))
        found = batches(lists, size)
        digits = len(str(sum(lengths)))
        seal = sealing.Sealing()
        task.received = [self._element(task, batch, digits, seal) for batch in found]
        seal.warn(task.where)
        runs = tuple(
            WorkerRun(length, trigger.branch, trigger.sub_branch) for length, trigger in zip(lengths, triggers, strict=True)
        )
        task.outbox = Outbox(worker=WorkerRuns(runs, len(found)))
        self.log.info("%d item(s) in %d task(s)", sum(lengths), len(found))
        return RunResult(state=task.inbox.values)

    def _element(self, task: Task, batch: Batch, digits: int, seal: Seal) -> dict[str, str]:
        def encode(item: Item) -> Any:
            try:
                return seal(codec.encode(item.value), "the list of its items")
            except ValueNotTransferableError as error:
                raise ValueNotTransferableError(
                    f"{task.where}: item {item.index} cannot travel to another task: {error}"
                ) from None

        # The number first, with leading zeros: Airflow's UI sorts the mapped tasks by this text.
        first, last = (f"{item.index + 1:0{digits}}" for item in (batch.items[0], batch.items[-1]))
        label = f"{first if first == last else f'{first}-{last}'} · {item_label(batch.items[0].value)}"
        return {"label": label, "batch": batch.dumps(encode)}

    def plain_output(self, task: Task, envelope: Envelope) -> Any:
        """The list to map over."""
        return task.received

    def skip_untriggered(self, task: Task, envelope: Envelope, output: Any) -> None:
        """Nothing: the last of the worker's tasks does it."""


def smallest_batch(lengths: Sequence[int], most: int) -> int:
    """How many items a mapped task must take so that lists of these lengths need at most ``most`` tasks (1 if they can't)."""
    size = max(1, math.ceil(sum(lengths) / most))
    while sum(math.ceil(length / size) for length in lengths) > most and size < max(lengths):
        size += 1
    return size


def item_label(value: Any) -> str:
    """A short text for one item: its ``label``, ``query``, ``name``, ``title`` or ``id``; or its first short text; or itself.

    Where it has no short text, the number under a key that ends in ``_id``. At most 120 characters on one line, without
    secrets.
    """
    shown, _ = sealing.masked(json_form.to_json(value))
    if isinstance(shown, Mapping):
        named = [shown[key] for key in _LABEL_KEYS if isinstance(shown.get(key), (str, int, float)) and _line(shown[key])]
        texts = list(filter(_line, _texts(shown)))
        short = [text for text in texts if len(text) <= LABEL_LENGTH]
        ids = [value for key, value in shown.items() if str(key).endswith(("_id", "Id", "ID")) and type(value) is int]
        shown = (named or short or ids or texts or [shown])[0]
    text = _line(shown)
    if len(text) <= LABEL_LENGTH:
        return text
    cut = text[: LABEL_LENGTH - 1]
    words = cut.rpartition(" ")[0] if text[LABEL_LENGTH - 1] != " " else cut
    return (words if len(words) > LABEL_LENGTH // 2 else cut) + "…"


def _line(shown: Any) -> str:
    """The beginning of a text, or of JSON, on one line."""
    text = shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)
    return " ".join(json_form.storable_text(text.strip()[: LABEL_LENGTH * 4]).split())


def _texts(shown: Any) -> Iterator[str]:
    """The texts in JSON data, the outer ones first."""
    level = [shown]
    while level:
        yield from (part for part in level if isinstance(part, str))
        lists = [
            list(part.values()) if isinstance(part, Mapping) else part for part in level if isinstance(part, (Mapping, list))
        ]
        level = [part for parts in lists for part in parts]


class AdkItemOperator(AdkSpecOperator):
    """Runs the items of one mapped task at once, each as ADK's parallel worker would.

    Args:
        element: One element of what the ``items`` task returned.
    """

    template_fields: Sequence[str] = ("element", *AdkSpecOperator.template_fields)
    custom_operator_name = "ADK item"

    def __init__(self, *, element: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.element = element

    def receive(self, task: Task) -> Inbox:
        """Reads the batch, and what the ``items`` task was given."""
        from adk_airflow.runtime.inbox import merge

        runs, envelope = _read_runs(task, self.spec.items_task)
        batch = self.read_batch(task.context)
        task.received = (batch, runs.runs[batch.run].trigger)
        return merge([envelope])

    def read_batch(self, context: Any) -> Batch:
        """The items, from the element.

        Raises:
            EnvelopeError: The element is not what the ``items`` task makes, or holds a value that is not allowed.
        """
        try:
            context["adk_label"] = self.element["label"]
            return Batch.loads(self.element["batch"])
        except (EnvelopeError, KeyError, TypeError) as error:
            raise EnvelopeError(
                f"node {self.spec.node!r}: what task {self.spec.items_task!r} gave for this mapped task cannot be used"
                f" ({type(error).__name__}: {error}). Clear task {self.spec.items_task!r} so that it runs again."
            ) from error

    def run(self, task: Task) -> RunResult:
        """Runs the items at once."""
        from adk_airflow.runtime.adk import engine, graph

        node = self.spec.node
        batch, trigger = task.received

        def work(run: Run) -> Awaitable[RunResult]:
            return engine.run_items(
                run, node, batch.run, batch.items, trigger, mapped_tasks=self.max_active_tis_per_dagrun or 1
            )

        run = task.adk_run()
        body = graph.body_of(graph.find_node(task.source.workflow, node))
        result = task.watch(run, work) if graph.runs_others(body) else task.wait_for(work(run))
        outputs = [ItemOutput(batch.run, item.index, value) for item, value in zip(batch.items, result.outputs, strict=True)]
        task.outbox = Outbox(outputs=outputs)
        return result

    def plain_output(self, task: Task, envelope: Envelope) -> Any:
        """The plain output of the item, or the list of them where a mapped task takes several."""
        outputs = [task.plain(item.output) for item in envelope.outputs]
        batch, _ = task.received
        return outputs[0] if batch.single else outputs


class AdkCollectOperator(AdkGraphOperator):
    """Puts the outputs of all items in the order of the list; an empty list gives an empty list."""

    custom_operator_name = "ADK collect"

    def receive(self, task: Task) -> Inbox:
        """Reads what ``items`` and the mapped task left.

        Raises:
            EnvelopeError: Results of items are missing.
        """
        from adk_airflow.runtime.inbox import merge

        runs, items = _read_runs(task, self.spec.items_task)
        reader = Envelopes(task.context, where=task.where)
        envelopes = reader.of_mapped(self.spec.run_task, runs.mapped_tasks)
        outputs = {(item.run, item.index): item.output for found in envelopes for item in found.outputs}
        expected = sum(run.size for run in runs.runs)
        if len(outputs) != expected:
            raise EnvelopeError(
                f"{task.where}: {len(outputs)} of {expected} item results are in XCom of task {self.spec.run_task!r}, of"
                " mapped tasks in state success. Clear the others, so that they run again."
            )
        task.received = (runs, outputs)
        return merge([items, *envelopes])

    def run(self, task: Task) -> RunResult:
        """The list of outputs of each run of the worker."""
        from adk_airflow.runtime.adk import graph
        from adk_airflow.runtime.adk.runner import RunResult

        workflow, name = task.source.workflow, self.spec.node
        node = graph.find_node(workflow, name)
        result = RunResult(state=task.inbox.values)
        runs, outputs = task.received
        for number, run in enumerate(runs.runs):
            try:
                output = graph.validate_worker_output(node, [outputs[number, at] for at in range(run.size)])
            except Exception as error:
                result.error = error
                break
            branch = graph.branch_of_run(run.branch, run.sub_branch, name, number)
            result.firings.append(graph.make_firing(workflow, name, output, branch))
        return result


def _read_runs(task: Task, items_task: str) -> tuple[WorkerRuns, Envelope]:
    """The worker's runs, and the envelope of the ``items`` task with them.

    Raises:
        EnvelopeError: It left nothing, or cannot be used.
    """
    envelope = Envelopes(task.context, where=task.where).get(items_task)
    if envelope is None or envelope.worker is None:
        raise EnvelopeError(f"{task.where}: task {items_task!r} left no list of items. Clear it, so that it runs again.")
    return envelope.worker, envelope
