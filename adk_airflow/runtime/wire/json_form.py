"""Values as plain JSON, for people and for tasks that know nothing of ADK; types may be lost."""

from __future__ import annotations

import base64
import collections
import contextlib
import dataclasses
import datetime as dt
import enum
import json
import math
import re
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, RootModel
from pydantic_core import to_jsonable_python

_REFUSED = {"__classname__", "__id__"}  # keys of a dict that Airflow does not write
_MOST_LEVELS = 100  # Airflow's API server takes about 250, and the value may be put into lists and dicts
_NOT_STORED = re.compile("[\x00\ud800-\udfff]")
_ABSENT: Any = object()


def to_json(value: Any) -> Any:
    """Returns ``value`` as JSON data.

    A text-only ``Content`` becomes its text, bytes become base64, sets, tuples and deques lists, enums their value; models,
    dataclasses and dates become their JSON form. Keys of a dict become text; where two of them have the same text, the dict
    becomes a list of ``[key, value]`` pairs.
    """
    kind = type(value)
    if kind is str or value is None or kind is bool or kind is int:
        return value
    if isinstance(value, dict):
        found = {
            key if type(key) is str else _key(key): item if type(item) is str else to_json(item) for key, item in value.items()
        }
        return found if len(found) == len(value) else [[to_json(key), to_json(item)] for key, item in value.items()]
    if kind is list:
        return [item if type(item) is str else to_json(item) for item in value]
    if isinstance(value, enum.Enum):
        return to_json(value.value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else float.__repr__(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__index__(value)
    if isinstance(value, (list, tuple, collections.deque)):
        return [to_json(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return [to_json(item) for item in sorted(value, key=repr)]
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, BaseModel):
        text = _text_of(value)
        return text if text is not None else _of_model(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name, None)) for field in dataclasses.fields(value)}
    if isinstance(value, (dt.datetime, dt.date, dt.time)):
        return value.isoformat()
    return str(value)


def _key(key: Any) -> str:
    data = key if type(key) is str else to_json(key)
    return str(key if isinstance(data, (list, dict)) else data)


def _text_of(value: BaseModel) -> str | None:
    """The text of a google.genai ``Content`` that holds nothing but text, else None."""
    parts = getattr(value, "parts", None)
    if type(value).__name__ != "Content" or not parts or any(part.text is None for part in parts):
        return None
    return "".join(part.text for part in parts)


def _of_model(model: BaseModel) -> Any:
    """What pydantic shows of the model in JSON, with two changes: bytes are base64, and nothing makes it fail.

    Where pydantic has no JSON for a field (an object of an ordinary class, bytes that are no text), the field has our form.
    """
    try:
        held = model.model_dump(exclude_none=True, warnings=False)
    except Exception:
        fields = {name for name, field in type(model).model_fields.items() if not field.exclude}
        held = {name: part for name, part in vars(model).items() if name in fields and part is not None}
    try:
        shown = model.model_dump(mode="json", exclude_none=True, warnings=False)
        plain = bool(shown == held)
    except Exception:
        shown = {name: _shown_field(model, name) for name in held} if isinstance(held, dict) else _ABSENT
        plain = False
    return to_json(shown) if plain else _joined(model, held, shown)


def _shown_field(model: BaseModel, name: str) -> Any:
    try:
        return model.model_dump(mode="json", include={name}, warnings=False).get(name, _ABSENT)
    except Exception:
        return _ABSENT


def _joined(raw: Any, held: Any, shown: Any) -> Any:
    """The JSON form of a part of a model.

    Args:
        raw: The part as it is in the model.
        held: What pydantic gives for it in Python.
        shown: What pydantic gives for it in JSON, or ``_ABSENT``.
    """
    raw = raw.root if isinstance(raw, RootModel) else raw
    if isinstance(held, dict) and (shown is _ABSENT or isinstance(shown, dict)):
        same = shown is not _ABSENT and len(shown) == len(held)  # not where pydantic gave two keys one text
        keys, items = (list(shown), list(shown.values())) if same else (list(held), [_ABSENT] * len(held))
        parts = [_joined(_part(raw, key), part, item) for (key, part), item in zip(held.items(), items, strict=True)]
        found = {_key(key): part for key, part in zip(keys, parts, strict=True)}
        return found if len(found) == len(keys) else [[to_json(key), part] for key, part in zip(keys, parts, strict=True)]
    if isinstance(held, (list, tuple)) and (shown is _ABSENT or isinstance(shown, list)):
        absent = [_ABSENT] * len(held)
        raws = raw if isinstance(raw, (list, tuple)) and len(raw) == len(held) else absent
        items = absent if shown is _ABSENT or len(shown) != len(held) else shown
        return [_joined(*parts) for parts in zip(raws, held, items, strict=True)]
    if isinstance(held, (set, frozenset)) and any(isinstance(item, (bytes, float)) for item in held):
        return to_json(held)
    if isinstance(held, (bytes, bytearray)):
        return _of_bytes(raw, bytes(held), shown)
    if isinstance(held, float) and not math.isfinite(held) and shown is None:
        return to_json(held)  # pydantic's null would say that there is none
    if shown is not _ABSENT:
        return to_json(shown)
    return to_jsonable_python(held) if isinstance(held, (dt.date, dt.time, dt.timedelta)) else to_json(held)


def _part(raw: Any, key: Any) -> Any:
    if isinstance(raw, BaseModel):
        return _part_of_model(raw, key)
    if dataclasses.is_dataclass(raw):
        return getattr(raw, key, _ABSENT)
    return raw.get(key, _ABSENT) if isinstance(raw, dict) else _ABSENT


def _part_of_model(model: BaseModel, key: Any) -> Any:
    """What the model holds, or computes, under the name that pydantic shows it by."""
    cls = type(model)
    computed = {shown: name for name, field in cls.model_computed_fields.items() for shown in (name, field.alias)}
    if cls.model_config.get("serialize_by_alias"):
        key = next((name for name, field in cls.model_fields.items() if field.serialization_alias == key), key)
    held = {**(model.model_extra or {}), **vars(model)}
    if key not in held and key in computed:
        with contextlib.suppress(Exception):
            return getattr(model, computed[key])
    return held.get(key, _ABSENT)


def _of_bytes(raw: Any, held: bytes, shown: Any) -> Any:
    if not (
        isinstance(raw, (bytes, bytearray)) and raw == held
    ):  # the model itself makes these bytes for its readers, as Base64Bytes does
        return held.decode(errors="replace") if shown is _ABSENT else to_json(shown)
    usual = (_ABSENT, held.decode(errors="replace"), base64.urlsafe_b64encode(held).decode("ascii"))
    return to_json(held) if shown in usual else to_json(shown)


def as_read(value: Any) -> Any:
    """What another task reads where a task returns ``for_xcom`` of the value."""
    return _storable(to_json(value), _MOST_LEVELS, _same)


def for_xcom(value: Any) -> Any:
    """``to_json`` of what any Airflow stores: its supervisor, its API and PostgreSQL refuse some of JSON.

    An integer beyond 64 bits becomes its text, NUL and unpaired surrogates the sign U+FFFD. What is nested deeper than 100
    levels, and a dict with a key ``__classname__`` or ``__id__``, becomes JSON text. A dict with the keys ``__type`` and
    ``__var``, which Airflow would read as something else, is put into one that Airflow reads as it.
    """
    return _storable(to_json(value), _MOST_LEVELS, _wrapped)


def storable_text(text: str) -> str:
    """The text with U+FFFD for what PostgreSQL, or UTF-8, cannot store."""
    return _NOT_STORED.sub("\ufffd", text)


def _storable(data: Any, levels: int, wrap: Callable[[dict[str, Any]], Any]) -> Any:
    if isinstance(data, str):
        return storable_text(data)
    if isinstance(data, int) and not isinstance(data, bool):
        return data if -(2**63) <= data < 2**63 else str(data)
    if levels == 0 and isinstance(data, (list, dict)):
        return _as_text(data)
    if isinstance(data, list):
        return [_storable(item, levels - 1, wrap) for item in data]
    if isinstance(data, dict):
        if not _REFUSED.isdisjoint(data):
            return _as_text(data)
        found = {storable_text(key): _storable(item, levels - 1, wrap) for key, item in data.items()}
        if len(found) < len(data):
            return _as_text(data)
        return wrap(found) if "__type" in found and "__var" in found else found
    return data


def _as_text(data: Any) -> str:
    return storable_text(json.dumps(data, ensure_ascii=False))


def _same(data: dict[str, Any]) -> Any:
    return data


def _wrapped(data: dict[str, Any]) -> Any:
    """What Airflow reads as ``data``.

    It takes the two keys for a value of its old format, in which this is a dict. Another XCom backend may read the inner
    dict first, and so is given JSON text.
    """
    from airflow.sdk import BaseXCom
    from airflow.sdk.execution_time.xcom import XCom

    if XCom.deserialize_value is BaseXCom.deserialize_value:
        return {"__type": "dict", "__var": data}
    return json.dumps(data, ensure_ascii=False)
