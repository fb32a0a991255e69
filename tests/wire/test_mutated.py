"""2,000 mutations of real envelopes: each is refused in clear words, or is the very same envelope; nothing of it is run."""

from __future__ import annotations

import copy
import json
import os
import random
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet

from adk_airflow.errors import EnvelopeError
from adk_airflow.runtime.wire import codec, digest, lineage, sealed
from adk_airflow.runtime.wire.envelope import Envelope, Firing
from adk_airflow.runtime.wire.triggers import Item
from adk_airflow.runtime.wire.worker import Batch, ItemOutput
from tests.wire.test_codec import MOMENTS, VALUES
from tests.wire.test_envelope import ENVELOPE

EACH = 250
# What a damaged or a hostile envelope may hold; none of it may be imported, called or written.
STRANGE: list[Any] = [
    None, True, -1, 0, 10**400, 1e308, "", "\x00", [], {}, [[]], {"$": None}, {"$": "nothing", "v": 1}, {"$": "tuple"},
    {"$": "bytes", "v": "%%%"}, {"$": "sealed", "v": "gAAAAAB"}, {"$": "sealed", "v": 1}, {"$": "sealed"},
    *({"$": kind, "c": name, "v": {"attributes": {"args": "touch mutated"}, "items": ["touch mutated"]}}
      for kind in ("model", "dataclass", "namedtuple", "enum")
      for name in ("os:system", "subprocess:Popen", "builtins:exec", "mutated_module:A", "posix:system", ":", "a:b:c")),
    {"$": "PosixPath", "v": "/etc/passwd"}, {"$": "defaultdict", "of": "eval", "v": []}, {"$": "deque", "of": -1, "v": []},
    {"$": "Decimal", "v": "1e999999999"}, {"$": "enum", "c": "signal:Signals", "v": {"name": "SIGKILL"}},
]  # fmt: skip


def seal(data: Any, what: str, key: str = "") -> Any:
    return sealed.sealed(data) if key.startswith("temp:") or what == "its output" else data


@pytest.fixture(scope="module")
def envelopes() -> Iterator[list[str]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW__CORE__FERNET_KEY", Fernet.generate_key().decode())
        sealed._fernet.cache_clear()
        everything = Envelope(
            "work.each[3]",
            "working",
            "each",
            firings=tuple(Firing("each", value, "on", "a@1", ("b",)) for value in VALUES),
            state=lineage.write({}, {"k": codec.encode(MOMENTS), "temp:t": {"token": "t"}}, "work.each[3]"),
            outputs=(ItemOutput(0, 0, list(VALUES)),),
            scopes={"inner": ("a@1", True)},
            error=("ValueError", "bad"),
        )
        yield [ENVELOPE.dumps(), ENVELOPE.dumps(seal), everything.dumps(), everything.dumps(seal)]
    sealed._fernet.cache_clear()


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    for key, item in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from places(item, (*path, key))


def changed(text: str, random: random.Random, change: Callable[[Any, Any], None], *, honest: bool) -> str:
    """The envelope with one place of it changed; ``honest``: with the digest that it then has."""
    data = json.loads(text)
    path = random.choice(list(places(data))[1:])
    parent = data
    for key in path[:-1]:
        parent = parent[key]
    change(parent, path[-1])
    if not honest:
        return json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    version, _ = data.pop("adk_airflow", None), data.pop("digest", None)
    body = json.dumps(data, separators=(",", ":"), ensure_ascii=False)[1:]
    return f'{{"adk_airflow":{json.dumps(version)},"digest":"{digest.of(body)}",{body}'


def flipped(text: str, random: random.Random) -> str:
    held = bytearray(text.encode())
    held[random.randrange(len(held))] ^= 1 << random.randrange(8)
    return held.decode(errors="replace")


def cut(text: str, random: random.Random) -> str:
    return text[: random.randrange(len(text))]


def hole(text: str, random: random.Random) -> str:
    at = random.randrange(len(text))
    return text[:at] + text[at + random.randrange(1, 50) :]


def twice(text: str, random: random.Random) -> str:
    at = random.randrange(len(text))
    end = at + random.randrange(1, 200)
    return text[:end] + text[at:]


def removed(text: str, random: random.Random) -> str:
    return changed(text, random, lambda parent, key: parent.pop(key), honest=random.random() < 0.5)


def replaced(text: str, random: random.Random) -> str:
    def change(parent: Any, key: Any) -> None:
        parent[key] = copy.deepcopy(random.choice(STRANGE))

    return changed(text, random, change, honest=random.random() < 0.8)


def moved(text: str, random: random.Random) -> str:
    """One part of the envelope in another's place."""

    def change(parent: Any, key: Any) -> None:
        other: Any = json.loads(text)
        for step in random.choice(list(places(other))[1:]):
            other = other[step]
        parent[key] = other

    return changed(text, random, change, honest=random.random() < 0.8)


def nested(text: str, random: random.Random) -> str:
    depth = random.choice((50, 500, 5_000, 50_000))
    opening, closing = random.choice((("[", "]"), ('{"a":', "}"), ('{"$":"tuple","v":[', "]}")))
    head, body = text.split(",", 2)[:2], text.split(",", 2)[2]
    where = body.index('"message":') + len('"message":')
    body = body[:where] + opening * depth + "1" + closing * depth + body[body.index(',"firings"') :]
    return f'{head[0]},"digest":"{digest.of(body)}",{body}'


MUTATIONS = (flipped, cut, hole, twice, removed, replaced, moved, nested)


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda mutate: mutate.__name__)
def test_a_mutated_envelope(
    mutate: Callable[[str, random.Random], str], envelopes: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    loaded = set(sys.modules)
    turn = random.Random(mutate.__name__)
    told: list[str] = []
    for at in range(EACH):
        mutated = mutate(envelopes[at % len(envelopes)], turn)
        try:
            found = Envelope.loads(mutated, task="before")
        except EnvelopeError as error:
            told.append(str(error))
        else:
            assert has_its_digest(mutated)  # so it is what somebody wrote
            assert Envelope.loads(found.dumps(), task="before").dumps() == found.dumps()

    in_words = re.compile(r"XCom 'adk' of task 'before'[ :].{10,1000} Clear task 'before' so that it runs again\.", re.S)
    assert [one for one in told if not in_words.fullmatch(one)] == []
    assert len(told) > EACH // 3
    assert mutate not in (flipped, cut, hole, twice) or len(told) == EACH
    assert not {
        name for name in set(sys.modules) - loaded if not name.startswith(("google.genai", "pydantic", "zoneinfo", "tzdata"))
    }
    assert os.listdir(tmp_path) == []


def has_its_digest(text: str) -> bool:
    carried = json.loads(text)["digest"]
    return digest.of(text.partition(f'"digest":"{carried}",')[2]) == carried


@pytest.mark.parametrize("mutate", [flipped, cut, hole, twice], ids=lambda mutate: mutate.__name__)
def test_the_items_of_a_mutated_batch(mutate: Callable[[str, random.Random], str]) -> None:
    batch = Batch(1, tuple(Item(at, value) for at, value in enumerate(VALUES)), single=False)
    text = batch.dumps(lambda item: codec.encode(item.value))
    turn = random.Random(mutate.__name__)

    assert Batch.loads(text) == batch
    for _ in range(EACH):
        if (mutated := mutate(text, turn)) != text:
            with pytest.raises(EnvelopeError):
                Batch.loads(mutated)
