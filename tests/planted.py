"""Looks for texts wherever a run leaves something: all tables of Airflow's database, and all files that it writes."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

from airflow.utils.session import create_session
from sqlalchemy import MetaData

_BASE64 = re.compile(rb"[\w+/-]{12,}={0,2}")


def found(planted: Mapping[str, str]) -> dict[str, set[str]]:
    """For each planted text that is found, where: ``table.column``, or the first folder of a file."""
    places: dict[str, set[str]] = {}
    for place, held in [*_rows(), *_files()]:
        for name, text in planted.items():
            if any(form in held for form in _forms(text)):
                places.setdefault(name, set()).add(place)
    return places


def _forms(text: str) -> Iterator[bytes]:
    for form in (text, quote(text, safe=""), json.dumps(text)[1:-1]):
        yield form.encode()


def _rows() -> Iterator[tuple[str, bytes]]:
    with create_session() as session:
        tables = MetaData()
        tables.reflect(session.connection())
        for table in tables.sorted_tables:
            for row in session.connection().exec_driver_sql(f'SELECT * FROM "{table.name}"').mappings():
                for column, value in row.items():
                    held = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
                    yield f"{table.name}.{column}", _and_decoded(held)


def _files() -> Iterator[tuple[str, bytes]]:
    journals = Path(tempfile.gettempdir(), f"adk-airflow-{os.getuid()}")
    for place in (Path(os.environ["AIRFLOW_HOME"]), journals):
        for path in place.rglob("*"):
            if path.is_file() and not path.name.startswith("airflow.db"):
                with contextlib.suppress(FileNotFoundError):  # of another test
                    yield path.relative_to(place).parts[0], _and_decoded(path.read_bytes())


def _and_decoded(held: bytes) -> bytes:
    """The bytes, and what is Base64 in them decoded."""
    parts = [held]
    for run in _BASE64.findall(held):
        text = run.rstrip(b"=").translate(bytes.maketrans(b"-_", b"+/"))
        for start in range(4):
            piece = text[start : start + (len(text) - start) // 4 * 4]
            parts.append(base64.b64decode(piece))
    return b"\n".join(parts)
