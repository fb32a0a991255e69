"""The questions of a run: from a YAML file, or from a plain list of texts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

_EXPECTED = (
    "expected a list of questions; each entry is a text, or a mapping with `question` (a text) and, if known,"
    " `document` (the name of the document that should answer it, such as croniter.md)"
)

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Question(BaseModel):
    """A question, and the name of the document that should answer it when that is known."""

    model_config = ConfigDict(extra="forbid")

    question: _Text
    document: _Text | None = None


def read_questions(path: Path) -> list[Question]:
    """Reads a YAML file of questions; an empty file has none.

    Raises:
        ValueError: The file cannot be read or is not YAML, or `check_questions` refuses what it holds.
    """
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ValueError(f"The questions file {path} cannot be read: {error.strerror}.") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # yaml lets plain ValueErrors through, for a date such as 2026-99-99; so does text that is not UTF-8.
        raise ValueError(f"The questions file {path} is not a readable YAML file; {_EXPECTED}. {error}") from error
    return check_questions([] if entries is None else entries, source=f"The questions file {path}")


def check_questions(entries: Any, *, source: str) -> list[Question]:
    """Checks entries as they come from YAML or JSON.

    Args:
        entries: A list whose entries are texts, or mappings with `question` and optionally `document`.
        source: Where they come from; error messages begin with it.

    Raises:
        ValueError: Not a list, an entry of another shape, a blank question, or the same question twice (which
            would make two equal rows in the report). Entries are counted from 1.
    """
    if not isinstance(entries, list):
        raise ValueError(f"{source} holds a {type(entries).__name__}; {_EXPECTED}.")
    questions: list[Question] = []
    first_at: dict[str, int] = {}
    for number, entry in enumerate(entries, start=1):
        try:
            question = Question.model_validate({"question": entry} if isinstance(entry, str) else entry)
        except ValidationError as error:
            problems = "; ".join(_problems(error))
            raise ValueError(f"{source}, entry {number}: {problems}; {_EXPECTED}.") from None
        key = " ".join(question.question.casefold().split())
        if key in first_at:
            raise ValueError(f"{source}, entry {number}: the same question as entry {first_at[key]}. Remove one.")
        first_at[key] = number
        questions.append(question)
    return questions


def _problems(error: ValidationError) -> Iterable[str]:
    for detail in error.errors():
        where = ".".join(str(part) for part in detail["loc"])
        yield f"{where}: {detail['msg']}" if where else detail["msg"]
