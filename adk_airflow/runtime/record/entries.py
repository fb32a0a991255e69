"""What the recorder tells its readers: one entry for each thing that ended while ADK ran."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["node", "model", "tool", "event"]
Status = Literal["ok", "failed", "waiting", "cancelled"]


@dataclass(frozen=True)
class Entry:
    """One run of a node, one call of a model or of a tool, or one event of ADK's.

    Attributes:
        kind: Which of them.
        path: ADK's path of the node run that it belongs to, such as ``wf@1/review@3``; of a node its own. Empty below an agent
            that is the root.
        agent: Name of the agent; empty outside of one. Of an event its author.
        branch: ADK's branch; empty for none.
        name: Of a node its name, of a model call the model, of a tool call the tool, of an event its id.
        status: ``ok``, ``failed`` (a failed attempt of a node is an entry of its own), ``waiting`` (for a person) or
            ``cancelled`` (another node failed, or the task was ended).
        began: When, in seconds since 1970.
        seconds: How long it took; None for an event.
        replayed: It was answered from the journal: an earlier try of the task made it.
        error: ``type: message`` of a failed one, not masked.
        content: What was said, as live objects that a reader turns into text at once. Of a node ``input``, ``output``,
            ``route``; of a model call ``request`` (ADK's LlmRequest) and ``responses`` (a list of LlmResponse); of a tool call
            ``args``, ``result``, ``call_id``; of an event ``event``.
    """

    kind: Kind
    path: str
    name: str
    agent: str = ""
    branch: str = ""
    status: Status = "ok"
    began: float = 0.0
    seconds: float | None = None
    replayed: bool = False
    error: str = ""
    content: Mapping[str, Any] = field(default_factory=dict)


Reader = Callable[[Entry], None]
