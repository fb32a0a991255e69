"""Values as JSON that keeps their Python type.

``encode``/``decode`` are exact: what comes out equals what went in, type included (``True``, ``1`` and ``"1"`` stay three
things). A value that JSON lacks becomes ``{"$": tag, "v": ...}``, with its class in ``"c"`` where a module defines it.
Decoding never imports a module and never runs code of a value.
"""

from __future__ import annotations

import base64
import collections
import datetime as dt
import decimal
import json
import math
import pathlib
import uuid
import zoneinfo
from collections.abc import Callable
from typing import Any

import pendulum

from adk_airflow.errors import EnvelopeError, ValueNotTransferableError
from adk_airflow.runtime.wire import classes

TAG = "$"

_FROM_TEXT: dict[str, Callable[[str], Any]] = {
    "float": float,
    "bytes": base64.b64decode,
    "bytearray": lambda text: bytearray(base64.b64decode(text)),
    "date": dt.date.fromisoformat,
    "time": dt.time.fromisoformat,
    "Decimal": decimal.Decimal,
    "UUID": uuid.UUID,
    "PosixPath": pathlib.PosixPath,
    "PurePosixPath": pathlib.PurePosixPath,
    "PureWindowsPath": pathlib.PureWindowsPath,
}
_FROM_LIST: dict[str, Callable[[Any], Any]] = {"tuple": tuple, "set": set, "frozenset": frozenset}
_FROM_PAIRS: dict[str, Callable[[Any], Any]] = {
    "dict": dict,
    "OrderedDict": collections.OrderedDict,
    "Counter": lambda pairs: collections.Counter(dict(pairs)),
}
_FACTORIES: dict[str, type] = {kind.__name__: kind for kind in (list, dict, set, tuple, str, bytes, int, float, bool)}


def encode(value: Any) -> Any:
    """Returns ``value`` as JSON-able data that ``decode`` turns back into an equal value of the same type.

    Raises:
        ValueNotTransferableError: The value, or a part of it, has no safe JSON form; the message names its place and type.
    """
    try:
        return _encode(value, "value")
    except RecursionError:
        raise ValueNotTransferableError("value is nested too deeply, or holds itself.") from None


def travels(value: Any) -> bool:
    """Whether ``encode`` accepts the value."""
    try:
        encode(value)
    except ValueNotTransferableError:
        return False
    return True


