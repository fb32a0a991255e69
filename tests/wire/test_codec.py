"""Values travel between tasks with their type, or not at all."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import json
import pathlib
import uuid
import zoneinfo
from typing import Generic, NamedTuple, TypeVar

import pendulum
import pytest
from google.genai import types
from pydantic import BaseModel, Field, PrivateAttr

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


class Colour(enum.Enum):
    RED = "red"


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
    bytearray(b"x"),
    dt.datetime(2026, 3, 1, 12, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")),
    dt.datetime(2026, 10, 25, 2, 30, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"), fold=1),
    dt.datetime(2026, 3, 1, 12),
    pendulum.datetime(2026, 3, 1, 12, tz="Europe/Berlin"),
    Order(sku="s", quantity=2, tags=("a",)),
    types.Content(role="user", parts=[types.Part(text="hi"), types.Part.from_bytes(data=b"p", mime_type="image/png")]),
    {"__classname__": "builtins.tuple", "__data__": [1], "__version__": 1},
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:40])
def test_a_value_comes_back_equal_and_of_the_same_type(value: object) -> None:
    back = codec.decode(json.loads(codec.dumps(codec.encode(value))))

    assert back == value
    assert type(back) is type(value)


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
        ({"a": ["fine", "half \ud83d"]}, r"value\['a'\]\[1\] is text with a half of a character, '\\ud83d' at 5"),
        ({"half \ud83d": 1}, r"value key is text with a half of a character"),
        ([10**5000], r"value\[0\] is a whole number that has no text form: Exceeds the limit \(4300 digits\)"),
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


def test_a_class_made_inside_a_function_is_refused() -> None:
    class Local(BaseModel):
        x: int = 1

    with pytest.raises(ValueNotTransferableError, match="class made inside a function"):
        codec.encode(Local())


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
        ({"$": "defaultdict", "v": ["eval", []]}, "tagged 'defaultdict' cannot be read"),
        ({"$": "pickle", "v": "gASV"}, "unknown tag 'pickle'"),
        ({"$": "datetime", "v": ["datetime"]}, "tagged 'datetime' cannot be read"),
        ({"$": "bytes", "v": 3}, "tagged 'bytes' cannot be read"),
        ({"$": "datetime", "v": "yesterday"}, "tagged 'datetime' cannot be read"),
    ],
)
def test_what_is_not_allowed_or_damaged_is_refused(data: object, says: str) -> None:
    with pytest.raises(EnvelopeError, match=says):
        codec.decode(data)


def test_nothing_is_imported_for_a_value() -> None:
    import sys

    assert "turtle" not in sys.modules
    with pytest.raises(EnvelopeError):
        codec.decode({"$": "model", "c": "turtle:Turtle", "v": {}})
    assert "turtle" not in sys.modules
