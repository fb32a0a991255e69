"""Values as plain JSON, for people and for tasks that know nothing of ADK; types may be lost."""

from __future__ import annotations

import base64
import collections
import dataclasses
import datetime as dt
import enum
import json
import math
import re
from typing import Any

from pydantic import BaseModel

_RESERVED = {"__classname__", "__id__"}
_MOST_LEVELS = 100  # Airflow's API server takes about 250, and the value may be put into lists and dicts
_NOT_STORED = re.compile("[\x00\ud800-\udfff]")


def to_json(value: Any) -> Any:
    """Returns ``value`` as JSON data.

    A text-only ``Content`` becomes its text, bytes become base64, sets, tuples and deques lists; models, dataclasses and dates
    become their JSON form.
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value.value if isinstance(value, enum.Enum) else value
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, dict):
        found = {str(key): to_json(item) for key, item in value.items()}
        # Airflow's XCom would take such a dict for a serialized object of its own.
        return json.dumps(found, ensure_ascii=False) if _RESERVED & found.keys() else found
    if isinstance(value, (list, tuple, collections.deque)):
        return [to_json(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return [to_json(item) for item in sorted(value, key=repr)]
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, BaseModel):
        text = _text_of(value)
        return text if text is not None else to_json(value.model_dump(mode="json", exclude_none=True))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name, None)) for field in dataclasses.fields(value)}
    if isinstance(value, (dt.datetime, dt.date, dt.time)):
        return value.isoformat()
    return str(value)


def _text_of(value: BaseModel) -> str | None:
    """The text of a google.genai ``Content`` that holds nothing but text, else None."""
    parts = getattr(value, "parts", None)
    if type(value).__name__ != "Content" or not parts or any(part.text is None for part in parts):
        return None
    return "".join(part.text for part in parts)


def for_xcom(value: Any) -> Any:
    """``to_json`` of what any Airflow stores: its supervisor, its API and PostgreSQL refuse some of JSON.

    A whole number beyond 64 bits becomes its text, NUL and halves of characters the sign U+FFFD, and what is nested deeper
    than 100 levels JSON text.
    """
    return _storable(to_json(value), _MOST_LEVELS)


def storable_text(text: str) -> str:
    """The text with U+FFFD for what PostgreSQL, or UTF-8, cannot store."""
    return _NOT_STORED.sub("\ufffd", text)


def _storable(data: Any, levels: int) -> Any:
    if isinstance(data, str):
        return storable_text(data)
    if isinstance(data, int) and not isinstance(data, bool):
        return data if -(2**63) <= data < 2**63 else str(data)
    if levels == 0 and isinstance(data, (list, dict)):
        return storable_text(json.dumps(data, ensure_ascii=False))
    if isinstance(data, list):
        return [_storable(item, levels - 1) for item in data]
    if isinstance(data, dict):
        return {storable_text(key): _storable(item, levels - 1) for key, item in data.items()}
    return data
