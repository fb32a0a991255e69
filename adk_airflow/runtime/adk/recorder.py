"""Records what happens while ADK runs: an ADK plugin, the first of all, and the models that agents are given.

A call of a model is answered from the journal in the place of the model itself, so that all callbacks of agents and plugins run
again as they did; a call of a tool by this plugin, before the callbacks that could answer it in the tool's place.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from pydantic import ValidationError

from adk_airflow.errors import AdkAirflowError
from adk_airflow.runtime.adk import record_form
from adk_airflow.runtime.adk.state_watch import StateWatch
from adk_airflow.runtime.record.entries import Entry
from adk_airflow.runtime.record.journal import Kept, fingerprint
from adk_airflow.runtime.record.paths import node_of
from adk_airflow.runtime.wire import codec

if TYPE_CHECKING:
    from google.adk.agents.context import Context
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.base_tool import BaseTool

    from adk_airflow.runtime.record.task_record import TaskRecord

NODE_PATH: ContextVar[str] = ContextVar("adk_airflow_node_path", default="")
"""The path of the node run that the code runs in; empty below an agent that is the root."""

_CALL: ContextVar[str] = ContextVar("adk_airflow_tool_call", default="")
"""The place of the tool call that the code runs in: what an agent does there that a tool runs lies below it."""


def tool_call() -> str:
    """The place of the tool call that the code runs in; empty outside of one."""
    return _CALL.get()


def place_of_code() -> str:
    """Where the code runs: in a tool call, else in a run of a node."""
    return _CALL.get() or NODE_PATH.get()


@dataclass
class _Asked:
    """A model call that is about to be made."""

    request: LlmRequest
    line: str
    index: int
    path: str
    agent: str
    branch: str


@dataclass
class _Call:
    """A tool call that runs.

    Attributes:
        line: Its line.
        place: Its place.
        entry: What is known of it.
        args: Its arguments, as text.
        durable: It need not be made again.
        below: What the paths of nodes begin with that run as this tool.
        reset: Says where the code runs after it.
        events: The events of these nodes.
    """

    line: str
    place: str
    entry: Entry
    args: str
    durable: bool
    below: str
    reset: Any
    events: list[Event] = field(default_factory=list)


class Recorder(BasePlugin):
    """Records one run of ADK.

    Args:
        record: The record of the try.

    Attributes:
        record: The same.
        state: What changed in the session's state.
        on_event: Told of each event of the root's invocation, before another plugin replaces it.
        again: The ids of the event objects that are given to ADK again.
        give_call_again: Gives ADK's session the events again of the nodes that ran in a finished call of a tool.
        failed_calls: What calls failed with, and whether of a ``"model"`` or a ``"tool"``.
    """

    def __init__(self, record: TaskRecord) -> None:
        super().__init__(name="adk_airflow_recorder")
        self.record = record
        self.state = StateWatch()
        self.on_event: list[Callable[[Event], None]] = []
        self.again: set[int] = set()
        self.give_call_again: Callable[[Kept, InvocationContext], Awaitable[None]] | None = None
        self.failed_calls: list[tuple[BaseException, str]] = []
        self._asked: dict[int, _Asked] = {}
        self._models_asked: Counter[str] = Counter()
        self._same_calls: Counter[str] = Counter()
        self._calls: dict[int, _Call] = {}
        self._invocation_id: str | None = None

    # -- where -------------------------------------------------------------------------------------------

    def line(self, ctx: Context) -> str:
        """The line that a context belongs to: an agent in a node run, on its branch."""
        within = "" if self._is_root(ctx.invocation_id) else f"{_CALL.get()}>"
        return f"{within or NODE_PATH.get()}|{branch_of(ctx)}|{ctx.agent_name}"

    def _is_root(self, invocation_id: str) -> bool:
        self._invocation_id = self._invocation_id or invocation_id
        return invocation_id == self._invocation_id

    # -- models ------------------------------------------------------------------------------------------

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """Notes which agent is about to ask."""
        line = self.line(callback_context)
        index = self._models_asked[line]
        self._models_asked[line] += 1
        # One that a callback answered in the model's place is not asked for.
        self._asked = {name: asked for name, asked in self._asked.items() if asked.line != line}
        path = (callback_context.node_path or "") if self._is_root(callback_context.invocation_id) else NODE_PATH.get()
        self._asked[id(llm_request)] = _Asked(
            llm_request, line, index, path, callback_context.agent_name, branch_of(callback_context)
        )

    async def ask(
        self, model: BaseLlm, generate: Callable[..., AsyncGenerator[LlmResponse, None]], request: LlmRequest, stream: bool
    ) -> AsyncGenerator[LlmResponse, None]:
        """What the model answers, or has answered in an earlier try.

        Args:
            model: The model.
            generate: Asks it.
            request: What is asked.
            stream: It answers in parts.
        """
        asked = self._asked.pop(id(request), None) or _Asked(request, f"{place_of_code()}|?|", 0, NODE_PATH.get(), "", "")
        asked_for = fingerprint([record_form.of_request(request), stream, type(model).__qualname__])
        place = f"{asked.line}#model{asked.index}"
        name = request.model or model.model
        began = time.time()

        def note(responses: list[LlmResponse], **more: Any) -> None:
            content = {"request": request, "responses": responses}
            self.record.note(
                Entry("model", asked.path, name, agent=asked.agent, branch=asked.branch, began=began,
                      seconds=time.time() - began, content=content, **more)
            )  # fmt: skip

        answered = self._answered_before(asked.line, place, asked_for)
        if answered is not None:
            note(answered, replayed=True)
            for response in answered:
                yield response
            return
        await self.record.settle()
        try:
            await self.record.budgets.before_call(node_of(asked.path), asked.agent, name)
        except Exception as error:
            self.failed_calls.append((error, "model"))  # no answer of the model is to blame
            raise
        began = time.time()
        texts: list[str] = []
        responses: list[LlmResponse] = []
        held: LlmResponse | None = None
        try:
            async with contextlib.aclosing(generate(request, stream=stream)) as answers:
                async for response in answers:
                    texts.append(record_form.of_response(response))
                    responses.append(response)
                    if held is not None:
                        yield held
                    # The last one is only handed on when the call is known to have ended: tools run on it.
                    held = response if not response.partial else None
                    if held is None:
                        yield response
        except Exception as error:
            self.failed_calls.append((error, "model"))
            note(responses, status="failed", error=words_of(error))
            await self.record.budgets.after_call()
            raise
        except BaseException:
            note(responses, status="cancelled")
            raise
        note(responses)
        self.record.journal.add("model", asked.line, place, asked_for, {"responses": texts})
        await self.record.budgets.after_call()
        if held is not None:
            yield held

    def _answered_before(self, line: str, place: str, asked_for: str) -> list[LlmResponse] | None:
        kept = self.record.journal.find("model", line, place, asked_for)
        if kept is None:
            return None
        try:
            return [LlmResponse.model_validate_json(text) for text in kept.data["responses"]]
        except (ValidationError, KeyError, TypeError):  # made by another version of ADK
            self.record.journal.run_live(line)
            return None

    # -- tools -------------------------------------------------------------------------------------------

    async def before_tool_callback(self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any) -> Any:
        """Answers in the tool's place what it has answered in an earlier try."""
        line = self.line(tool_context)
        args = record_form.of_arguments(tool_args)
        same = f"{line}#tool{self._models_asked[line]}:{tool.name}:{fingerprint(args)}"
        place = f"{same}:{self._same_calls[same]}"
        self._same_calls[same] += 1
        entry = Entry(
            "tool", tool_context.node_path or "", tool.name, agent=_agent(tool_context), branch=branch_of(tool_context),
            began=time.time(), content={"args": dict(tool_args), "call_id": tool_context.function_call_id},
        )  # fmt: skip
        durable = record_form.is_durable(tool)
        kept = self.record.journal.find("tool", line, place, fingerprint(args)) if durable else None
        if kept is not None:
            with contextlib.suppress(AdkAirflowError, ValidationError, KeyError, TypeError):
                invocation = tool_context.get_invocation_context()
                if self.give_call_again is not None and self._is_root(tool_context.invocation_id):
                    await self.give_call_again(kept, invocation)
                return self._replay(kept, entry, tool_args, tool_context)
        if self.record.journal.began_before(place):
            self.record.warn(
                f"Tool {tool.name!r} was called in an earlier try, which ended before the call did: whether it did its work, in"
                " whole or in part, is not known. It is called again, with the same arguments."
            )
        await self.record.settle()
        self.record.journal.begin(place)
        below = f"{tool_context.node_path or ''}/{tool.name}@{tool_context.function_call_id}"
        self._calls[id(tool_context)] = _Call(line, place, entry, args, durable, below, _CALL.set(place))
        return None

    def _replay(self, kept: Kept, entry: Entry, tool_args: dict[str, Any], tool_context: Any) -> Any:
        result = codec.decode(kept.data["result"])
        actions = record_form.actions_from(kept.data["actions"])
        state = {key: codec.decode(value) for key, value in kept.data["state"].items()}
        if (args := kept.data.get("args")) is not None:  # as a callback had changed them
            tool_args.clear()
            tool_args.update(codec.decode(args))
        for name in actions.model_fields_set - {"state_delta"}:
            setattr(tool_context.actions, name, getattr(actions, name))
        tool_context.state.update({key: codec.decode(value) for key, value in kept.data["delta"].items()})
        tool_context.session.state.update(state)
        content = {**entry.content, "result": result}
        self.record.note(_ended(entry, replayed=True, content=content))
        return {"result": None} if result is None else result

    async def after_tool_callback(self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any, result: Any) -> None:
        """Keeps what the tool answered."""
        call = self._calls.pop(id(tool_context), None)
        if call is None:
            return
        _leave(call)
        self.record.note(_ended(call.entry, content={**call.entry.content, "result": result}))
        actions = tool_context.actions
        asks = actions.requested_auth_configs or actions.requested_tool_confirmations
        if asks or not call.durable or (tool.is_long_running and not result):
            return
        try:
            data: dict[str, Any] = {
                "result": codec.encode(result),
                "actions": record_form.of_actions(actions),
                "delta": {key: codec.encode(value) for key, value in actions.state_delta.items()},
            }
            if call.events:
                data["events"] = [{"at": at, **record_form.of_event(event)} for at, event in enumerate(call.events)]
            if record_form.of_arguments(tool_args) != call.args:
                data["args"] = codec.encode(tool_args)
        except (AdkAirflowError, ValueError, TypeError):
            return  # it has no form in which another process could have it
        self.state.note(data["delta"])
        data["state"] = self.state.changed(tool_context.session.state)
        self.record.journal.add("tool", call.line, call.place, fingerprint(call.args), data)

    async def on_tool_error_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, error: Exception) -> None:
        """Notes that the tool failed; a callback may still answer in its place."""
        call = self._calls.get(id(tool_context))
        if call is not None:
            _leave(call)
            self.failed_calls.append((error, "tool"))
            self.record.note(_ended(call.entry, status="failed", error=words_of(error)))

    # -- events ------------------------------------------------------------------------------------------

    async def on_event_callback(self, *, invocation_context: Any, event: Event) -> None:
        """Hands an event on, not of an agent that a tool runs in an invocation of its own."""
        if not self._is_root(invocation_context.invocation_id):
            return
        self.record.note(
            Entry("event", event.node_info.path, event.id, agent=event.author, branch=event.branch or "",
                  began=event.timestamp, replayed=id(event) in self.again, content={"event": event})
        )  # fmt: skip
        for call in self._calls.values():
            if event.node_info.path.startswith(call.below):
                call.events.append(event)
        for take in self.on_event:
            take(event)

    async def before_run_callback(self, *, invocation_context: Any) -> None:
        """Notes which invocation is the root's, the first, and the state that it finds."""
        if self._invocation_id is None and self.record.journal.durable:
            self.state.begin(invocation_context.session.state)
        self._is_root(invocation_context.invocation_id)

    def call_failed(self, error: BaseException) -> str:
        """Whether an error is that of a call of a ``"model"`` or a ``"tool"``, or came of it; empty if not."""
        seen: BaseException | None = error
        while seen is not None:
            for failed, kind in self.failed_calls:
                if failed is seen:
                    return kind
            seen = seen.__cause__ or seen.__context__
        return ""


def _ended(entry: Entry, **more: Any) -> Entry:
    return replace(entry, seconds=time.time() - entry.began, **more)


def _leave(call: _Call) -> None:
    """The code no longer runs in the call."""
    if call.reset is not None:
        with contextlib.suppress(ValueError):  # ended in another context
            _CALL.reset(call.reset)
        call.reset = None


def words_of(error: BaseException) -> str:
    """``type: message`` of an error."""
    return f"{type(error).__name__}: {error}"


def branch_of(ctx: Context) -> str:
    """ADK's branch; empty for none."""
    return ctx.get_invocation_context().branch or ""


def _agent(ctx: Context) -> str:
    return str(ctx.agent_name or "")
