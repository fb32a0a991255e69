"""Entries of the recorder as plain JSON for people: what was asked and answered, without credentials, cut where it is long.

Nothing is masked here (``runtime.record.transcript`` masks many rows at once), but what lies below a key that Airflow takes for
sensitive is not taken at all, nor is the payload of a request for credentials, nor the value of a ``temp:`` key.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from adk_airflow.runtime import failures
from adk_airflow.runtime.sealing import is_sensitive
from adk_airflow.runtime.wire import json_form

if TYPE_CHECKING:
    from adk_airflow.runtime.record.entries import Entry

MOST_CHARACTERS = 32_000
"""Of one value; a longer one is cut, and its size told."""

HIDDEN = "***"
_SLACK = 4_096  # characters that are masked behind a cut, so that no half of a secret is before it
_ASKS = {"adk_request_input": "input", "adk_request_confirmation": "confirmation", "adk_request_credential": "credential"}
_NO_CONFIG = {"http_options": True, "system_instruction": True, "tools": True}
_USAGE = {
    "input_tokens": "prompt_token_count",
    "output_tokens": "candidates_token_count",
    "cached_tokens": "cached_content_token_count",
    "thought_tokens": "thoughts_token_count",
}
_CONTENT = ("input", "output", "args", "result", "instruction", "config", "asked", "answer", "text", "values", "error")
"""The fields of rows that hold what was said; with ``[adk_airflow] log_content`` off their sizes stand there."""


class PlainEntries:
    """Makes rows of entries.

    Args:
        content: What was said is part of them; else its sizes.
    """

    def __init__(self, *, content: bool = True) -> None:
        self._content = content
        self._asked: dict[tuple[str, str, str], tuple[int, Any]] = {}
        self._told: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._said: dict[str, str] = {}

    def rows(self, entry: Entry) -> Iterator[dict[str, Any]]:
        """The rows of an entry: one, but of an event any number."""
        row: dict[str, Any] = {"kind": entry.kind, "path": entry.path, "name": entry.name}
        row |= {key: value for key, value in (("agent", entry.agent), ("branch", entry.branch)) if value}
        row |= {"status": entry.status, "began": round(entry.began, 3)}
        if entry.seconds is not None:
            row["seconds"] = round(entry.seconds, 6)
        if entry.replayed:
            row["replayed"] = True
        if entry.error:
            row["error"] = entry.error
        content = entry.content
        if entry.kind == "node":
            shown = [row | _values(content, "input", "output", "route")]
        elif entry.kind == "model":
            shown = [row | self._model(entry)]
        elif entry.kind == "tool":
            more = {"call_id": content["call_id"]} if content.get("call_id") else {}
            shown = [row | more | _values(content, "args", "result")]
        else:
            shown = list(self._event(row, content["event"]))
        for one in shown:
            yield one if self._content else _without_content(one)

    # -- model calls -------------------------------------------------------------------------------------

    def _model(self, entry: Entry) -> dict[str, Any]:
        request, responses = entry.content["request"], entry.content["responses"]
        line = (entry.path, entry.agent, entry.branch)
        contents = list(request.contents)
        count, last = self._asked.get(line, (0, None))
        goes_on = 0 < count <= len(contents) and contents[count - 1] == last
        new = contents[count:] if goes_on else contents
        if contents:
            self._asked[line] = (len(contents), contents[-1])
        row: dict[str, Any] = {"asked": [_content(content) for content in new]}
        row |= {"asked_before": count} if goes_on else {}
        told = self._told.setdefault(line, {})
        for key, value in _config(request).items():
            if told.get(key) != value:
                told[key] = row[key] = value
        whole = [response for response in responses if not response.partial and response.content] or responses
        row["answer"] = [part for response in whole for part in _parts(response.content)]
        self._said[entry.agent] = _words(row["answer"])
        for response in responses:
            if response.usage_metadata is not None:
                held = ((key, getattr(response.usage_metadata, name, None)) for key, name in _USAGE.items())
                row["usage"] = {key: value for key, value in held if value}
            if response.finish_reason is not None:
                row["finish_reason"] = str(getattr(response.finish_reason, "name", response.finish_reason))
            if response.error_code:
                row["error"] = ": ".join(filter(None, (str(response.error_code), response.error_message)))
        return row

    # -- events ------------------------------------------------------------------------------------------

    def _event(self, row: dict[str, Any], event: Any) -> Iterator[dict[str, Any]]:
        if event.partial:
            return
        row = {key: value for key, value in row.items() if key not in ("kind", "name", "status")}
        actions = event.actions
        words = "".join(part.text for part in _held(event.content) if part.text and not part.thought)
        # What an agent says is in its model call.
        if words and self._said.get(event.author) != words:
            yield {"kind": "message", **row, "text": _fit(words)}
        for call in (part.function_call for part in _held(event.content) if part.function_call):
            asks = _ASKS.get(call.name or "") or (call.id in (event.long_running_tool_ids or ()) and "long_running_tool")
            if asks:
                text = _question(asks, call)
                yield {"kind": "question", **row, "name": asks, "id": call.id, **({"text": _fit(text)} if text else {})}
        if actions.transfer_to_agent:
            yield {"kind": "transfer", **row, "name": actions.transfer_to_agent}
        if actions.state_delta:
            kept = {key: value for key, value in actions.state_delta.items() if not str(key).startswith("temp:")}
            yield {"kind": "state", **row, "keys": list(map(str, actions.state_delta)), "values": _fit(json_form.to_json(kept))}
        for name, version in (actions.artifact_delta or {}).items():
            yield {"kind": "artifact", **row, "name": name, "version": version}
        if event.error_code:
            words = ": ".join(filter(None, (str(event.error_code), event.error_message)))
            yield {"kind": "error", **row, "name": str(event.error_code), "error": words}


def failure(path: str, error: BaseException, began: float, *, content: bool) -> dict[str, Any]:
    """The row of what a task fails with."""
    row = {"kind": "error", "path": path, "name": type(error).__name__, "began": round(began, 3)}
    return {**row, "error": f"{type(error).__name__}: {error}"} if content else row


def _question(kind: str, call: Any) -> str:
    args = call.args or {}
    if kind == "input":
        return str(args.get("message") or "")
    if kind == "confirmation":
        asked, hint = args.get("originalFunctionCall") or {}, args.get("toolConfirmation") or {}
        return ": ".join(filter(None, (str(asked.get("name") or ""), str(hint.get("hint") or ""))))
    return str(call.name) if kind == "long_running_tool" else ""


def _values(content: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: _fit(json_form.to_json(content[name])) for name in names if content.get(name) is not None}


def _config(request: Any) -> dict[str, Any]:
    """What a request says beside the conversation."""
    config = request.config
    if config is None:
        return {}
    found: dict[str, Any] = {}
    if config.system_instruction:
        said = config.system_instruction
        found["instruction"] = _fit(said if isinstance(said, str) else json_form.to_json(said))
    names = [
        declared.name
        for tool in config.tools or ()
        for declared in getattr(tool, "function_declarations", None) or ()
        if declared
    ]
    if names:
        found["tools"] = names
    rest = config.model_dump(mode="json", exclude_none=True, exclude=_NO_CONFIG, fallback=_name_of, warnings=False)
    if rest:
        found["config"] = _fit(rest)
    return found


def _name_of(value: Any) -> str:
    return str(getattr(value, "__qualname__", type(value).__qualname__))


# -- parts of a conversation ---------------------------------------------------------------------------------


def _content(content: Any) -> dict[str, Any]:
    return {"role": content.role, "parts": _parts(content)}


def _held(content: Any) -> list[Any]:
    return list((content.parts if content is not None else None) or ())


def _parts(content: Any) -> list[dict[str, Any]]:
    return [_part(part) for part in _held(content)]


def _part(part: Any) -> dict[str, Any]:
    """One part; what is no text is named by its size and type."""
    if part.text is not None:
        return {"thought" if part.thought else "text": _fit(part.text)}
    if (call := part.function_call) is not None:
        args = HIDDEN if call.name == "adk_request_credential" else _fit(json_form.to_json(dict(call.args or {})))
        return {"call": call.name, "id": call.id, "args": args}
    if (response := part.function_response) is not None:
        hidden = response.name == "adk_request_credential"
        result = HIDDEN if hidden else _fit(json_form.to_json(dict(response.response or {})))
        media = [_media(held) for one in getattr(response, "parts", None) or () if (held := one.inline_data or one.file_data)]
        return {"response": response.name, "id": response.id, "result": result, **({"media": media} if media else {})}
    if (held := part.inline_data or part.file_data) is not None:
        return {"media": _media(held)}
    if (code := part.executable_code) is not None:
        return {"code": _fit(code.code or "")}
    if (done := part.code_execution_result) is not None:
        return {"code_result": _fit(done.output or ""), "outcome": str(getattr(done.outcome, "name", done.outcome))}
    return {"other": sorted(part.model_fields_set)}


def _media(held: Any) -> dict[str, Any]:
    """An image or a file, by reference."""
    data, uri = getattr(held, "data", None), getattr(held, "file_uri", None)
    found = {"mime_type": held.mime_type, "name": getattr(held, "display_name", None), "uri": uri}
    return {key: value for key, value in found.items() if value} | ({"bytes": len(data)} if data is not None else {})


def _words(parts: Sequence[Mapping[str, Any]]) -> str:
    return "".join(part["text"] for part in parts if isinstance(part.get("text"), str))


# -- sizes ---------------------------------------------------------------------------------------------------


def _fit(data: Any) -> Any:
    """JSON data that is not too long, without what is sensitive; of what is too long the beginning, and its size."""
    if isinstance(data, str):
        return data if len(data) <= MOST_CHARACTERS else {"cut": _cut(data, MOST_CHARACTERS), "characters": len(data)}
    if data is None or isinstance(data, (bool, int, float)):
        return data
    left = [MOST_CHARACTERS]
    shown = _shortened(data, left)
    return shown if left[0] >= 0 else {"cut": shown, "characters": _length(data)}


def _shortened(data: Any, left: list[int], name: str = "") -> Any:
    """The data as far as ``left`` characters reach, which are taken off."""
    if isinstance(data, str):
        if name and data and is_sensitive(name):
            return HIDDEN
        room, left[0] = left[0], left[0] - len(data) - 2
        return data if left[0] >= 0 else _cut(data, max(0, room))
    if isinstance(data, list):
        items = []
        for item in data:
            if left[0] < 0:
                break
            items.append(_shortened(item, left, name))
        return items
    if isinstance(data, dict):
        found = {}
        for key, item in data.items():
            left[0] -= len(key) + 4
            if left[0] < 0:
                break
            found[key] = _shortened(item, left, key)
        return found
    left[0] -= 8
    return data


def _cut(text: str, length: int) -> str:
    # Masked with what comes behind, as a secret may lie across.
    return failures.masked(text[: length + _SLACK])[:length]


def _length(data: Any) -> int:
    return len(data) if isinstance(data, str) else len(json.dumps(data, ensure_ascii=False))


def _without_content(row: dict[str, Any]) -> dict[str, Any]:
    """The row with sizes, in characters, in the place of what was said."""
    kept = {key: value for key, value in row.items() if key not in _CONTENT}
    sizes = {key: _length(row[key]) for key in _CONTENT if key in row and key != "error"}
    if "error" in row:
        kept["error"] = str(row["error"]).partition(":")[0]
    return kept | ({"characters": sizes} if sizes else {})
