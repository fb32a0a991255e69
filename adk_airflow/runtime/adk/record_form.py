"""ADK's requests, answers, events and actions as JSON data for the journal, and back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions

from adk_airflow.runtime.wire import codec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.adk.tools.base_tool import BaseTool

_OWN_ID = "adk-"  # of calls that ADK numbers itself, at random
_UNSTABLE = {"http_options": True}


def of_request(request: LlmRequest) -> Any:
    """What a model is asked, without what differs between two tries that ask the same."""
    contents = [content.model_dump(mode="json", exclude_none=True) for content in request.contents]
    for content in contents:
        for part in content.get("parts") or ():
            for call in (part.get("function_call"), part.get("function_response")):
                if call and str(call.get("id") or "").startswith(_OWN_ID):
                    del call["id"]
    config = request.config and request.config.model_dump(
        mode="json", exclude_none=True, exclude=_UNSTABLE, fallback=_name_of, warnings=False
    )
    return {"model": request.model, "contents": contents, "config": config}


def _name_of(value: Any) -> str:
    return str(getattr(value, "__qualname__", type(value).__qualname__))


def of_response(response: LlmResponse) -> str:
    """An answer of a model, as text."""
    return response.model_dump_json(exclude_none=True)


def of_arguments(args: Mapping[str, Any]) -> str:
    """The arguments of a tool, as text that is the same for the same."""
    return json.dumps(args, sort_keys=True, default=repr)


def of_actions(actions: EventActions) -> dict[str, Any]:
    """The actions of a tool or an event, without the state."""
    return actions.model_dump(mode="json", exclude_none=True, exclude_defaults=True, exclude={"state_delta"}, fallback=_name_of)


def actions_from(data: Mapping[str, Any]) -> EventActions:
    """The actions as they were."""
    return EventActions.model_validate(data)


def of_event(event: Event) -> dict[str, Any]:
    """An event, its values in exact form.

    Raises:
        ValueNotTransferableError: A value has no JSON form.
    """
    data = event.model_dump(
        mode="json", exclude_none=True, exclude_defaults=True, exclude={"output": True, "actions": {"state_delta"}}
    )
    if event.output is not None:
        data["output"] = codec.encode(event.output)
    if event.actions.state_delta:
        data["state_delta"] = {key: codec.encode(value) for key, value in event.actions.state_delta.items()}
    return data


def event_from(data: Mapping[str, Any], invocation_id: str) -> Event:
    """The event as it was, in the invocation that goes on."""
    rest = dict(data)
    output, delta = rest.pop("output", None), rest.pop("state_delta", {})
    event = Event.model_validate({**rest, "invocation_id": invocation_id})
    event.output = codec.decode(output)
    event.actions.state_delta.update({key: codec.decode(value) for key, value in delta.items()})
    return event


def is_durable(tool: BaseTool) -> bool:
    """Whether what a tool has done once need not be done again: not where it, or its function, says ``durable = False``."""
    said = (tool, getattr(tool, "func", None), getattr(tool, "custom_metadata", None))
    for holder in said:
        durable = holder.get("durable") if isinstance(holder, dict) else getattr(holder, "durable", None)
        if durable is False:
            return False
    return True
