"""Finds where a module touches what is private in google-adk: an underscore name, or its command line.

ruff (SLF001, PLC2701, TID251 in pyproject.toml) sees imports and attributes. This sees more: names in text (`getattr(node,
"_func")`), and methods and attributes of a class of ours that are private ones of the google-adk class above it.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOM = ROOT / "adk_airflow" / "runtime" / "adk"
PACKAGES = [ROOT / "adk_airflow", *(ROOT / "providers").glob("*/adk_airflow_*")]

_PRIVATE = re.compile(r"_[a-zA-Z]\w*")
_BY_NAME = {"getattr", "hasattr", "setattr", "delattr", "getattr_static", "__setattr__"}
# Documented, in spite of the underscore: of named tuples, enums, `sys`, `os`, and what a tool of google-adk tells the model.
_PUBLIC = {"_fields", "_replace", "_name_", "_value_", "_getframe", "_current_frames", "_exit", "_get_declaration"}
_PUBLIC |= {"_loop_thread_id"}  # of Airflow: tests/test_airflow_names.py


def private_names_in(path: Path) -> set[str]:
    """The private names of google-adk that a module of `PACKAGES` touches."""
    package = next(package for package in PACKAGES if path.is_relative_to(package))
    found = private_names(path.read_text(), own_names(package))
    return found | _overridden(_module_of(path, package))


def private_names(text: str, own: frozenset[str] = frozenset()) -> set[str]:
    """Those that a module's text touches.

    Args:
        text: The text.
        own: The private names that are defined beside it, which are not google-adk's.
    """
    tree = ast.parse(text)
    return {*_imported(tree), *(name for name in _touched(tree) if name not in own | _PUBLIC)}


@cache
def own_names(package: Path) -> frozenset[str]:
    """The private names that a package defines itself."""
    found = set()
    for path in package.rglob("*.py"):
        for part in ast.walk(ast.parse(path.read_text())):
            if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(part.name)
            elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                found.add(part.id)
            elif isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store) and _is_name(part.value, "self"):
                found.add(part.attr)
    return frozenset(found)


def _imported(tree: ast.Module) -> Iterator[str]:
    for part in ast.walk(tree):
        if isinstance(part, ast.ImportFrom) and (part.module or "").startswith("google.adk"):
            names = [alias.name for alias in part.names]
            internal = _is_internal(part.module or "")
            yield from (name for name in names if internal or _PRIVATE.fullmatch(name) or name == "cli")
        elif isinstance(part, ast.Import):
            yield from (alias.name for alias in part.names if _is_internal(alias.name))


def _touched(tree: ast.Module) -> Iterator[str]:
    for part in ast.walk(tree):
        if isinstance(part, ast.Attribute) and _PRIVATE.fullmatch(part.attr):
            yield part.attr
        elif isinstance(part, ast.Call) and _called(part.func) in _BY_NAME:
            yield from (name for argument in part.args[:2] if (name := _text(argument)))
        elif isinstance(part, ast.Subscript) and (name := _text(part.slice)) and _is_namespace(part.value):
            yield name


def _is_internal(module: str) -> bool:
    parts = module.split(".")
    return parts[:2] == ["google", "adk"] and ("cli" in parts or any(part.startswith("_") for part in parts))


def _is_name(part: ast.expr, name: str) -> bool:
    return isinstance(part, ast.Name) and part.id == name


def _called(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _text(part: ast.expr) -> str:
    text = part.value if isinstance(part, ast.Constant) else None
    return text if isinstance(text, str) and _PRIVATE.fullmatch(text) else ""


def _is_namespace(part: ast.expr) -> bool:
    return (isinstance(part, ast.Attribute) and part.attr == "__dict__") or (
        isinstance(part, ast.Call) and _called(part.func) == "vars"
    )


def _module_of(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _overridden(module: str) -> set[str]:
    """The private names of google-adk's classes that classes of the module define again."""
    found: set[str] = set()
    for cls in vars(import_module(module)).values():
        if not isinstance(cls, type) or cls.__module__ != module:
            continue
        above: set[str] = set()
        for base in cls.__mro__:
            if base.__module__.startswith("google.adk"):
                above |= _private_names_of(base)
        own = {*vars(cls), *vars(cls).get("__private_attributes__", {}), *_set_on_self(cls)}
        found |= own & above
    return found - _PUBLIC


@cache
def _private_names_of(base: type) -> frozenset[str]:
    names = {*vars(base), *vars(base).get("__private_attributes__", {}), *_set_on_self(base)}
    return frozenset(name for name in names if _PRIVATE.fullmatch(name) and not name.startswith("_abc_"))


def _set_on_self(cls: type) -> set[str]:
    return set(re.findall(r"\bself\.(_[a-zA-Z]\w*)\s*(?::[^=\n]+)?=[^=]", inspect.getsource(cls)))
