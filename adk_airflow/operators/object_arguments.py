"""ADK objects as arguments of an operator."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseOperator

# Where Airflow keeps the arguments as they were given, the objects among them: agents cannot always be copied.
KEPT_ARGUMENTS = ("_BaseOperator__init_kwargs",)


class ObjectArgument:
    """An agent, tool or toolset that a DAG file made itself.

    Airflow copies an operator's arguments and writes those of mapped tasks into its database as text. This one is copied as
    itself and is shown by its name alone: its own repr may hold a key, and an address would make a new version of the DAG at
    every parse.

    Attributes:
        value: The object.
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        name = getattr(self.value, "name", None) or getattr(self.value, "__name__", None)
        return f"<{type(self.value).__name__} {name}>" if isinstance(name, str) else f"<{type(self.value).__name__}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> ObjectArgument:
        return self


def hide(value: Any) -> Any:
    """A reference or nothing as it is, an object as ``ObjectArgument``."""
    return value if value is None or isinstance(value, (str, ObjectArgument)) else ObjectArgument(value)


def shown(value: Any) -> Any:
    """What ``hide`` hid."""
    return value.value if isinstance(value, ObjectArgument) else value


class HidingPartial:
    """``Operator.partial`` that hides the arguments in the operator's ``adk_objects`` before Airflow stores them."""

    def __get__(self, task: BaseOperator | None, cls: Any) -> Any:
        original = vars(BaseOperator)["partial"].__get__(task, cls)

        def partial(**kwargs: Any) -> Any:
            return original(**{key: hide(value) if key in cls.adk_objects else value for key, value in kwargs.items()})

        return partial
