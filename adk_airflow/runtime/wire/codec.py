"""Values as JSON that keeps their Python type.

``encode``/``decode`` are exact: what comes out equals what went in, type included (``True``, ``1`` and ``"1"`` stay three
things). A value that JSON lacks becomes ``{"$": tag, "v": ...}``, with its class in ``"c"`` where a module defines it, and in
``"of"`` the greatest length of a deque, or the name of what a defaultdict makes its values with.
Decoding never imports a module and never runs code of a value.
"""

from __future__ import annotations

import base64
import collections
import decimal
import json
import math
import pathlib
import uuid
from collections.abc import Callable, Collection, Iterable
from typing import Any

from adk_airflow.errors import EnvelopeError, ValueNotTransferableError
from adk_airflow.runtime.wire import classes, dates

TAG = "$"

# What is its own text, and is made of it again.
_TEXTS: tuple[type, ...] = (
    decimal.Decimal,
    uuid.UUID,
    pathlib.PosixPath,
    pathlib.PurePosixPath,
    pathlib.PureWindowsPath,
)
_FACTORIES: dict[str, type] = {kind.__name__: kind for kind in (list, dict, set, tuple, str, bytes, int, float, bool)}

# Where in the value a part stands: where its parent stands, and the key or words for the step. Only an error spells it out.
_Where = tuple[Any, Any, str]
_ROOT: _Where = (None, None, "value")


def encode(value: Any) -> Any:
    """Returns ``value`` as JSON-able data that ``decode`` turns back into an equal value of the same type.

    Raises:
        ValueNotTransferableError: The value, or a part of it, has no safe JSON form; the message names its place and type.
    """
    try:
        return _encode(value, _ROOT)
    except RecursionError:
        raise ValueNotTransferableError("value is nested too deeply, or holds itself.") from None


def travels(value: Any) -> bool:
    """Whether ``encode`` accepts the value."""
    return not why_not(value)


def why_not(value: Any) -> str:
    """Why ``encode`` does not accept the value; empty where it does."""
    try:
        encode(value)
    except ValueNotTransferableError as error:
        return str(error)
    return ""


# Each level of a value takes more frames of the stack here than in ``_decode``, and more than JSON has levels for it: what one
# task could encode, the next can decode.
def _encode(value: Any, where: _Where) -> Any:
    kind = type(value)
    if value is None or kind is bool:
        return value
    write = _WRITERS.get(kind)
    if write is not None:
        return write(value, where)
    if (of_class := classes.kind_of(value)) is not None:
        return _of_class(value, of_class, where)
    if (date := dates.take_apart(value, lambda: _place(where))) is not None:
        return {TAG: date[0], "v": date[1]}
    raise ValueNotTransferableError(
        f"{_place(where)} is a {kind.__module__}.{kind.__qualname__}, which has no JSON form. Return or store plain data (str,"
        " numbers, bool, None, list, dict, tuple, set, bytes, dates) or a pydantic model, dataclass, named tuple or enum of a"
        " module."
    )


def _float(value: float, where: _Where) -> Any:
    return value if math.isfinite(value) else {TAG: "float", "v": repr(value)}


def _dict(value: dict[Any, Any], where: _Where) -> Any:
    if TAG in value or not all(type(key) is str for key in value):
        return _mapping(value, where)
    for key in value:
        key.isascii() or _text(key, (where, None, " key"))
    return {
        key: item if type(item) is str and item.isascii() else _encode(item, (where, key, "")) for key, item in value.items()
    }


def _items(value: Iterable[Any], where: _Where) -> list[Any]:
    return [item if type(item) is str and item.isascii() else _encode(item, (where, i, "")) for i, item in enumerate(value)]


def _pairs(value: dict[Any, Any], where: _Where) -> list[Any]:
    return [[_encode(k, (where, None, " key")), _encode(v, (where, k, ""))] for k, v in value.items()]


def _mapping(value: dict[Any, Any], where: _Where) -> Any:
    return {TAG: type(value).__name__, "v": _pairs(value, where)}


def _tuple(value: tuple[Any, ...], where: _Where) -> Any:
    return {TAG: "tuple", "v": _items(value, where)}


def _set(value: Collection[Any], where: _Where) -> Any:
    return {TAG: type(value).__name__, "v": _items(sorted(value, key=repr), where)}


def _deque(value: collections.deque[Any], where: _Where) -> Any:
    return {TAG: "deque", "of": value.maxlen, "v": _items(value, where)}


def _defaultdict(value: collections.defaultdict[Any, Any], where: _Where) -> Any:
    factory: Any = value.default_factory
    if factory is not None and factory not in _FACTORIES.values():
        raise ValueNotTransferableError(
            f"{_place(where)} is a defaultdict that makes its values with {factory!r}, which no task could be told."
            f" Use one of {', '.join(_FACTORIES)}, or a plain dict."
        )
    return {TAG: "defaultdict", "of": factory and factory.__name__, "v": _pairs(value, where)}


def _bytes(value: bytes | bytearray, where: _Where) -> Any:
    return {TAG: type(value).__name__, "v": base64.b64encode(value).decode("ascii")}


def _as_text(value: Any, where: _Where) -> Any:
    return {TAG: type(value).__name__, "v": str(value)}


