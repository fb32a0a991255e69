"""Reports each run of a node while a workflow runs in ADK: its path, output, route, seconds.

ADK tells two things about a node run: events, which carry its path, output and route but do not come for a node without
output, and OpenTelemetry spans, which begin and end with each run but do not name its path. A ``NodeRunWatch`` reads both.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from opentelemetry.context import Context

_NODE = "invoke_node "
_NODE_SPANS = (_NODE, "invoke_agent ", "invoke_workflow ")
_SESSION = "gen_ai.conversation.id"
_EVENT_IDS = "gcp.vertex.agent.associated_event_ids"
_ERROR = trace.StatusCode.ERROR


@dataclass(frozen=True)
class NodeRun:
    """One run, or one failed attempt, of a node.

    Attributes:
        path: ADK's path of the run, such as ``ticket_router@1/classify@2``.
        status: ``ok``, ``failed``, ``waiting`` (for a person) or ``cancelled`` (another node failed, or the task was ended).
        output: What the node gave, None for nothing.
        route: The route it took, None for none.
        seconds: How long it ran; None when ADK's spans are switched off.
        error: ``type: message`` of a failed one.
    """

    path: str
    status: str
    output: Any = None
    route: Any = None
    seconds: float | None = None
    error: str = ""


@dataclass
class _Seen:
    """What the events of a path have shown so far."""

    output: Any = None
    route: Any = None
    waiting: bool = False


@dataclass
class _Spans:
    """What is known below one open span: how often each name ran, and the failed paths that may run again."""

    path: str
    runs: dict[str, int] = field(default_factory=dict)
    failed: dict[str, list[str]] = field(default_factory=dict)


class NodeRunWatch(SpanProcessor):
    """Watches the run of one session.

    Args:
        session_id: Id of the ADK session.
        report: Called with each node run as it ends.
    """

    def __init__(self, session_id: str, report: Callable[[NodeRun], None]) -> None:
        self._session_id = session_id
        self._report = report
        self._open: dict[int, _Spans] = {}
        self._seen: dict[str, _Seen] = {}
        self._path_of_event: dict[str, str] = {}
        self._reported: set[str] = set()

    def start(self) -> None:
        """Subscribes to ADK's spans. Sets up OpenTelemetry when the process has not, without any exporter."""
        provider = trace.get_tracer_provider()
        if not isinstance(provider, TracerProvider):
            # Airflow marks a task's span as not to be recorded when it has no tracing of its own.
            provider = TracerProvider(sampler=ALWAYS_ON)
            trace.set_tracer_provider(provider)
        provider.add_span_processor(self)

    def on_event(self, event: Event) -> None:
        """Takes one event of the run."""
        path = event.node_info.path
        self._path_of_event[event.id] = path
        if event.partial or not path or event.error_code:
            return
        seen = self._seen.setdefault(path, _Seen())
        if event.actions.route is not None:
            seen.route = event.actions.route
        seen.waiting = seen.waiting or bool(event.long_running_tool_ids)
        output = event.output
        if output is None and event.node_info.message_as_output:
            output = event.content
        if output is not None:
            for claimer in event.node_info.output_for or [path]:
                self._seen.setdefault(claimer, _Seen()).output = output

    def finish(self) -> None:
        """Reports the node runs that had an output or a route but no span."""
        for path, seen in self._seen.items():
            if "/" in path and path not in self._reported and (seen.output is not None or seen.route is not None):
                self._report(NodeRun(path, "waiting" if seen.waiting else "ok", seen.output, seen.route))
        self._session_id = ""  # OpenTelemetry cannot unsubscribe: from here on nothing is taken
        self._open.clear()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Part of OpenTelemetry's interface: notes the path of a node run that begins."""
        name = _node_name(span)
        if not name or span.context is None:
            return
        parent = self._open.get(span.parent.span_id) if span.parent is not None else None
        if parent is not None:
            again = parent.failed.get(name)
            if again:
                path = again.pop(0)
            else:
                parent.runs[name] = parent.runs.get(name, 0) + 1
                path = f"{parent.path}/{name}@{parent.runs[name]}"
            self._open[span.context.span_id] = _Spans(path)
        elif self._session_id and (span.attributes or {}).get(_SESSION) == self._session_id:
            self._open[span.context.span_id] = _Spans(f"{name}@1")

    def on_end(self, span: ReadableSpan) -> None:
        """Part of OpenTelemetry's interface: reports a node run that ends."""
        own = self._open.pop(span.context.span_id, None) if span.context is not None else None
        if own is None or "/" not in own.path:
            return
        path = self._path_by_events(span, own.path)
        status, error = "ok", ""
        if span.status.status_code is _ERROR:
            status, error = "failed", span.status.description or ""
            parent = self._open.get(span.parent.span_id) if span.parent is not None else None
            if parent is not None:
                parent.failed.setdefault(_node_name(span), []).append(path)
        elif (passing := sys.exc_info()[1]) is not None and not isinstance(passing, Exception):
            # A span ends while the exception passes it, and only marks Exceptions: a cancellation, or Airflow's timeout.
            status = "cancelled"
        seen = self._seen.pop(path, _Seen())
        if status == "ok" and seen.waiting:
            status = "waiting"
        self._reported.add(path)
        seconds = (span.end_time - span.start_time) / 1e9 if span.end_time and span.start_time else None
        self._report(NodeRun(path, status, seen.output, seen.route, seconds, error))

    def _path_by_events(self, span: ReadableSpan, counted: str) -> str:
        """The path that the run's own events carry, with run ids that a node chose; without events the counted one."""
        ids = (span.attributes or {}).get(_EVENT_IDS)
        known = [self._path_of_event[name] for name in ids if name in self._path_of_event] if isinstance(ids, Sequence) else []
        if known:
            return known[0]
        if counted not in self._seen and not span.name.startswith(_NODE):
            # An agent that another one called or handed over to: its span does not lie below the other's.
            ending = f"/{_node_name(span)}@"
            return next((path for path in self._seen if ending in path and "/" not in path.rpartition(ending)[2]), counted)
        return counted


def _node_name(span: ReadableSpan) -> str:
    """The node's name; nothing for a span of something else, such as a model call."""
    return next((span.name.removeprefix(start) for start in _NODE_SPANS if span.name.startswith(start)), "")
