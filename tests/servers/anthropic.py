"""The Anthropic Messages API, as Anthropic and as Vertex AI serve it, on a loopback port.

A script sees the same properties as with GeminiServer and answers with the same replies, so one script serves both.
"""

from __future__ import annotations

import json
from typing import Any

from tests.servers.anthropic_request import AnthropicRequest, read_request
from tests.servers.replies import Call, Failure, Reply, as_reply, count_words, pieces
from tests.servers.scripted import Answer, ScriptedServer

__all__ = ["AnthropicRequest", "AnthropicServer"]

_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "api_error",
    503: "api_error",
    529: "overloaded_error",
}


class AnthropicServer(ScriptedServer[AnthropicRequest]):
    """Answers every model name. `script(request)` gives a Reply or a text.

    A JSON text becomes the call of the one tool that a request forces: that is how ADK asks this API for an output schema.
    An error()'s status is not sent, as the API has its own words for the HTTP codes; its retry_delay is the Retry-After header.
    """

    @property
    def environment(self) -> dict[str, str]:
        return {"ANTHROPIC_BASE_URL": self.url, "ANTHROPIC_API_KEY": "test-key"}

    def read(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> AnthropicRequest | None:
        return read_request(path, headers, body)

    def understand(self, request: AnthropicRequest, answer: Any) -> Reply:
        return as_reply(answer)

    def answer(self, request: AnthropicRequest, reply: Reply) -> Answer:
        streamed = bool(request.body.get("stream"))
        if reply.failure is not None and not (streamed and reply.parts):
            return _failed(reply.failure)
        message = dict(reply.body) if reply.body is not None else _message(request, reply)
        if not streamed:
            return Answer(200, message)
        events = _events(message)
        if reply.failure is not None:
            events[-3:] = [_error(reply.failure)]
        written = [f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n" for event in events]
        return Answer(200, events=tuple(written))

    def failure(self, code: int, message: str) -> Answer:
        return _failed(Failure(code, "", message))


def _failed(failure: Failure) -> Answer:
    headers = {} if failure.retry_delay is None else {"Retry-After": f"{failure.retry_delay:g}"}
    body = f"<html><h1>{failure.message}</h1></html>" if failure.page else _error(failure)
    return Answer(failure.code, body, headers={**headers, **failure.headers})


def _error(failure: Failure) -> dict[str, Any]:
    kind = _KINDS.get(failure.code, "api_error" if failure.code >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": failure.message}}


def _message(request: AnthropicRequest, reply: Reply) -> dict[str, Any]:
    content = [_block(request, part, index) for index, part in enumerate(reply.parts)]
    calling = any(block["type"] == "tool_use" for block in content)
    said = sum(count_words(part) if isinstance(part, str) else 1 for part in reply.parts)
    asked = sum(map(count_words, [request.system, *request.texts]))
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": content,
        "stop_reason": "tool_use" if calling else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": asked, "output_tokens": said},
    }


def _block(request: AnthropicRequest, part: str | Call, index: int) -> dict[str, Any]:
    # This API names every call, and no two of a conversation alike.
    new_id = f"toolu_{len(request.messages)}_{index}"
    if isinstance(part, Call):
        return {"type": "tool_use", "id": part.id or new_id, "name": part.name, "input": dict(part.args)}
    if request.forced_tool is not None:
        return {"type": "tool_use", "id": new_id, "name": request.forced_tool, "input": _forced(request, json.loads(part))}
    return {"type": "text", "text": part}


def _forced(request: AnthropicRequest, value: Any) -> dict[str, Any]:
    """The value as a tool's input: under the schema's only property unless it is an object already."""
    if isinstance(value, dict):
        return value
    (name,) = (request.response_schema or {})["properties"]
    return {name: value}


def _events(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The message as a stream's events: each block in several pieces."""
    usage = message["usage"]
    opened = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": opened}]
    for index, block in enumerate(message["content"]):
        if block["type"] == "tool_use":
            empty = {**block, "input": {}}
            written = json.dumps(block["input"], ensure_ascii=False)
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(written)]
        else:
            empty = {**block, "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        events.extend({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": message.get("stop_sequence")}
    events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage["output_tokens"]}})
    events.append({"type": "message_stop"})
    return events
