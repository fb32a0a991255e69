"""Values travel between tasks with their type, or not at all."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import importlib.resources
import json
import operator
import pathlib
import sys
import types as types_module
import uuid
import zoneinfo
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import pendulum
import pytest
from dateutil import tz
from google.genai import types
from pydantic import BaseModel, Field, PrivateAttr, SecretBytes, SecretStr

from adk_airflow.errors import EnvelopeError, ValueNotTransferableError
from adk_airflow.runtime.wire import codec

T = TypeVar("T")


class Access(enum.IntFlag):
    READ = 1
    WRITE = 2


class Ticket(BaseModel):
    model_config = {"extra": "allow"}
    id: str = Field(default_factory=lambda: uuid.uuid4().hex)
    tags: list[str] = Field(default_factory=list)
    _seen: int = PrivateAttr(default=0)

    def model_post_init(self, context: object) -> None:
        self._seen += 1


class Box(BaseModel, Generic[T]):
    inside: T


class Login(BaseModel):
    key: SecretStr


class Colour(enum.Enum):
    RED = "red"


class Size(enum.IntEnum):
    SMALL = 1


class Mood(enum.StrEnum):
    GOOD = "good"


class Right(enum.Flag):
    NONE = 0
    READ = 1
    WRITE = 2


class Plan(enum.Enum):
    FREE = ("free", dt.date(2026, 1, 2))
    PAID = Ticket(id="paid")
    ASK = (operator.add,)
    ODD = float("nan")


class Order(BaseModel):
    sku: str
    qty: int = Field(default=1, alias="quantity")
    tags: tuple[str, ...] = ()


@dataclasses.dataclass
class Parcel:
    sku: str
    notes: list[str] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        self.made = [*getattr(self, "made", []), "once"]


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: tuple[int, ...] = ()


class Pair(NamedTuple):
    left: int
    right: object = None


@dataclasses.dataclass
class Listing(list):  # type: ignore[type-arg]
    title: str = ""


def zone_from_file(key: str | None = None) -> zoneinfo.ZoneInfo:
    with importlib.resources.files("tzdata").joinpath("zoneinfo", "Europe", "Berlin").open("rb") as file:
        return zoneinfo.ZoneInfo.from_file(file, key=key)


ZONES = [
    None,
    dt.UTC,
    dt.timezone(dt.timedelta(hours=-9, minutes=-30)),
    dt.timezone(dt.timedelta(hours=2, seconds=1, microseconds=5), "OURS"),
    zoneinfo.ZoneInfo("Europe/Berlin"),
    zoneinfo.ZoneInfo("UTC"),
    pendulum.timezone("Europe/Berlin"),
    pendulum.UTC,
    pendulum.FixedTimezone(7200),
    pendulum.FixedTimezone(-3600, "EST"),
]
MOMENTS = [
    *(dt.datetime(2026, 10, 25, 2, 30, 1, 5, tzinfo=zone, fold=fold) for zone in ZONES for fold in (0, 1)),
    *(pendulum.DateTime(2026, 10, 25, 2, 30, 1, 5, tzinfo=zone, fold=fold) for zone in ZONES for fold in (0, 1)),
    *(dt.time(2, 30, 1, 5, tzinfo=zone, fold=fold) for zone in ZONES for fold in (0, 1)),
    *(pendulum.Time(2, 30, 1, 5, tzinfo=zone, fold=fold) for zone in ZONES for fold in (0, 1)),
    pendulum.parse("2026-01-01T00:00:00+02:00"),
    pendulum.parse("2026-01-01T00:00:00Z"),
    pendulum.naive(2026, 1, 1),
    dt.datetime.min,
    dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
]
DATES = [
    pendulum.date(2026, 1, 2),
    pendulum.duration(years=1, months=2, weeks=1, days=-3, hours=5, microseconds=7),
    pendulum.duration(days=-1, seconds=5, microseconds=-1),
    pendulum.duration(years=-1, months=3),
    pendulum.interval(pendulum.datetime(2026, 1, 1), pendulum.datetime(2025, 1, 1)),
    pendulum.interval(pendulum.datetime(2026, 1, 1), pendulum.datetime(2025, 1, 1), absolute=True),
    pendulum.interval(pendulum.date(2026, 1, 1), pendulum.date(2027, 1, 1)),
    pendulum.parse("2026-01-01T00:00:00+02:00") - pendulum.datetime(2025, 1, 1, tz="Europe/Berlin"),
]

VALUES = [
    Parcel("s", ["fragile"]),
    Point(1, (2,)),
    Pair(1, Point(2)),
    collections.OrderedDict(z=1, a=2),
    collections.Counter("aab"),
    collections.defaultdict(list, {1: [Pair(1)]}),
    collections.defaultdict(None, {"a": 1}),
    collections.deque([1, (2,)], maxlen=3),
    pathlib.Path("/tmp/x"),
    pathlib.PureWindowsPath("C:/x"),
    None,
    True,
    1,
    "1",
    0,
    "",
    False,
    [],
    {},
    1.5,
    float("inf"),
    2**80,
    "naïve ☃",
    b"\x00\xff",
    (1, (2, "x")),
    {1, 2},
    frozenset({"a"}),
    {"$": "a user's own dollar key"},
    {1: "int key", "1": "text key", True and 2: None},
    {"nested": [{"deep": (b"x", {"y": {3}})}]},
    dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
    dt.date(2026, 1, 2),
    dt.time(3, 4),
    dt.timedelta(days=1, microseconds=7),
    decimal.Decimal("1.10"),
    uuid.UUID(int=7),
    Colour.RED,
    Access.READ | Access.WRITE,
    Right.NONE,
    Right.READ | Right.WRITE,
    Size.SMALL,
    Mood.GOOD,
    *Plan,
    {Mood.GOOD: 1, Colour.RED: 2, "red": 3, None: 4, dt.date(2026, 1, 2): 5, (1, "x"): 6},
    bytearray(b"x"),
    dt.datetime(2026, 3, 1, 12, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")),
    dt.datetime(2026, 10, 25, 2, 30, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"), fold=1),
    dt.datetime(2026, 3, 1, 12),
    pendulum.datetime(2026, 3, 1, 12, tz="Europe/Berlin"),
    *DATES,
    Order(sku="s", quantity=2, tags=("a",)),
    types.Content(role="user", parts=[types.Part(text="hi"), types.Part.from_bytes(data=b"p", mime_type="image/png")]),
    {"__classname__": "builtins.tuple", "__data__": [1], "__version__": 1},
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:40])
def test_a_value_comes_back_equal_and_of_the_same_type(value: object) -> None:
    back = codec.decode(json.loads(codec.dumps(codec.encode(value))))

    assert back == value or back is value
    assert type(back) is type(value)


@pytest.mark.parametrize("value", MOMENTS, ids=repr)
def test_a_moment_comes_back_with_its_zone_and_its_fold(value: Any) -> None:
    back = codec.decode(json.loads(codec.dumps(codec.encode(value))))

    assert type(back) is type(value)
    assert back.isoformat() == value.isoformat()
    assert (back.tzinfo, type(back.tzinfo), back.fold) == (value.tzinfo, type(value.tzinfo), value.fold)
    assert (back.tzname(), back.utcoffset()) == (value.tzname(), value.utcoffset())


def test_a_duration_keeps_its_parts() -> None:
    value = pendulum.duration(years=1, months=2, weeks=1, days=3, hours=-5, microseconds=7)
    back = codec.decode(codec.encode(value))

    assert (back.in_words(), back.days, back.total_seconds()) == (value.in_words(), value.days, value.total_seconds())
    assert pendulum.date(2026, 1, 31) + back == pendulum.date(2026, 1, 31) + value


@pytest.mark.parametrize(
    "zone",
    [
        tz.gettz("Europe/Berlin"),
        tz.tzlocal(),
        zone_from_file(),
        zone_from_file("Our/Own"),
    ],
    ids=["dateutil", "dateutil local", "no name", "a name of its own"],
)
def test_a_zone_that_another_task_could_not_make_again_is_refused_with_what_to_use(zone: dt.tzinfo) -> None:
    for value in (dt.datetime(2026, 1, 1, tzinfo=zone), dt.time(1, tzinfo=zone)):
        with pytest.raises(ValueNotTransferableError, match=r"value\['at'\] has the time zone .* Use zoneinfo.ZoneInfo"):
            codec.encode({"at": value})


def test_a_date_keeps_its_zone_and_its_fold() -> None:
    berlin = pendulum.datetime(2026, 3, 1, 12, tz="Europe/Berlin")
    twice = dt.datetime(2026, 10, 25, 2, 30, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"), fold=1)

    assert codec.decode(codec.encode(berlin)).add(days=60) == berlin.add(days=60)
    assert codec.decode(codec.encode(twice)).utcoffset() == twice.utcoffset()


def test_a_model_comes_back_with_all_it_holds_and_nothing_of_its_class_runs() -> None:
    ticket = Ticket(colour="red")
    ticket.tags.append("urgent")
    back = codec.decode(json.loads(codec.dumps(codec.encode(ticket))))

    assert back == ticket
    assert (back.id, back.tags, back._seen, back.colour) == (ticket.id, ["urgent"], 1, "red")
    assert back.model_fields_set == ticket.model_fields_set


def test_a_dataclass_comes_back_with_all_it_holds_and_nothing_of_its_class_runs() -> None:
    back = codec.decode(json.loads(codec.dumps(codec.encode(Parcel("s")))))

    assert vars(back) == {"sku": "s", "notes": [], "made": ["once"]}


def test_containers_keep_how_they_work() -> None:
    values = [collections.defaultdict(list), collections.deque([1, 2], maxlen=2), collections.OrderedDict(z=1, a=2)]
    made, last, ordered = codec.decode(json.loads(codec.dumps(codec.encode(values))))
    made["new"].append(1)
    last.append(3)

    assert (made, list(last), list(ordered)) == ({"new": [1]}, [2, 3], ["z", "a"])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Listing("text"), "value is a Listing, a dataclass that is also a built-in type"),
        ([collections.defaultdict(lambda: 1)], r"value\[0\] is a defaultdict that makes its values with <function"),
    ],
)
def test_what_another_task_could_not_make_again_is_refused(value: object, expected: str) -> None:
    with pytest.raises(ValueNotTransferableError, match=expected):
        codec.encode(value)


def test_a_class_that_could_not_be_found_by_its_name_is_refused_where_it_is_written() -> None:
    with pytest.raises(ValueNotTransferableError, match="parametrized generic"):
        codec.encode(Box[int](inside=1))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": ["fine", "half \ud83d"]}, r"value\['a'\]\[1\] is text with an unpaired surrogate, '\\ud83d' at 5"),
        ({"half \ud83d": 1}, r"value key is text with an unpaired surrogate"),
        ([10**5000], r"value\[0\] is an integer that has no text form: Exceeds the limit \(4300 digits\)"),
    ],
)
def test_what_json_or_a_database_would_refuse_is_named_with_its_place(value: object, expected: str) -> None:
    with pytest.raises(ValueNotTransferableError, match=expected):
        codec.encode(value)


def test_a_value_that_is_nested_without_end_is_refused() -> None:
    endless: list[object] = []
    endless.append(endless)

    with pytest.raises(ValueNotTransferableError, match="nested too deeply, or holds itself"):
        codec.encode(endless)


def test_bool_int_and_text_stay_three_things() -> None:
    back = codec.decode(json.loads(codec.dumps(codec.encode([True, 1, "1"]))))

    assert [type(item) for item in back] == [bool, int, str]


def test_a_model_keeps_which_fields_were_set() -> None:
    back = codec.decode(codec.encode(Order(sku="s")))

    assert back.model_fields_set == {"sku"}
    assert back.qty == 1


@pytest.mark.parametrize("value", [object(), lambda: 1, [1, {"k": object()}]])
def test_a_value_without_a_json_form_is_refused_with_its_place_and_type(value: object) -> None:
    with pytest.raises(ValueNotTransferableError, match=r"value.* is a .*no JSON form"):
        codec.encode(value)


@pytest.mark.parametrize("secret", [SecretStr("hidden"), SecretBytes(b"hidden"), Login(key=SecretStr("hidden"))])
def test_a_secret_never_travels(secret: object) -> None:
    with pytest.raises(ValueNotTransferableError, match=r"is a pydantic.types.Secret\w+, which has no JSON form") as refused:
        codec.encode(secret)

    assert "hidden" not in str(refused.value)


def test_a_class_made_inside_a_function_is_refused() -> None:
    class Local(BaseModel):
        x: int = 1

    with pytest.raises(ValueNotTransferableError, match="class made inside a function"):
        codec.encode(Local())


MODEL = codec.encode(Order(sku="s"))["v"]


def nested(levels: int, around: Callable[[Any], Any] = lambda inner: [inner]) -> Any:
    data: Any = 1
    for _ in range(levels):
        data = around(data)
    return data


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"$": "model", "c": "subprocess:Popen", "v": {"args": "true"}}, "subprocess:Popen is not allowed"),
        ({"$": "model", "c": "not_imported_module:Thing", "v": {}}, "not_imported_module:Thing is not allowed"),
        ({"$": "enum", "c": "os:environ", "v": {"value": "X"}}, "os:environ is not allowed"),
        ({"$": "dataclass", "c": "subprocess:Popen", "v": {"attributes": {}, "slots": {}}}, "subprocess:Popen is not allowed"),
        ({"$": "namedtuple", "c": "builtins:tuple", "v": {"items": []}}, "builtins:tuple is not allowed"),
        ({"$": "namedtuple", "c": f"{__name__}:Pair", "v": {"items": [1]}}, "Pair has 2 items, not 1"),
        ({"$": "dataclass", "c": f"{__name__}:Point", "v": {"attributes": {}, "slots": {"z": 1}}}, "Point has no slot 'z'"),
        ({"$": "defaultdict", "of": "eval", "v": []}, "tagged 'defaultdict' cannot be read"),
        ({"$": "pickle", "v": "gASV"}, "unknown tag 'pickle'"),
        ({"$": "datetime", "v": ["datetime"]}, "tagged 'datetime' cannot be read"),
        ({"$": "bytes", "v": 3}, "tagged 'bytes' cannot be read"),
        ({"$": "datetime", "v": "yesterday"}, "tagged 'datetime' cannot be read"),
        ({"$": "datetime", "v": ["2026-01-01T00:00:00", ["Timezone", "+02:00"], 0]}, "tagged 'datetime' cannot be read"),
        ({"$": "time", "v": ["08:00", ["ZoneInfo", "../../etc/passwd"], 0]}, "tagged 'time' cannot be read"),
        ({"$": "time", "v": ["08:00", ["FixedTimezone", 7200, 3], 0]}, "tagged 'time' cannot be read"),
        ({"$": "time", "v": ["08:00+02:00", None, 0]}, "tagged 'time' cannot be read"),
        ({"$": "timedelta", "v": [1e300, 0, 0]}, "tagged 'timedelta' cannot be read"),
        ({"$": "timedelta", "v": [10**30, 0, 0]}, "tagged 'timedelta' cannot be read"),
        ({"$": "Interval", "v": [["Interval", []], ["Date", "2026-01-01"], False]}, "tagged 'Interval' cannot be read"),
        ({"$": "tuple", "v": "ab"}, "tagged 'tuple' cannot be read"),
        ({"$": "tuple", "v": {"a": 1}}, "tagged 'tuple' cannot be read"),
        ({"$": "tuple"}, "tagged 'tuple' cannot be read"),
        ({"$": "set", "v": [[1]]}, "tagged 'set' cannot be read"),
        ({"$": "set", "v": [1, True]}, "of 2 items only 1 are left"),
        ({"$": "dict", "v": ["ab", "cd"]}, "tagged 'dict' cannot be read"),
        ({"$": "dict", "v": [[1, 2], [True, 3]]}, "of 2 items only 1 are left"),
        ({"$": "dict", "v": [[{}, 1]]}, "tagged 'dict' cannot be read"),
        ({"$": "deque", "of": "three", "v": []}, "tagged 'deque' cannot be read"),
        ({"$": "deque", "of": 1, "v": [1, 2]}, "of 2 items only 1 are left"),
        ({"$": "deque", "v": []}, "tagged 'deque' cannot be read"),
        ({"$": "deque", "of": True, "v": []}, "tagged 'deque' cannot be read"),
        ({"$": "deque", "of": 10**30, "v": []}, "tagged 'deque' cannot be read"),
        ({"$": "bytes", "v": "no base64!"}, "tagged 'bytes' cannot be read"),
        ({"$": "Decimal", "v": "1,5"}, "tagged 'Decimal' cannot be read"),
        ({"$": "float", "v": 1}, "tagged 'float' cannot be read"),
        ({"$": ["list"], "v": 1}, "unknown tag"),
        ({"$": "model", "c": 3, "v": {}}, "tagged 'model' cannot be read"),
        ({"$": "enum", "c": f"{__name__}:Colour", "v": {"name": "BLUE"}}, "tagged 'enum' cannot be read"),
        ({"$": "enum", "c": f"{__name__}:Colour", "v": {"name": []}}, "tagged 'enum' cannot be read"),
        ({"$": "namedtuple", "c": f"{__name__}:Pair", "v": {"items": "ab"}}, "tagged 'namedtuple' cannot be read"),
        *(
            ({"$": "model", "c": f"{__name__}:Order", "v": {**MODEL, part: wrong}}, "tagged 'model' cannot be read")
            for part, wrong in [("fields", []), ("extra", "x"), ("extra", []), ("private", 3), ("set", ["sku"]), ("set", None)]
        ),
        ({"$": "dataclass", "c": f"{__name__}:Parcel", "v": {"attributes": [], "slots": {}}}, "'dataclass' cannot be read"),
        (nested(500), "nested too deeply"),
        (nested(500, lambda inner: {"$": "tuple", "v": [inner]}), "nested too deeply"),
        (nested(500, lambda inner: {"$": "dict", "v": [[1, inner]]}), "nested too deeply"),
    ],
)
def test_what_is_not_allowed_or_damaged_is_refused(data: object, says: str) -> None:
    with pytest.raises(EnvelopeError, match=says):
        codec.decode(data)


def test_nothing_is_imported_for_a_value() -> None:
    assert "turtle" not in sys.modules
    with pytest.raises(EnvelopeError):
        codec.decode({"$": "model", "c": "turtle:Turtle", "v": {}})
    assert "turtle" not in sys.modules


def test_no_module_is_asked_for_a_name_that_it_would_have_to_import() -> None:
    asked = []
    lazy = types_module.ModuleType("lazy_module")
    lazy.__getattr__ = asked.append  # type: ignore[method-assign]
    sys.modules["lazy_module"] = lazy
    try:
        with pytest.raises(EnvelopeError, match="lazy_module:Thing is not allowed"):
            codec.decode({"$": "model", "c": "lazy_module:Thing", "v": {}})
    finally:
        del sys.modules["lazy_module"]

    assert asked == []


@pytest.mark.parametrize(
    "around",
    [
        lambda inner: [inner],
        lambda inner: {"k": inner},
        lambda inner: {1: inner},
        lambda inner: (inner,),
        lambda inner: frozenset({inner}),
        lambda inner: collections.deque([inner]),
        lambda inner: collections.defaultdict(None, {1: inner}),
        lambda inner: Pair(1, inner),
        lambda inner: Ticket(colour=inner),
        Parcel,
    ],
)
def test_what_can_be_written_can_be_read_also_with_less_of_the_stack(around: Callable[[Any], Any]) -> None:
    levels = next(levels for levels in range(10, 1000) if not codec.travels(nested(levels + 1, around)))
    text = codec.dumps(codec.encode(nested(levels, around)))

    def deeper(frames: int) -> Any:
        return deeper(frames - 1) if frames else codec.decode(json.loads(text))

    assert levels > 100
    assert type(deeper(100)) is type(around(1))