def _encode(value: Any, where: str) -> Any:
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        return _checked_text(value, where)
    if kind is int:
        return _checked_number(value, where)
    if kind is float:
        return value if math.isfinite(value) else {TAG: "float", "v": repr(value)}
    if kind is list:
        return [_encode(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if kind is dict:
        if all(type(key) is str for key in value) and TAG not in value:
            return {_checked_text(key, f"{where} key"): _encode(item, f"{where}[{key!r}]") for key, item in value.items()}
        return {TAG: "dict", "v": _pairs(value, where)}
    if kind in (collections.OrderedDict, collections.Counter):
        return {TAG: kind.__name__, "v": _pairs(value, where)}
    if kind is collections.defaultdict:
        factory = value.default_factory
        if factory is not None and factory not in _FACTORIES.values():
            raise ValueNotTransferableError(
                f"{where} is a defaultdict that makes its values with {factory!r}, which no task could be told."
                f" Use one of {', '.join(_FACTORIES)}, or a plain dict."
            )
        return {TAG: "defaultdict", "v": [factory and factory.__name__, _pairs(value, where)]}
    if kind is collections.deque:
        return {TAG: "deque", "v": [value.maxlen, [_encode(item, f"{where}[{i}]") for i, item in enumerate(value)]]}
    if kind in (tuple, set, frozenset):
        items = value if kind is tuple else sorted(value, key=repr)
        return {TAG: kind.__name__, "v": [_encode(item, f"{where}[{i}]") for i, item in enumerate(items)]}
    if kind in (bytes, bytearray):
        return {TAG: kind.__name__, "v": base64.b64encode(value).decode("ascii")}
    if (of_class := classes.kind_of(value)) is not None:
        name = classes.class_name(kind, of_class, where)
        parts = classes.take_apart(value, of_class)
        return {TAG: of_class, "c": name, "v": {part: _encode(held, f"{where} ({part})") for part, held in parts.items()}}
    if kind in (dt.datetime, pendulum.DateTime):
        return _encode_datetime(value, where)
    for tag, cls in (("date", dt.date), ("time", dt.time)):
        if kind is cls:
            return {TAG: tag, "v": value.isoformat()}
    if kind is dt.timedelta:
        return {TAG: "timedelta", "v": [value.days, value.seconds, value.microseconds]}
    if kind in (decimal.Decimal, uuid.UUID, pathlib.PosixPath, pathlib.PurePosixPath, pathlib.PureWindowsPath):
        return {TAG: kind.__name__, "v": str(value)}
    raise ValueNotTransferableError(
        f"{where} is a {kind.__module__}.{kind.__qualname__}, which has no JSON form. Return or store plain data (str, numbers,"
        " bool, None, list, dict, tuple, set, bytes, dates) or a pydantic model, dataclass, named tuple or enum of a module."
    )


def _pairs(value: dict[Any, Any], where: str) -> list[Any]:
    return [[_encode(k, f"{where} key"), _encode(v, f"{where}[{k!r}]")] for k, v in value.items()]


def _checked_text(value: str, where: str) -> str:
    try:
        value.isascii() or value.encode()
    except UnicodeEncodeError as error:
        raise ValueNotTransferableError(
            f"{where} is text with a half of a character, {value[error.start]!r} at {error.start}, which no database stores."
            " Decode the text with errors='replace'."
        ) from None
    return value


def _checked_number(value: int, where: str) -> int:
    if value.bit_length() > 2000:  # the least limit that Python takes is 640 digits
        try:
            str(value)
        except ValueError as error:
            raise ValueNotTransferableError(f"{where} is a whole number that has no text form: {error}.") from None
    return value


def _encode_datetime(value: dt.datetime, where: str) -> Any:
    zone = value.tzinfo
    key = getattr(zone, "key", None) or getattr(zone, "name", None)
    if zone is not None and not isinstance(key, str) and not isinstance(zone, dt.timezone):
        raise ValueNotTransferableError(f"{where} has the time zone {zone!r}, which has no name another task could use.")
    kind = "pendulum" if isinstance(value, pendulum.DateTime) else "datetime"
    zone_name = key if isinstance(key, str) and not isinstance(zone, dt.timezone) else None
    naive = value.replace(tzinfo=None) if zone_name else value
    return {TAG: "datetime", "v": [kind, naive.isoformat(), zone_name, value.fold]}


def _decode_datetime(kind: str, text: str, zone_name: str | None, fold: int) -> dt.datetime:
    plain_value = dt.datetime.fromisoformat(text).replace(fold=fold)
    if kind == "datetime":
        return plain_value.replace(tzinfo=zoneinfo.ZoneInfo(zone_name)) if zone_name else plain_value
    zone = pendulum.timezone(zone_name) if zone_name else plain_value.tzinfo
    return pendulum.DateTime(*plain_value.timetuple()[:6], plain_value.microsecond, tzinfo=zone, fold=fold)


def decode(data: Any) -> Any:
    """Turns what ``encode`` made back into the value.

    Raises:
        EnvelopeError: An unknown tag, a value that does not fit its tag, or a class that is not allowed or not loaded.
    """
    if isinstance(data, list):
        return [decode(item) for item in data]
    if not isinstance(data, dict):
        return data
    if TAG not in data:
        return {key: decode(item) for key, item in data.items()}
    tag: Any = data[TAG]
    raw: Any = data.get("v")
    try:
        if tag in _FROM_PAIRS:
            return _FROM_PAIRS[tag]((decode(key), decode(item)) for key, item in raw)
        if tag == "defaultdict":
            factory, pairs = raw
            return collections.defaultdict(
                factory and _FACTORIES[factory], ((decode(key), decode(item)) for key, item in pairs)
            )
        if tag == "deque":
            return collections.deque((decode(item) for item in raw[1]), maxlen=raw[0])
        if tag in _FROM_LIST:
            return _FROM_LIST[tag](decode(item) for item in raw)
        if tag in _FROM_TEXT:
            return _FROM_TEXT[tag](raw)
        if tag == "timedelta":
            return dt.timedelta(*raw)
        if tag == "datetime":
            return _decode_datetime(*raw)
        if tag in classes.KINDS:
            return classes.put_together(tag, data["c"], {part: decode(held) for part, held in raw.items()})
    except EnvelopeError:
        raise
    except Exception as error:
        raise EnvelopeError(f"a value tagged {tag!r} cannot be read: {type(error).__name__}: {error}") from error
    raise EnvelopeError(f"a value carries the unknown tag {tag!r}")


def dumps(data: Any) -> str:
    """Compact JSON text of already encoded data."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
