"""Dates, times, durations and their zones as JSON: the standard library's and pendulum's, each as what it is."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from collections.abc import Callable
from typing import Any

import pendulum

from adk_airflow.errors import ValueNotTransferableError

_MICROSECOND = dt.timedelta(microseconds=1)


def take_apart(value: Any, where: Callable[[], str]) -> tuple[str, Any] | None:
    """Returns ``(tag, JSON data)`` of a date, time, duration or interval, or None for every other value.

    Args:
        value: The value. Only the classes themselves are taken, not classes derived from them.
        where: Gives the place of the value, for an error.

    Raises:
        ValueNotTransferableError: The value has a time zone that another task could not make again.
    """
    kind = type(value)
    if kind in _MOMENTS:
        zone = _zone_parts(value.tzinfo, where)
        return _MOMENTS[kind], [value.replace(tzinfo=None, fold=0).isoformat(), zone, value.fold]
    if kind in _DAYS:
        return _DAYS[kind], value.isoformat()
    if kind is dt.timedelta:
        return "timedelta", [value.days, value.seconds, value.microseconds]
    if kind is pendulum.Duration:  # which counts days and seconds in its own way where it is negative
        plain: Any = dt.timedelta
        days, seconds, rest = (part.__get__(value) for part in (plain.days, plain.seconds, plain.microseconds))
        return "Duration", [value.years, value.months, days - 365 * value.years - 30 * value.months, seconds, rest]
    if kind is pendulum.Interval:
        start, end, absolute = value.__reduce__()[1]
        if type(start) in _ENDS and type(end) in _ENDS:
            return "Interval", [take_apart(start, where), take_apart(end, where), absolute]
    return None


def put_together(tag: str, raw: Any) -> Any:
    """What ``take_apart`` was given, of the tag and the data that it gave.

    Raises:
        TypeError, ValueError, LookupError, OverflowError: The data does not fit the tag.
    """
    if tag in ("date", "Date"):
        return (dt.date if tag == "date" else pendulum.Date).fromisoformat(raw)
    if tag == "timedelta":
        days, seconds, microseconds = map(_integer, raw)
        return dt.timedelta(days, seconds, microseconds)
    if tag == "Duration":
        years, months, days, seconds, microseconds = map(_integer, raw)
        return pendulum.Duration(years=years, months=months, days=days, seconds=seconds, microseconds=microseconds)
    if tag == "Interval":
        (start_tag, start), (end_tag, end), absolute = raw
        if not {start_tag, end_tag} <= {"Date", "DateTime"} or type(absolute) is not bool:
            raise ValueError("it is not between two dates")
        return pendulum.Interval(put_together(start_tag, start), put_together(end_tag, end), absolute)
    text, zone_parts, fold = raw
    zone = None if zone_parts is None else _zone(*zone_parts)
    parse = dt.time.fromisoformat if tag in ("time", "Time") else dt.datetime.fromisoformat
    moment: Any = parse(text)
    if moment.tzinfo is not None:
        raise ValueError("its time zone does not stand beside it")
    clock = (moment.hour, moment.minute, moment.second, moment.microsecond)
    if isinstance(moment, dt.time):
        return (dt.time if tag == "time" else pendulum.Time)(*clock, tzinfo=zone, fold=_integer(fold))
    cls = dt.datetime if tag == "datetime" else pendulum.DateTime
    return cls(moment.year, moment.month, moment.day, *clock, tzinfo=zone, fold=_integer(fold))


def _zone_parts(zone: dt.tzinfo | None, where: Callable[[], str]) -> list[Any] | None:
    kind = type(zone)
    if zone is None:
        return None
    if kind is dt.timezone:
        offset, *name = zone.__getinitargs__()  # type: ignore[attr-defined]
        return ["timezone", offset // _MICROSECOND, *name]
    if kind is pendulum.FixedTimezone:
        return ["FixedTimezone", zone.offset, zone.name]  # type: ignore[attr-defined]
    if kind in (zoneinfo.ZoneInfo, pendulum.Timezone):
        parts = [kind.__name__, zone.key]  # type: ignore[attr-defined]
        try:
            _zone(*parts)
        except Exception:
            pass  # read from a file, under a name of its own or none
        else:
            return parts
    raise ValueNotTransferableError(
        f"{where()} has the time zone {zone!r}, which another task could not make again."
        " Use zoneinfo.ZoneInfo with a name, or datetime.timezone."
    )


def _zone(kind: str, what: Any, *names: str) -> dt.tzinfo:
    if not all(type(name) is str for name in names):
        raise TypeError("the name of its time zone is no text")
    if kind == "timezone":
        return dt.timezone(_integer(what) * _MICROSECOND, *names)
    if kind == "FixedTimezone":
        return pendulum.FixedTimezone(_integer(what), *names)
    if kind in ("ZoneInfo", "Timezone"):
        return (zoneinfo.ZoneInfo if kind == "ZoneInfo" else pendulum.Timezone)(what)
    raise ValueError(f"{kind!r} is no kind of time zone")


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no integer")
    return value


_MOMENTS: dict[type, str] = {
    dt.datetime: "datetime",
    pendulum.DateTime: "DateTime",
    dt.time: "time",
    pendulum.Time: "Time",
}
_DAYS: dict[type, str] = {dt.date: "date", pendulum.Date: "Date"}
_ENDS = (pendulum.DateTime, pendulum.Date)

TAGS = frozenset({*_MOMENTS.values(), *_DAYS.values(), "timedelta", "Duration", "Interval"})
