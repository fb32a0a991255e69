"""Values as JSON that keeps their Python type.

``encode``/``decode`` are exact: what comes out equals what went in, type included (``True``, ``1`` and ``"1"`` stay three
things). A value that JSON lacks becomes ``{"$": tag, "v": ...}``, with its class in ``"c"`` where a module defines it.
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
from collections.abc import Callable, Sequence
from typing import Any

from adk_airflow.errors import EnvelopeError, ValueNotTransferableError
from adk_airflow.runtime.wire import classes, dates

TAG = "$"

_TEXTS: dict[type, str] = {
    kind: kind.__name__
    for kind in (decimal.Decimal, uuid.UUID, pathlib.PosixPath, pathlib.PurePosixPath, pathlib.PureWindowsPath)
}
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
    try:
        encode(value)
    except ValueNotTransferableError:
        return False
    return True


def _encode(value: Any, where: _Where) -> Any:
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        return _checked_text(value, where)
    if kind is int:
        return _checked_integer(value, where)
    if kind is float:
        return value if math.isfinite(value) else {TAG: "float", "v": repr(value)}
    if kind is list:
        return _items(value, where)
    if kind is dict:
        if TAG not in value and all(type(key) is str for key in value):
            for key in value:
                key.isascii() or _checked_text(key, (where, None, " key"))
            return {
                key: item if type(item) is str and item.isascii() else _encode(item, (where, key, ""))
                for key, item in value.items()
            }
        return {TAG: "dict", "v": _pairs(value, where)}
    if kind in (collections.OrderedDict, collections.Counter):
        return {TAG: kind.__name__, "v": _pairs(value, where)}
    if kind is collections.defaultdict:
        factory = value.default_factory
        if factory is not None and factory not in _FACTORIES.values():
            raise ValueNotTransferableError(
                f"{_place(where)} is a defaultdict that makes its values with {factory!r}, which no task could be told."
                f" Use one of {', '.join(_FACTORIES)}, or a plain dict."
            )
        return {TAG: "defaultdict", "v": [factory and factory.__name__, _pairs(value, where)]}
    if kind is collections.deque:
        return {TAG: "deque", "v": [value.maxlen, _items(value, where)]}
    if kind in (tuple, set, frozenset):
        return {TAG: kind.__name__, "v": _items(value if kind is tuple else sorted(value, key=repr), where)}
    if kind in (bytes, bytearray):
        return {TAG: kind.__name__, "v": base64.b64encode(value).decode("ascii")}
    if (of_class := classes.kind_of(value)) is not None:
        name = classes.class_name(kind, of_class, lambda: _place(where))
        parts = classes.take_apart(value, of_class)
        encoded = {part: _encode(held, (where, None, f" ({part})")) for part, held in parts.items()}
        return {TAG: of_class, "c": name, "v": encoded}
    if (date := dates.take_apart(value, lambda: _place(where))) is not None:
        return {TAG: date[0], "v": date[1]}
    if kind in _TEXTS:
        return {TAG: _TEXTS[kind], "v": str(value)}
    raise ValueNotTransferableError(
        f"{_place(where)} is a {kind.__module__}.{kind.__qualname__}, which has no JSON form. Return or store plain data (str,"
        " numbers, bool, None, list, dict, tuple, set, bytes, dates) or a pydantic model, dataclass, named tuple or enum of a"
        " module."
    )


def _items(value: Sequence[Any], where: _Where) -> list[Any]:
    return [item if type(item) is str and item.isascii() else _encode(item, (where, i, "")) for i, item in enumerate(value)]


def _pairs(value: dict[Any, Any], where: _Where) -> list[Any]:
    return [[_encode(k, (where, None, " key")), _encode(v, (where, k, ""))] for k, v in value.items()]


def _place(where: _Where) -> str:
    steps = []
    while where is not None:
        where, key, words = where
        steps.append(words or f"[{key!r}]")
    return "".join(reversed(steps))


def _checked_text(value: str, where: _Where) -> str:
    try:
        value.isascii() or value.encode()
    except UnicodeEncodeError as error:
        raise ValueNotTransferableError(
            f"{_place(where)} is text with an unpaired surrogate, {value[error.start]!r} at {error.start}, which no database"
            " stores. Decode the text with errors='replace'."
        ) from None
    return value


def _checked_integer(value: int, where: _Where) -> int:
    if value.bit_length() > 2000:  # the least limit that Python takes is 640 digits
        try:
            str(value)
        except ValueError as error:
            raise ValueNotTransferableError(f"{_place(where)} is an integer that has no text form: {error}.") from None
    return value


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
    if not (isinstance(tag, str) and (tag in _READERS or tag in dates.TAGS or tag in classes.KINDS)):
        raise EnvelopeError(f"a value carries the unknown tag {tag!r}")
    try:
        raw = data["v"]
        if tag in _READERS:
            return _READERS[tag](raw)
        if tag in dates.TAGS:
            return dates.put_together(tag, raw)
        return classes.put_together(tag, data["c"], {part: _decode(held) for part, held in _typed(raw, dict).items()})
    except (EnvelopeError, RecursionError):
        raise
    except Exception as error:
        raise EnvelopeError(f"a value tagged {tag!r} cannot be read: {type(error).__name__}: {error}") from error


def _of_text(make: Callable[[str], Any]) -> Callable[[Any], Any]:
    return lambda raw: make(_typed(raw, str))


def _of_items(make: Callable[[list[Any]], Any]) -> Callable[[Any], Any]:
    return lambda raw: _all_kept(make(_decode(_typed(raw, list))), raw)


def _of_pairs(make: Callable[[dict[Any, Any]], Any]) -> Callable[[Any], Any]:
    def read(raw: Any) -> Any:
        pairs = {_decode(key): _decode(item) for key, item in (_typed(pair, list) for pair in _typed(raw, list))}
        return _all_kept(make(pairs), raw)

    return read


def _defaultdict(raw: Any) -> Any:
    factory, pairs = _typed(raw, list)
    return collections.defaultdict(None if factory is None else _FACTORIES[factory], _READERS["dict"](pairs))


def _deque(raw: Any) -> Any:
    most, items = _typed(raw, list)
    if type(most) is not int and most is not None:
        raise TypeError(f"its greatest length is {most!r}")
    return _all_kept(collections.deque(_decode(_typed(items, list)), maxlen=most), items)


def _typed(raw: Any, kind: type) -> Any:
    if not isinstance(raw, kind):
        raise TypeError(f"it holds a {type(raw).__name__}, not a {kind.__name__}")
    return raw


def _all_kept(made: Any, raw: list[Any]) -> Any:
    if len(made) != len(raw):
        raise ValueError(f"of {len(raw)} items only {len(made)} are left")
    return made


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


_READERS: dict[str, Callable[[Any], Any]] = {
    "float": _of_text(float),
    "bytes": _of_text(_bytes),
    "bytearray": _of_text(lambda text: bytearray(_bytes(text))),
    **{tag: _of_text(kind) for kind, tag in _TEXTS.items()},
    "tuple": _of_items(tuple),
    "set": _of_items(set),
    "frozenset": _of_items(frozenset),
    "dict": _of_pairs(dict),
    "OrderedDict": _of_pairs(collections.OrderedDict),
    "Counter": _of_pairs(collections.Counter),
    "defaultdict": _defaultdict,
    "deque": _deque,
}


def dumps(data: Any) -> str:
    """Compact JSON text of already encoded data."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
