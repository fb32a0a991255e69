"""A request to the Gemini API, read for scripts and assertions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

_PATH = re.compile(
    r"/v1(?:alpha|beta1?)?/(?:projects/[^/]+/locations/[^/]+/)?(?:publishers/[^/]+/)?models/(?P<model>[^/:]+):(?P<method>\w+)"
)
METHODS = ("generateContent", "streamGenerateContent", "embedContent", "batchEmbedContents", "countTokens", "predict")


@dataclass(frozen=True)
class GeminiRequest:
    """`method` is one of METHODS ("predict" is how Vertex AI embeds with its older models), `model` such as
    "gemini-2.5-flash", `body` the JSON as it was sent, `headers` by their names in lower case, `path` with its query."""

    method: str
    model: str
    body: dict[str, Any]
    headers: dict[str, str] = field(repr=False)  # keys and tokens
    path: str

    @property
    def system(self) -> str:
        """The text of the system instruction, or an empty one."""
        return _text(self.body.get("systemInstruction") or {})

    @property
    def contents(self) -> list[dict[str, Any]]:
        """The contents in their order, also those to embed or to count."""
        body = self.body
        if "requests" in body:
            return [request["content"] for request in body["requests"]]
        if "instances" in body:
            return [{"parts": [{"text": instance["content"]}]} for instance in body["instances"]]
        if "content" in body:
            return [body["content"]]
        contents: list[dict[str, Any]] = body.get("contents", [])
        return contents

    @property
    def texts(self) -> list[str]:
        """Per content the text of its text parts."""
        return [_text(content) for content in self.contents]

    @property
    def last_text(self) -> str:
        """The text of the last user content's text parts: empty if that holds only function responses."""
        spoken = [content for content in self.contents if content.get("role", "user") == "user"]
        return _text(spoken[-1]) if spoken else ""

    @property
    def tools(self) -> dict[str, dict[str, Any]]:
        """The declaration of each function, by its name. The model-side tools (googleSearch) are in `body`."""
        listed = [tool.get("functionDeclarations", []) for tool in self.body.get("tools", [])]
        return {declaration["name"]: declaration for declarations in listed for declaration in declarations}

    @property
    def function_responses(self) -> list[dict[str, Any]]:
        """{"name", "response", "id"} of each function response in the last content; "id" is None where none was sent."""
        parts = self.contents[-1].get("parts", []) if self.contents else []
        answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
        return [{"name": answer["name"], "response": answer.get("response", {}), "id": answer.get("id")} for answer in answers]

    @property
    def response_schema(self) -> dict[str, Any] | None:
        """The schema that the answer must follow, as sent."""
        config = self.body.get("generationConfig", {})
        schema: dict[str, Any] | None = config.get("responseJsonSchema") or config.get("responseSchema")
        return schema

    @property
    def dimensions(self) -> int | None:
        """The length of the vectors that was asked for."""
        first = self.body["requests"][0] if self.body.get("requests") else self.body
        for options in (first, first.get("embedContentConfig", {}), first.get("parameters", {})):
            if "outputDimensionality" in options:
                return int(options["outputDimensionality"])
        return None

    @property
    def api_key(self) -> str | None:
        query = parse_qs(urlsplit(self.path).query)
        return self.headers.get("x-goog-api-key") or query.get("key", [None])[0]


def read_request(path: str, headers: dict[str, str], body: dict[str, Any]) -> GeminiRequest | None:
    """The request, or None for a path that is not one of the methods'."""
    match = _PATH.fullmatch(urlsplit(path).path)
    if match is None or match["method"] not in METHODS:
        return None
    return GeminiRequest(match["method"], match["model"], body, headers, path)


def _text(content: dict[str, Any]) -> str:
    return "".join(part.get("text", "") for part in content.get("parts", []))
