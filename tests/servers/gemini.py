"""The Gemini REST API, as Google AI Studio and as Vertex AI serve it, on a loopback port.

    def script(request: GeminiRequest) -> Reply:
        if request.function_responses:
            return text(f"It is {request.function_responses[0]['response']['result']}.")
        return call("clock", {"city": request.last_text})

    with GeminiServer(script) as server:
        client = genai.Client(api_key="test-key", http_options={"base_url": server.url})

Embeddings and token counts are made of the text's words, unless the script answers with an error() or a raw() body.
"""

from __future__ import annotations

import json
from typing import Any

from tests.servers.embeddings import DIMENSIONS, embed
from tests.servers.gemini_request import GeminiRequest, read_request
from tests.servers.replies import (
    STATUSES,
    Call,
    Failure,
    Reply,
    as_reply,
    call,
    calls,
    count_words,
    counted,
    cut,
    error,
    pieces,
    raw,
    reset,
    slow,
    structured,
    text,
    then,
)
from tests.servers.scripted import Answer, ScriptedServer, ScriptError

__all__ = [
    "GeminiRequest",
    "GeminiServer",
    "Reply",
    "ScriptError",
    "call",
    "calls",
    "counted",
    "cut",
    "error",
    "raw",
    "reset",
    "slow",
    "structured",
    "text",
    "then",
]

_RPC = "type.googleapis.com/google.rpc"
_GENERATING = ("generateContent", "streamGenerateContent")


class GeminiServer(ScriptedServer[GeminiRequest]):
    """Answers every model name. `script(request)` gives a Reply or a text, and for embeddings and counts also None."""

    @property
    def environment(self) -> dict[str, str]:
        return {"GOOGLE_GEMINI_BASE_URL": self.url, "GOOGLE_API_KEY": "test-key"}

    def read(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> GeminiRequest | None:
        return read_request(path, headers, body)

    def understand(self, request: GeminiRequest, answer: Any) -> Reply:
        return Reply() if answer is None and request.method not in _GENERATING else as_reply(answer)

    def answer(self, request: GeminiRequest, reply: Reply) -> Answer:
        streamed = request.method == "streamGenerateContent"
        if reply.failure is not None and not (streamed and reply.parts):
            return _failed(reply.failure)
        if streamed:
            chunks = [dict(reply.body)] if reply.body is not None else _chunks(request, reply)
            if reply.failure is not None:
                chunks[-1:] = [_error(reply.failure)]
            return Answer(200, events=tuple(f"data: {json.dumps(chunk, ensure_ascii=False)}\r\n\r\n" for chunk in chunks))
        if reply.body is not None:
            return Answer(200, reply.body)
        if request.method == "generateContent":
            return Answer(200, _response(request, [_part(part) for part in reply.parts], reply, last=True))
        return Answer(200, _measured(request))

    def failure(self, code: int, message: str) -> Answer:
        return _failed(Failure(code, STATUSES[code], message))


def _failed(failure: Failure) -> Answer:
    if failure.page:
        return Answer(failure.code, f"<html><h1>{failure.message}</h1></html>", headers=failure.headers)
    return Answer(failure.code, _error(failure), headers=failure.headers)


def _error(failure: Failure) -> dict[str, Any]:
    body: dict[str, Any] = {"code": failure.code, "message": failure.message, "status": failure.status}
    details: list[dict[str, Any]] = []
    if failure.reason is not None:
        details.append({"@type": f"{_RPC}.ErrorInfo", "reason": failure.reason, "domain": "googleapis.com"})
    if failure.retry_delay is not None:
        details.append({"@type": f"{_RPC}.RetryInfo", "retryDelay": f"{failure.retry_delay:g}s"})
    if details:
        body["details"] = details
    return {"error": body}


def _part(part: str | Call) -> dict[str, Any]:
    if isinstance(part, str):
        return {"text": part}
    function_call: dict[str, Any] = {"name": part.name, "args": dict(part.args)}
    if part.id is not None:
        function_call["id"] = part.id
    return {"functionCall": function_call}


def _chunks(request: GeminiRequest, reply: Reply) -> list[dict[str, Any]]:
    parts: list[str | Call] = []
    for part in reply.parts:
        parts.extend(pieces(part) if isinstance(part, str) else [part])
    if not parts:
        return [_response(request, [], reply, last=True)]
    last = len(parts) - 1
    return [_response(request, [_part(part)], reply, last=index == last) for index, part in enumerate(parts)]


def _response(request: GeminiRequest, parts: list[dict[str, Any]], reply: Reply, *, last: bool) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    response: dict[str, Any] = {"candidates": [candidate], "modelVersion": request.model}
    if last:
        candidate["finishReason"] = "STOP"
        asked = sum(map(count_words, [request.system, *request.texts]))
        said = sum(count_words(part) if isinstance(part, str) else 1 for part in reply.parts)
        response["usageMetadata"] = {
            "promptTokenCount": asked,
            "candidatesTokenCount": said,
            "totalTokenCount": asked + said,
            **reply.tokens,
        }
    return response


def _measured(request: GeminiRequest) -> dict[str, Any]:
    """The answers of the methods that generate nothing."""
    texts = request.texts
    if request.method == "countTokens":
        return {"totalTokens": sum(map(count_words, texts))}
    vectors = [embed(words, request.dimensions or DIMENSIONS) for words in texts]
    if request.method == "embedContent":
        return {"embedding": {"values": vectors[0]}}
    if request.method == "batchEmbedContents":
        return {"embeddings": [{"values": vector} for vector in vectors]}
    predictions = []
    for words, vector in zip(texts, vectors, strict=True):
        statistics = {"token_count": count_words(words), "truncated": False}
        predictions.append({"embeddings": {"values": vector, "statistics": statistics}})
    return {"predictions": predictions}
