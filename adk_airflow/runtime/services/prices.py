"""What tokens cost, as ``[adk_airflow] prices`` says: a table of the user's, or the prices of genai-prices."""

from __future__ import annotations

import difflib
import fnmatch
import functools
import importlib.util
import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from adk_airflow.errors import ServiceConfigurationError
from adk_airflow.runtime.record.usage import Price, Spent

_LIBRARY = "genai-prices"
_MILLION = 1_000_000
_SETTING = "[adk_airflow] prices"
_KEYS = ("input", "output", "cached", "cache_write")
_EXAMPLE = '{"gemini-2.5-flash": {"input": 0.3, "output": 2.5}}'


def read_prices() -> Price | None:
    """What the setting says: a JSON object, the path of a file with one, or ``genai-prices``; None where it is empty.

    The object has, by the name of a model or a pattern (``gemini-2.5-*``), prices of a million tokens: ``input``, ``output``
    (thoughts included), and ``cached`` and ``cache_write`` of input tokens read from or written to a cache, where these have
    prices of their own.

    Raises:
        ServiceConfigurationError: It says none of this.
    """
    from airflow.sdk import conf

    text = (conf.get("adk_airflow", "prices", fallback="") or "").strip()
    if not text:
        return None
    if text == _LIBRARY:
        return _by_name(_library())
    if not text.startswith("{"):
        try:
            if not Path(text).is_absolute():
                raise ValueError("it is no absolute path")
            text = Path(text).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise ServiceConfigurationError(
                f"{_SETTING} is {text!r}, which is neither {_LIBRARY} nor a JSON object such as {_EXAMPLE}, and no file that"
                f" can be read: {error}"
            ) from None
    try:
        table = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise ServiceConfigurationError(f"{_SETTING} is no JSON object: {error}") from None
    return _by_name(_of_table(_checked(table)))


def _by_name(find: Callable[[str, Spent, int], Decimal | None]) -> Price:
    """By the whole name of a model, else by the last part of one such as ``projects/p/.../models/gemini-2.5-flash``."""

    def price(model: str, spent: Spent, written: int) -> Decimal | None:
        found = (find(name, spent, written) for name in dict.fromkeys((model, model.rpartition("/")[2])))
        return next((cost for cost in found if cost is not None), None)

    return price


def _checked(table: Any) -> Mapping[str, Mapping[str, Decimal]]:
    if not isinstance(table, dict) or not table:
        raise ServiceConfigurationError(f"{_SETTING} is no JSON object with a model, such as {_EXAMPLE}")
    for model, row in table.items():
        if not isinstance(row, dict):
            raise ServiceConfigurationError(f"{_SETTING}: {model!r} has no prices, such as {_EXAMPLE}")
        for key, value in row.items():
            if key not in _KEYS:
                near = difflib.get_close_matches(key, _KEYS, n=1)
                hint = f" Did you mean {near[0]!r}?" if near else f" There are {', '.join(_KEYS)}."
                raise ServiceConfigurationError(f"{_SETTING}: {model!r} has a price of {key!r}.{hint}")
            if not (type(value) in (int, Decimal) and value >= 0):
                raise ServiceConfigurationError(f"{_SETTING}: the {key} price {value!r} of {model!r} is no number of 0 or more")
        if missing := [key for key in ("input", "output") if key not in row]:
            raise ServiceConfigurationError(f"{_SETTING}: {model!r} has no price of {' and '.join(missing)}")
    return {model: {key: Decimal(value) for key, value in row.items()} for model, row in table.items()}


def _of_table(table: Mapping[str, Mapping[str, Decimal]]) -> Callable[[str, Spent, int], Decimal | None]:
    def find(model: str, spent: Spent, written: int) -> Decimal | None:
        row = table.get(model) or next((row for name, row in table.items() if fnmatch.fnmatchcase(model, name)), None)
        if row is None:
            return None
        plain = max(0, spent.input_tokens - spent.cached_tokens - written)
        sums = {"input": plain, "cached": spent.cached_tokens, "cache_write": written, "output": spent.output_tokens}
        return sum((row.get(key, row["input"]) * count for key, count in sums.items()), Decimal(0)) / _MILLION

    return find


def _library() -> Callable[[str, Spent, int], Decimal | None]:
    if importlib.util.find_spec("genai_prices") is None:
        raise ServiceConfigurationError(f"{_SETTING} is {_LIBRARY}, which is not installed here. Install adk-airflow[prices].")

    @functools.cache
    def known(model: str) -> bool:
        import genai_prices  # here: most tasks ask no model

        try:
            genai_prices.calc_price(genai_prices.Usage(input_tokens=1), model)
        except LookupError:
            return False
        return True

    def find(model: str, spent: Spent, written: int) -> Decimal | None:
        if not known(model):
            return None
        import genai_prices

        # As much as was read can be of the cache; more would be refused.
        cached = min(spent.cached_tokens, spent.input_tokens)
        usage = genai_prices.Usage(
            input_tokens=spent.input_tokens,
            output_tokens=spent.output_tokens,
            cache_read_tokens=cached,
            cache_write_tokens=min(written, spent.input_tokens - cached),
        )
        return genai_prices.calc_price(usage, model).total_price

    return find
