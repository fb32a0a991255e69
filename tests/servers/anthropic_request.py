"""A request to the Anthropic Messages API, with the properties of a GeminiRequest, so that one script serves both."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

_VERTEX = re.compile(r"/(?:v1/)?projects/[^/]+/locations/[^/]+/publishers/anthropic/models/(?P<model>[^/:]+):\w+")


@dataclass(frozen=True)
class AnthropicRequest:
    """`model` such as "claude-sonnet-4-20250514", `body` the JSON as it was sent, `headers` by their names in lower case,
    `path` with its query."""

    model: str
    body: dict[str, Any]
    headers: dict[str, str] = field(repr=False)  # keys and tokens
    path: str

    @property
    def method(self) -> str:
        """The Gemini API's word for what is asked."""
        return "streamGenerateContent" if self.body.get("stream") else "generateContent"

    @property
    def system(self) -> str:
        """The text of the system instruction, or an empty one."""
        return _text(self.body.get("system") or [])

    @property
    def messages(self) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = self.body["messages"]
        return messages

    @property
    def texts(self) -> list[str]:
        """Per message the text of its text blocks."""
        return [_text(message["content"]) for message in self.messages]

    @property
    def last_text(self) -> str:
        """The text of the last user message's text blocks: empty if that holds only tool results."""
        spoken = [message for message in self.messages if message["role"] == "user"]
        return _text(spoken[-1]["content"]) if spoken else ""

    @property
    def tools(self) -> dict[str, dict[str, Any]]:
        """The definition of each tool, by its name."""
        return {tool["name"]: tool for tool in self.body.get("tools", [])}

    @property
    def forced_tool(self) -> str | None:
        """The one tool that the model must call."""
        choice = self.body.get("tool_choice", {})
        return choice["name"] if choice.get("type") == "tool" else None

    @property
    def function_responses(self) -> list[dict[str, Any]]:
        """{"name", "response", "id"} of each tool result in the last message; "response" is a dict, as the tool gave it."""
        blocks = [block for message in self.messages for block in _blocks(message["content"])]
        names = {block["id"]: block["name"] for block in blocks if block["type"] == "tool_use"}
        results = [block for block in _blocks(self.messages[-1]["content"]) if block["type"] == "tool_result"]
        return [
            {"name": names[result["tool_use_id"]], "response": _result(result), "id": result["tool_use_id"]}
            for result in results
        ]

    @property
    def response_schema(self) -> dict[str, Any] | None:
        """The schema that the answer must follow: that of the tool which must be called, for want of another way."""
        return self.tools[self.forced_tool]["input_schema"] if self.forced_tool else None

    @property
    def api_key(self) -> str | None:
        """The key, or on Vertex AI the token. Clients sent a key as x-api-key before their version 2."""
        bearer = self.headers.get("authorization", "").removeprefix("Bearer ")
        return self.headers.get("x-api-key") or bearer or None


def read_request(path: str, headers: dict[str, str], body: dict[str, Any]) -> AnthropicRequest | None:
    """The request, or None for a path that is neither the API's own nor Vertex AI's."""
    place = urlsplit(path).path
    if place == "/v1/messages":
        return AnthropicRequest(body["model"], body, headers, path)
    match = _VERTEX.fullmatch(place)
    return AnthropicRequest(match["model"], body, headers, path) if match else None


def _blocks(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _text(content: str | list[dict[str, Any]]) -> str:
    return "".join(block["text"] for block in _blocks(content) if block["type"] == "text")


def _result(block: dict[str, Any]) -> dict[str, Any]:
    """What the tool gave, under "result" if it was no object, as the Gemini API has it."""
    words = _text(block.get("content", []))
    try:
        value = json.loads(words)
    except ValueError:
        value = words
    return value if isinstance(value, dict) else {"result": value}
