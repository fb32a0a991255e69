"""What people and plain tasks see of a value, and that Airflow stores all of it."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import json
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
import pytest
from airflow.sdk.execution_time.comms import SetXCom
from google.genai import types
from pydantic import (
    Base64Bytes,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    RootModel,
    SecretBytes,
    SecretStr,
    TypeAdapter,
    computed_field,
    field_serializer,
)

from adk_airflow.runtime.wire import codec, json_form


class Order(BaseModel):
    sku: str
    qty: int = 1


@dataclasses.dataclass
class Point:
    x: int
    y: tuple[int, ...] = ()


Pair = collections.namedtuple("Pair", "left right")


class Size(enum.IntEnum):
    HUGE = 10**30


class Verdict(enum.Enum):
    PASS = "pass"


class Mood(enum.StrEnum):
    GOOD = "good"


class Level(enum.IntEnum):
    LOW = 1


class Right(enum.Flag):
    READ = 1
    WRITE = 2


class Plan(enum.Enum):
    FREE = ("free", dt.date(2026, 1, 2))
    PAID = Order(sku="paid")
    INNER = Verdict.PASS


class Picture(BaseModel):
    data: bytes
    more: list[bytes] = []


class Ordinary:
    def __str__(self) -> str:
        return "ordinary"


class Anything(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True, extra="allow")
    held: Any = None
    thing: Ordinary | None = None


class Shown(BaseModel):
    """A model that says itself how it looks in JSON."""

    encoded: Base64Bytes = b"hi"
    hexed: Annotated[bytes, PlainSerializer(lambda value: value.hex())] = b"\x89"
    json_only: Annotated[Ordinary, PlainSerializer(lambda value: ["shown"], when_used="json")] = Ordinary()
    hidden: str = Field(default="secret", exclude=True)
    key: SecretStr = SecretStr("secret")
    picture: Picture | None = None
    model_config = ConfigDict(arbitrary_types_allowed=True)

    @computed_field
    def size(self) -> int:
        return 3


class Broken(BaseModel):
    good: int = 1
    bad: int = 2
    secret: str = Field(default="secret", exclude=True)

    @field_serializer("bad")
    def show(self, value: int) -> int:
        raise RuntimeError("never")


class Hexed(BaseModel):
    model_config = ConfigDict(ser_json_bytes="hex")
    data: bytes


class Renamed(BaseModel):
    """A model whose fields and computed parts are shown under other names."""

    model_config = ConfigDict(serialize_by_alias=True)
    left: bytes = Field(default=b"", alias="right")
    right: bytes = Field(default=b"", alias="left")

    @computed_field(alias="bothParts")
    def both(self) -> bytes:
        return self.left + self.right


class Pictures(RootModel[list[Picture]]):
    pass


@dataclasses.dataclass
class Album:
    cover: Picture


PNG = b"\x89PNG"
PNG_TEXT = "iVBORw=="
SHOWN = {"encoded": "aGk=", "hexed": "89", "json_only": ["shown"], "key": "**********", "size": 3}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Verdict.PASS, "pass"),
        ([Mood.GOOD, Level.LOW, Right.READ | Right.WRITE], ["good", 1, 3]),
        (list(Plan), [["free", "2026-01-02"], {"sku": "paid", "qty": 1}, "pass"]),
        ({Verdict.PASS: {Level.LOW: Mood.GOOD}}, {"pass": {"1": "good"}}),
        (Anything(held=[Verdict.PASS], extra=Verdict.PASS), {"held": ["pass"], "extra": "pass"}),
    ],
)
def test_an_enum_is_its_value(value: object, expected: object) -> None:
    found = json_form.to_json(value)

    assert found == expected
    assert json.loads(json.dumps(found)) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({1: "a", None: "b", True and 2: "c", 1.5: "d"}, {"1": "a", "None": "b", "2": "c", "1.5": "d"}),
        (
            {dt.date(2026, 1, 2): 1, dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC): 2},
            {"2026-01-02": 1, "2026-01-02T03:00:00+00:00": 2},
        ),
        ({(1, "x"): 1, b"hi": 2}, {"(1, 'x')": 1, "aGk=": 2}),
        ({1: "a", "1": "b"}, [[1, "a"], ["1", "b"]]),
        ({"deep": [{None: b"hi", "None": 2}]}, {"deep": [[[None, "aGk="], ["None", 2]]]}),
        (Anything(held={1: "a", "1": "b"}), {"held": [[1, "a"], ["1", "b"]]}),
    ],
)
def test_keys_become_text_and_none_is_lost(value: object, expected: object) -> None:
    assert json_form.to_json(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([Picture(data=PNG)], [{"data": PNG_TEXT, "more": []}]),
        (Picture(data=b"hi", more=[b"hi", PNG]), {"data": "aGk=", "more": ["aGk=", PNG_TEXT]}),
        ({"a": (Album(Picture(data=PNG)),)}, {"a": [{"cover": {"data": PNG_TEXT, "more": []}}]}),
        (Pictures([Picture(data=PNG)]), [{"data": PNG_TEXT, "more": []}]),
        (Anything(held=Picture(data=PNG)), {"held": {"data": PNG_TEXT, "more": []}}),
        (Anything(held={"k": [{PNG}, bytearray(b"hi")]}, x=b"hi"), {"held": {"k": [[PNG_TEXT], "aGk="]}, "x": "aGk="}),
        (
            types.Part.from_bytes(data=b"\xfb\xff", mime_type="image/png"),
            {"inline_data": {"data": "+/8=", "mime_type": "image/png"}},
        ),
        (Hexed(data=PNG), {"data": PNG.hex()}),
        (Renamed(right=PNG, left=b"hi"), {"right": PNG_TEXT, "left": "aGk=", "bothParts": "iVBOR2hp"}),
        (Shown(), SHOWN),
        (Shown(picture=Picture(data=PNG)), {**SHOWN, "picture": {"data": PNG_TEXT, "more": []}}),
        (
            Anything(held=Ordinary(), thing=Ordinary(), x={1: Ordinary()}),
            {"held": "ordinary", "thing": "ordinary", "x": {"1": "ordinary"}},
        ),
        (Anything(held=[float("nan"), {"x": float("-inf")}]), {"held": ["nan", {"x": "-inf"}]}),
        (Anything(held=float("inf")), {"held": "inf"}),
        (Anything(held=decimal.Decimal("1.10"), thing=Ordinary()), {"held": "1.10", "thing": "ordinary"}),
        (Anything(held=dt.timedelta(days=1), thing=Ordinary()), {"held": "P1D", "thing": "ordinary"}),
        (
            Anything(held=[SecretStr("secret"), SecretBytes(b"secret")], x=b"\xff"),
            {"held": ["**********", "**********"], "x": "/w=="},
        ),
        ([SecretStr("secret"), {"a": SecretBytes(b"secret")}], ["**********", {"a": "b'**********'"}]),
        (Broken(), {"good": 1, "bad": 2}),
        ([Anything(held=Broken())], [{"held": {"good": 1, "bad": 2}}]),
        (Anything.model_construct(held=PNG), {"held": PNG_TEXT}),
        (Order.model_construct(sku=PNG), {"sku": PNG_TEXT, "qty": 1}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_model_is_what_it_shows_in_json_with_bytes_as_base64(value: object, expected: object) -> None:
    assert json_form.to_json(value) == expected


def nested(levels: int, around: Callable[[Any], Any] = lambda inner: [inner]) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = around(value)
    return value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (types.Content(parts=[types.Part(text="a"), types.Part(text="b")]), "ab"),
        ((1, {2}), [1, [2]]),
        (b"hi", "aGk="),
        (Order(sku="s"), {"sku": "s", "qty": 1}),
        ({1: None}, {"1": None}),
        ({"__id__": "x"}, {"__id__": "x"}),
        (dt.date(2026, 1, 2), "2026-01-02"),
        (Point(1, (2,)), {"x": 1, "y": [2]}),
        (collections.deque([Pair(1, None)]), [[1, None]]),
        (float("nan"), "nan"),
        (10**30, 10**30),
        ("a\0b", "a\0b"),
    ],
)
def test_it_is_json_for_people(value: object, expected: object) -> None:
    assert json_form.to_json(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([2**63 - 1, 2**63, -(2**63), -(2**63) - 1, True], [2**63 - 1, str(2**63), -(2**63), str(-(2**63) - 1), True]),
        (Size.HUGE, str(10**30)),
        ({"__id__": [{"x": b"hi", "__id__": 1}]}, '{"__id__": [{"x": "aGk=", "__id__": 1}]}'),
        ([{"__classname__": "builtins.tuple", "__data__": [1]}], ['{"__classname__": "builtins.tuple", "__data__": [1]}']),
        ({"a\0": 1, "a\ufffd": 2}, '{"a\\u0000": 1, "a\ufffd": 2}'),
        ({"a\0": ("b\0c", "\ud83d", "😀")}, {"a\ufffd": ["b\ufffdc", "\ufffd", "😀"]}),
        (Point(10**30), {"x": str(10**30), "y": []}),
    ],
)
def test_what_airflow_does_not_store_is_given_another_form(value: object, expected: object) -> None:
    assert json_form.for_xcom(value) == expected


def test_what_is_nested_too_deeply_for_airflow_is_json_text_from_there_on() -> None:
    found = json_form.for_xcom(nested(102))
    for _ in range(100):
        assert isinstance(found, list)
        (found,) = found

    assert json.loads(found) == nested(2)


@pytest.mark.parametrize("value", [10**30, {"a\0b": ["\0\ud83d"]}, nested(350), [{"x": nested(99)}], float("inf")])
def test_it_passes_airflows_supervisor_and_api(value: object) -> None:
    stored = {"key": "return_value", "dag_id": "d", "task_id": "t", "run_id": "r", "value": json_form.for_xcom(value)}
    message = msgspec.msgpack.decode(msgspec.msgpack.encode(SetXCom(**stored).model_dump()))

    assert TypeAdapter(JsonValue).validate_python(message["value"]) == stored["value"]
    assert "\\u0000" not in json.dumps(message)


@pytest.mark.parametrize(
    "around",
    [
        lambda inner: [inner],
        lambda inner: {"k": inner},
        lambda inner: {1: inner},
        lambda inner: {1: inner, "1": inner} if inner == 1 else {1: inner},
        lambda inner: (inner,),
        lambda inner: frozenset({inner}),
        lambda inner: collections.deque([inner]),
        lambda inner: Pair(1, inner),
        lambda inner: Anything(held=inner),
        lambda inner: Point(1, inner),
        lambda inner: Anything.model_construct(held=[inner, b"\x89"]),
    ],
)
def test_whatever_travels_has_a_plain_form_also_with_less_of_the_stack(around: Callable[[Any], Any]) -> None:
    levels = next(levels for levels in range(10, 1000) if not codec.travels(nested(levels + 1, around)))

    def deeper(frames: int) -> Any:
        return deeper(frames - 1) if frames else json_form.for_xcom(nested(levels, around))

    assert json.dumps(deeper(100))
