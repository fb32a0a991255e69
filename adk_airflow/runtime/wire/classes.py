"""Instances of the classes that a workflow's own modules define, taken apart and put together again.

Putting together imports nothing and runs nothing of the class: no ``__init__``, no ``__new__``, no validation, no default
factory. Only classes that the workflow's own import has already loaded are found.
"""

from __future__ import annotations

import dataclasses
import enum
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

from adk_airflow.errors import EnvelopeError, ValueNotTransferableError

# By tag: which classes are of the kind.
KINDS: dict[str, Callable[[type], bool]] = {
    "model": lambda cls: issubclass(cls, BaseModel),
    "enum": lambda cls: issubclass(cls, enum.Enum),
    "dataclass": dataclasses.is_dataclass,
    "namedtuple": lambda cls: issubclass(cls, tuple) and hasattr(cls, "_fields"),
}


def kind_of(value: Any) -> str | None:
    """``"model"`` (pydantic), ``"enum"``, ``"dataclass"`` or ``"namedtuple"``; None for everything else."""
    return next((kind for kind, fits in KINDS.items() if fits(type(value))), None)


def take_apart(value: Any, kind: str) -> dict[str, Any]:
    """All that the value holds, by part; ``put_together`` takes the same parts."""
    if kind == "model":
        return {
            "fields": dict(value.__dict__),
            "extra": value.__pydantic_extra__,
            "private": value.__pydantic_private__,
            "set": value.model_fields_set,
        }
    if kind == "dataclass":
        held = object.__getstate__(value)
        attributes, slots = held if isinstance(held, tuple) else (held, None)
        return {"attributes": attributes or {}, "slots": slots or {}}
    if kind == "namedtuple":
        return {"items": list(value)}
    # By name, whatever its value is; flags that are put together have a value only.
    name = value._name_
    return {"name": name} if type(value).__members__.get(name) is value else {"value": value._value_}


def put_together(kind: str, class_name: str, parts: Mapping[str, Any]) -> Any:
    """The value as it was.

    Raises:
        EnvelopeError: The class is not loaded, is not of that kind, or has other parts.
        KeyError, TypeError, ValueError: A part is missing or is of another type.
    """
    cls = _loaded_class(class_name, kind)
    if kind == "enum":
        return cls.__members__[parts["name"]] if "name" in parts else cls(parts["value"])
    if kind == "namedtuple":
        items = _checked(parts["items"], list)
        if len(items) != len(cls._fields):
            raise EnvelopeError(f"a {class_name} has {len(cls._fields)} items, not {len(items)}")
        return tuple.__new__(cls, items)
    made = object.__new__(cls)
    if kind == "dataclass":
        attributes, slots = _checked(parts["attributes"], dict), _checked(parts["slots"], dict)
        if attributes:
            made.__dict__.update(attributes)
        for name, item in slots.items():
            if not isinstance(getattr(cls, name, None), types.MemberDescriptorType):
                raise EnvelopeError(f"a {class_name} has no slot {name!r}")
            object.__setattr__(made, name, item)
        return made
    object.__setattr__(made, "__dict__", _checked(parts["fields"], dict))
    object.__setattr__(made, "__pydantic_extra__", _checked(parts["extra"], dict, type(None)))
    object.__setattr__(made, "__pydantic_private__", _checked(parts["private"], dict, type(None)))
    object.__setattr__(made, "__pydantic_fields_set__", _checked(parts["set"], set))
    return made


def _checked(part: Any, *kinds: type) -> Any:
    """The part. Raises TypeError where it is of another type, or has names that are no text."""
    if type(part) not in kinds or (isinstance(part, (dict, set)) and not all(isinstance(name, str) for name in part)):
        raise TypeError(f"a part of it is a {type(part).__name__}, not what such a value holds")
    return part


def class_name(cls: type, kind: str, where: Callable[[], str]) -> str:
    """The name by which another task finds the class.

    Args:
        cls: The class.
        kind: What kind of class it is, as ``kind_of`` says.
        where: Gives the place of the value, for an error.

    Raises:
        ValueNotTransferableError: It could not, or could not make an instance without running the class.
    """
    name = f"{cls.__module__}:{cls.__qualname__}"
    try:
        found = None if "<locals>" in name else _loaded_class(name, kind)
    except EnvelopeError:
        found = None
    if found is not cls:
        raise ValueNotTransferableError(
            f"{where()} is a {cls.__qualname__}, a class that another task could not find by its name. Define the class at the"
            " top level of a module (a class made inside a function or a parametrized generic has no place there)."
        )
    if kind == "dataclass" and not _is_plain_object(cls):
        raise ValueNotTransferableError(
            f"{where()} is a {cls.__qualname__}, a dataclass that is also a built-in type, which has no JSON form."
            " Give it a field for what it inherits."
        )
    return name


def _is_plain_object(cls: type) -> bool:
    try:
        object.__new__(cls)
    except TypeError:
        return False
    return True


def _loaded_class(name: str, kind: str) -> Any:
    module_name, _, qualname = name.partition(":")
    found: Any = sys.modules.get(module_name)
    if module_name.split(".")[:2] == ["google", "genai"] and found is None:
        import google.genai.types as found
    for part in qualname.split("."):
        found = getattr(found, "__dict__", {}).get(part)  # not getattr: a module may import what it is asked for
    if not (isinstance(found, type) and KINDS[kind](found)):
        raise EnvelopeError(
            f"a value of class {name} is not allowed: only a {kind} class that importing the workflow loads"
            " can be read back, and nothing is imported for a value"
        )
    return found
