"""An object in the place of a user's or ADK's own: of a class below the original's, that looks like it, with the same fields.

``isinstance`` and what the original notes in itself are as without it.
"""

from __future__ import annotations

from typing import Any

_LOOKS = ("__doc__", "__module__", "__qualname__")
_FIELDS = ("__dict__", "__pydantic_extra__", "__pydantic_fields_set__", "__pydantic_private__")


def class_below(cls: type, *above: type, **members: Any) -> Any:
    """A class below ``cls`` that looks like it.

    Args:
        cls: The class.
        *above: Classes that come before it.
        **members: What it has of its own, methods and ``__slots__``.
    """
    return type(cls.__name__, (*above, cls), {**{name: getattr(cls, name) for name in _LOOKS}, **members})


def in_place_of(original: Any, cls: Any, slot: str, value: Any) -> Any:
    """An object of a class below the original's that shares its fields.

    Args:
        original: The original.
        cls: The class, made by ``class_below``.
        slot: The attribute of the class that is the object's own.
        value: What it holds.
    """
    made = cls.__new__(cls)
    for name in _FIELDS:
        if hasattr(original, name):
            object.__setattr__(made, name, getattr(original, name))
    object.__setattr__(made, slot, value)
    return made
