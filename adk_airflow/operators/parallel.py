"""A parallel worker as three Airflow tasks: ``items`` makes the list, ``run`` is mapped over it, ``collect`` gathers."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from adk_airflow.errors import EnvelopeError
from adk_airflow.operators.base import AdkOperator
from adk_airflow.operators.node import AdkGraphOperator
from adk_airflow.runtime.wire import codec, json_form
from adk_airflow.runtime.wire.envelope import XCOM_KEY, Envelope, Firing
from adk_airflow.runtime.wire.triggers import Item, Trigger

if TYPE_CHECKING:
    from adk_airflow.runtime.adk.runner import Run, RunResult
    from adk_airflow.runtime.inbox import Inbox
    from adk_airflow.runtime.source import Source

LABEL_LENGTH = 120


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

    def execute(self, context: Any) -> list[dict[str, str]]:
        """Leaves the triggers in the envelope and returns the list to map over."""
        from airflow.sdk.configuration import conf

        from adk_airflow.runtime.adk import graph
        from adk_airflow.runtime.adk.runner import RunResult

        source = self.load()
        inbox = self.read_inbox(context, source)
        node = graph.find_node(source.workflow, self.node)
        try:
            lists = [graph.worker_items(node, arrival.trigger.input) for arrival in inbox.arrivals]
        except Exception as error:
            result = RunResult(state=inbox.plain_state(), error=error)
            self.leave(context, source, inbox, result)
            raise
        given = zip(lists, (arrival.trigger for arrival in inbox.arrivals), strict=True)
        triggers = [[len(items), trigger.branch, trigger.sub_branch] for items, trigger in given]
        total = sum(map(len, lists))
        size = self.batch_size or smallest_batch(list(map(len, lists)), conf.getint("core", "max_map_length"))
        batches = [
            [(firing, at, items[at]) for at in range(first, min(first + size, len(items)))]
            for firing, items in enumerate(lists)
            for first in range(0, len(items), size)
        ]
        self.leave(context, source, inbox, RunResult(state=inbox.plain_state()), items=triggers, batches=len(batches))
        self.log.info("%d item(s) in %d task(s)", total, len(batches))
        digits = len(str(total))
        return [self._element(batch, source.workflow.name, digits) for batch in batches]

    def _element(self, batch: Sequence[tuple[int, int, Any]], workflow: str, digits: int) -> dict[str, str]:
        encoded = [[at, self.encode(value, f"item {at}", workflow)] for _, at, value in batch]
        # The number first, with leading zeros: Airflow's UI sorts the mapped tasks by this text.
        first, last = (f"{batch[end][1] + 1:0{digits}}" for end in (0, -1))
        label = f"{first if first == last else f'{first}-{last}'} · {item_label(batch[0][2])}"
        return {"label": label, "batch": codec.dumps([batch[0][0], encoded])}


def smallest_batch(lengths: Sequence[int], most: int) -> int:
    """How many items a mapped task must take so that lists of these lengths need at most ``most`` tasks (1 if they can't)."""
    size = max(1, math.ceil(sum(lengths) / most))
    while sum(math.ceil(length / size) for length in lengths) > most and size < max(lengths):
        size += 1
    return size


def item_label(value: Any) -> str:
    """A short text for one item: what its ``label``, ``query``, ``name``, ``title`` or ``id`` says, or the item itself."""
    if isinstance(value, Mapping):
        for key in ("label", "query", "question", "name", "title", "id"):
            if value.get(key):
                value = value[key]
                break
    text = json_form.storable_text(
        value if isinstance(value, str) else json.dumps(json_form.to_json(value), ensure_ascii=False)
    )
    return textwrap.shorten(text[: LABEL_LENGTH * 4], LABEL_LENGTH, placeholder="…") or text[:LABEL_LENGTH]


class AdkItemOperator(AdkOperator):
    """Runs the items of one mapped task at once, each as ADK's parallel worker would.

    Args:
        items_task: Full id of the ``items`` task.
        element: One element of what it returned.
    """

    template_fields: Sequence[str] = (*AdkOperator.template_fields, "element")
    custom_operator_name = "ADK item"

    def __init__(self, *, items_task: str, element: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.items_task = items_task
        self.element = element

    def execute(self, context: Any) -> Any:
        """Returns the plain output of the item, or the list of them for a batch of several."""
        from adk_airflow.runtime.adk import engine, graph

        source = self.load()
        firing, element = self._read_element(context)
        batch = [Item(at, value) for at, value in element]
        given, inbox = _read_items(context, source, self.items_task)
        run = self.make_run(context, source, inbox)

        def work(run: Run) -> Awaitable[RunResult]:
            return engine.run_items(run, self.node, firing, batch, _triggers(given)[firing])

        body = graph.body_of(graph.find_node(source.workflow, self.node))
        shown = graph.runs_others(body)
        result = self.await_shown(context, run, work, around=[self.node]) if shown else self.await_adk(work(run))
        items = [[firing, item.index, output] for item, output in zip(batch, result.outputs, strict=True)]
        self.leave(context, source, inbox, result, items=items)
        outputs = [json_form.for_xcom(output) for output in result.outputs]
        return outputs[0] if len(outputs) == 1 else outputs

    def _read_element(self, context: Any) -> tuple[int, list[tuple[int, Any]]]:
        """Which run of the worker the items belong to, and the items, each with its place in the list.

        Raises:
            EnvelopeError: The element is not what the ``items`` task makes, or holds a value that is not allowed.
        """
        try:
            context["adk_label"] = self.element["label"]
            firing, encoded = json.loads(self.element["batch"])
            return firing, [(int(at), codec.decode(value)) for at, value in encoded]
        except (EnvelopeError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise EnvelopeError(
                f"node {self.node!r}: what task {self.items_task!r} gave for this mapped task cannot be used"
                f" ({type(error).__name__}: {error}). Clear task {self.items_task!r} so that it runs again."
            ) from error


class AdkCollectOperator(AdkGraphOperator):
    """Puts the outputs of all items in the order of the list; an empty list gives an empty list.

    Args:
        items_task: Full id of the ``items`` task.
        run_task: Full id of the mapped task.
    """

    custom_operator_name = "ADK collect"

    def __init__(self, *, items_task: str, run_task: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.items_task = items_task
        self.run_task = run_task

    def execute(self, context: Any) -> Any:
        """Returns the list of plain outputs."""
        from adk_airflow.runtime.adk.runner import RunResult
        from adk_airflow.runtime.inbox import merge

        source = self.load()
        given, _ = _read_items(context, source, self.items_task)
        envelopes = self._results(context, given.batches, expect=sum(size for size, _, _ in given.items))
        inbox = merge([given, *envelopes])
        result = RunResult(state=inbox.plain_state())
        result.firings, result.error = self._firings(source, given, envelopes)
        return self.hand_on(context, self.leave(context, source, inbox, result))

    def _results(self, context: Mapping[str, Any], batches: int, *, expect: int) -> list[Envelope]:
        # By index: after a clear that shortened the list, the XComs of the items that are gone are still there.
        pull = context["ti"].xcom_pull
        found = pull(task_ids=[self.run_task], key=XCOM_KEY, map_indexes=range(batches)) if batches else []
        envelopes = [Envelope.loads(text, task=self.run_task) for text in found if text is not None]
        have = sum(len(envelope.items) for envelope in envelopes)
        if have != expect:
            raise EnvelopeError(
                f"node {self.node!r}: {have} of {expect} item results are in XCom of task {self.run_task!r}."
                " Clear that task so that the missing items run again."
            )
        return envelopes

    def _firings(self, source: Source, given: Envelope, envelopes: Sequence[Envelope]) -> tuple[list[Firing], Exception | None]:
        from adk_airflow.runtime.adk import graph

        outputs = {(firing, at): value for envelope in envelopes for firing, at, value in envelope.items}
        node = graph.find_node(source.workflow, self.node)
        firings: list[Firing] = []
        for number, (size, branch, sub_branch) in enumerate(given.items):
            try:
                output = graph.validate_worker_output(node, [outputs[number, at] for at in range(size)])
            except Exception as error:
                return firings, error
            run_branch = graph.branch_of_run(branch, sub_branch, self.node, number)
            firings.append(graph.make_firing(source.workflow, self.node, output, run_branch))
        return firings, None


def _read_items(context: Mapping[str, Any], source: Source, items_task: str) -> tuple[Envelope, Inbox]:
    from adk_airflow.runtime.inbox import merge

    text = context["ti"].xcom_pull(task_ids=items_task, key=XCOM_KEY, map_indexes=None)
    if text is None:
        raise EnvelopeError(f"workflow {source.workflow.name!r}: task {items_task!r} left no envelope. Clear it.")
    envelope = Envelope.loads(text, task=items_task)
    return envelope, merge([envelope])


def _triggers(given: Envelope) -> list[Trigger]:
    return [Trigger(None, branch, sub_branch) for _, branch, sub_branch in given.items]