def _of_class(value: Any, kind: str, where: _Where) -> Any:
    name = classes.class_name(type(value), kind, lambda: _place(where))
    parts = classes.take_apart(value, kind)
    return {TAG: kind, "c": name, "v": {part: _encode(held, (where, None, f" ({part})")) for part, held in parts.items()}}


def _place(where: _Where) -> str:
    steps = []
    while where is not None:
        where, key, words = where
        steps.append(words or f"[{key!r}]")
    return "".join(reversed(steps))


def _text(value: str, where: _Where) -> str:
    try:
        value.isascii() or value.encode()
    except UnicodeEncodeError as error:
        raise ValueNotTransferableError(
            f"{_place(where)} is text with an unpaired surrogate, {value[error.start]!r} at {error.start}, which no database"
            " stores. Decode the text with errors='replace'."
        ) from None
    return value


def _integer(value: int, where: _Where) -> int:
    if value.bit_length() > 2000:  # the least limit that Python takes is 640 digits
        try:
            str(value)
        except ValueError as error:
            raise ValueNotTransferableError(f"{_place(where)} is an integer that has no text form: {error}.") from None
    return value


_WRITERS: dict[type, Callable[[Any, _Where], Any]] = {
    str: _text,
    int: _integer,
    float: _float,
    list: _items,
    dict: _dict,
    tuple: _tuple,
    set: _set,
    frozenset: _set,
    collections.OrderedDict: _mapping,
    collections.Counter: _mapping,
    collections.defaultdict: _defaultdict,
    collections.deque: _deque,
    bytes: _bytes,
    bytearray: _bytes,
    **dict.fromkeys(_TEXTS, _as_text),
}


def decode(data: Any) -> Any:
    """Turns what ``encode`` made back into the value.

    Raises:
        EnvelopeError: An unknown tag, a value that does not fit its tag, a class that is not allowed or not loaded, or
            data that is nested too deeply.
    """
    try:
        return _decode(data)
    except RecursionError:
        raise EnvelopeError("a value is nested too deeply to be read") from None


def _decode(data: Any) -> Any:
    if isinstance(data, list):
        return [item if type(item) is str else _decode(item) for item in data]
    if not isinstance(data, dict):
        return data
    if TAG not in data:
        return {key: item if type(item) is str else _decode(item) for key, item in data.items()}
    tag: Any = data[TAG]
    if not (isinstance(tag, str) and tag in _TAGS):
        raise EnvelopeError(f"a value carries the unknown tag {tag!r}")
    try:
        raw = data["v"]
        if tag in _FROM_TEXT:
            return _FROM_TEXT[tag](_typed(raw, str))
        if tag in dates.TAGS:
            return dates.put_together(tag, raw)
        if tag in classes.KINDS:
            return classes.put_together(tag, data["c"], {part: _decode(held) for part, held in _typed(raw, dict).items()})
        of = data["of"] if tag in ("deque", "defaultdict") else None
        if tag in _FROM_ITEMS:
            return _all_kept(_FROM_ITEMS[tag]([_decode(item) for item in _typed(raw, list)], of), raw)
        pairs = {_decode(key): _decode(item) for key, item in map(_pair, _typed(raw, list))}
        return _all_kept(_FROM_PAIRS[tag](pairs, of), raw)
    except (EnvelopeError, RecursionError):
        raise
    except Exception as error:
        raise EnvelopeError(f"a value tagged {tag!r} cannot be read: {type(error).__name__}: {error}") from error


def _from_base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


_FROM_TEXT: dict[str, Callable[[str], Any]] = {
    "float": float,
    "bytes": _from_base64,
    "bytearray": lambda text: bytearray(_from_base64(text)),
    **{kind.__name__: kind for kind in _TEXTS},
}
# Of the items, and "of".
_FROM_ITEMS: dict[str, Callable[[list[Any], Any], Any]] = {
    "tuple": lambda items, _: tuple(items),
    "set": lambda items, _: set(items),
    "frozenset": lambda items, _: frozenset(items),
    "deque": lambda items, most: collections.deque(items, None if most is None else _typed(most, int)),
}
# Of the pairs, and "of".
_FROM_PAIRS: dict[str, Callable[[dict[Any, Any], Any], Any]] = {
    "dict": lambda pairs, _: pairs,
    "OrderedDict": lambda pairs, _: collections.OrderedDict(pairs),
    "Counter": lambda pairs, _: collections.Counter(pairs),
    "defaultdict": lambda pairs, name: collections.defaultdict(None if name is None else _FACTORIES[name], pairs),
}
_TAGS = frozenset({*_FROM_TEXT, *_FROM_ITEMS, *_FROM_PAIRS, *dates.TAGS, *classes.KINDS})


def _typed(raw: Any, kind: type) -> Any:
    if not isinstance(raw, kind) or isinstance(raw, bool):
        raise TypeError(f"it holds a {type(raw).__name__}, not a {kind.__name__}")
    return raw


def _pair(raw: Any) -> tuple[Any, Any]:
    key, item = _typed(raw, list)
    return key, item


def _all_kept(made: Any, raw: list[Any]) -> Any:
    if len(made) != len(raw):
        raise ValueError(f"of {len(raw)} items only {len(made)} are left")
    return made


def dumps(data: Any) -> str:
    """Compact JSON text of already encoded data.

    Raises:
        ValueNotTransferableError: The data is nested too deeply.
    """
    try:
        return json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except RecursionError:
        raise ValueNotTransferableError("value is nested too deeply.") from None
