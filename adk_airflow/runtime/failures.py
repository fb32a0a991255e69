"""What a failed task says.

Everything that is written of an error goes through here. XComs get ``error_text``, log lines ``one_line``; what is raised is
``hide_secrets``-ed before, as Airflow shows it to callbacks, listeners and mails too. ``explain`` adds what to do, as a note of
the exception: its type and message stay the node's own. Whether another try can help, ``error_kinds`` says.
"""

from __future__ import annotations

import json
import os
import re
import traceback
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from adk_airflow.runtime.error_kinds import class_names, timed_out
from adk_airflow.runtime.wire.json_form import storable_text

if TYPE_CHECKING:
    from airflow.sdk import Connection

# -- secrets -----------------------------------------------------------------------------------------------

_LEAST_SECRET = 8  # characters; a shorter value of the environment is no key, and would be hidden inside of words
_LEAST_WORD = 16  # likewise of a value that is a word
_ENVIRONMENT = re.compile(r"(_|^)((API|ACCESS|SECRET|PRIVATE|FERNET|ACCOUNT)_?KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
# What vendors' keys and tokens look like: some are in the code, where Airflow does not know them.
_KEYS = re.compile(
    r"(?<![\w-])(?:AIza[\w-]{20,200}|AQ\.[\w-]{20,500}|ya29\.[\w.-]{20,2000}|1//0[\w-]{30,500}|GOCSPX-[\w-]{20,200}"  # Google
    r"|sk-(?=[\w-]*\d)[\w-]{20,500}|[rs]k_live_\w{20,500}|gsk_\w{40,500}|xai-\w{40,500}|hf_\w{30,500}"  # vendors of models
    r"|gh[opsu]_\w{36,500}|github_pat_\w{22,500}|xox[a-z]-[\w-]{20,500}|AKIA[0-9A-Z]{16}"
    r"|eyJ[\w-]{10,2000}\.[\w-]{10,4000}\.[\w-]{10,2000})(?![\w-])"  # a JSON web token
    r"|(?<=[?&]key=)(?=[^\s&]{0,500}\d)[^\s&\"'<>]{8,500}"
    r"|(?<=Bearer )(?=\S{0,500}\d)[\w.~+/=-]{16,4000}|(?<=Basic )(?=\S{0,500}[\d=])[\w+/=-]{16,4000}"
    r"|-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----[^-]{1,10000}-----END [A-Z ]{0,20}PRIVATE KEY-----"
)
# What a log line is cut to, and what pydantic says after each fault.
_MOST_WORDS = 1000
_PYDANTIC_LINK = re.compile(r" ?For further information visit https://errors\.pydantic\.dev/\S+")
_IN_URLS = re.compile(r"://[^/\s:@\"'<>]{0,200}:([^/\s@\"'<>]{5,500})@")  # the password in an address
# From where such a part begins: a search from each sign of it would take the square of its length.
_URL_ENCODED = re.compile(r"(?:(?<=[\s\"'<>?&=])|^)[^\s\"'<>?&=]*%[0-9A-Fa-f]{2}[^\s\"'<>?&]*")


def hide_connection(connection: Connection) -> None:
    """Tells Airflow to mask what of a connection is secret, also in the forms in which an error may quote it."""
    texts = [connection.password or ""]
    for text in (connection.password, connection.extra):
        try:
            texts.extend(_sensitive(json.loads(text or "{}")))
        except ValueError:
            continue
    for text in texts:
        hide(text)


def holds_secret(text: str) -> bool:
    """Whether ``masked`` would change the text for a secret in it, which Airflow then knows."""
    plain = f"{text}\n{unquote(text)}\n{unquote_plus(text)}" if "%" in text else text
    return tell_masker(text) or _redacted(plain) != plain


def tell_masker(text: str) -> bool:
    """Tells Airflow of the secrets in a text that it need not know: of the environment, and what looks like a vendor's key."""
    # Not where Airflow hides something already: a part of that may look like a key.
    found = list(_unknown_secrets(_shown(text)))
    for secret in found:
        hide(secret)
    return bool(found)


def masked(text: str) -> str:
    """The text with ``***`` for each secret that Airflow knows or that looks like one, in a form that any database stores."""
    tell_masker(text)
    return storable_text(_shown(text))


def error_text(error: BaseException) -> str:
    """What an error says, its notes included, for XCom: masked and storable."""
    return masked("\n".join([str(error), *getattr(error, "__notes__", ())]).strip())


def one_line(error: BaseException) -> str:
    """``type: message`` with its notes, all of it on one line of at most a thousand characters: masked."""
    text = masked(words_of(error))
    return text if len(text) <= _MOST_WORDS else f"{text[: _MOST_WORDS - 1]}…"


def words_of(error: BaseException) -> str:
    """``type: message`` with its notes, all of it on one line; not masked, for the terminal of who runs the code."""
    said = " ".join(" ".join([str(error), *getattr(error, "__notes__", ())]).split())
    return f"{type(error).__name__}: {_PYDANTIC_LINK.sub('', said)}".removesuffix(": ")


def hide_secrets(error: BaseException) -> None:
    """Masks the secrets in an error itself and in all errors that it came from."""
    for one in chain(error):
        try:
            one.args = tuple(_masked_value(value) for value in one.args)
            for name, value in vars(one).items():
                if (hidden := _masked_value(value)) is not value:
                    setattr(one, name, hidden)
        except (AttributeError, TypeError):  # a class that lets nothing be set
            continue


def hide(secret: str) -> None:
    """Tells Airflow to mask a text, also in the forms in which an error or a log line may quote it."""
    from airflow.sdk.log import mask_secret

    secret = secret.strip()
    forms = (secret, quote(secret, safe=""), quote(secret), quote_plus(secret), json.dumps(secret)[1:-1], repr(secret)[1:-1])
    for form in dict.fromkeys(forms):
        mask_secret(form)


def _shown(text: str) -> str:
    """The text without what Airflow knows to be secret, encoded in URLs or not."""
    return _URL_ENCODED.sub(_masked_url, _redacted(text))


def _redacted(text: str, name: str = "event") -> str:
    """The text as Airflow's log has it, where its key is ``name``."""
    from airflow.sdk.log import mask_logs

    return str(mask_logs(None, "", {name: text})[name])


def is_sensitive(name: str) -> bool:
    """Whether Airflow takes what has this name for a secret."""
    return _redacted("shown", name) != "shown"


def _sensitive(data: Any, name: str = "") -> Iterator[str]:
    """The texts below keys that Airflow counts as sensitive."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _sensitive(value, str(key))
    elif isinstance(data, str) and data and name and is_sensitive(name):
        yield data


def _unknown_secrets(text: str) -> Iterator[str]:
    plain = f"{text}\n{unquote(text)}" if "%" in text else text
    for name in filter(_is_of_secret, os.environ):
        value = os.environ.get(name, "")
        if len(value) >= (_LEAST_WORD if value.isalpha() else _LEAST_SECRET) and value in plain:
            yield value
    yield from _KEYS.findall(plain)
    yield from (found for found in _IN_URLS.findall(plain) if found != "***")


@lru_cache(maxsize=4096)
def _is_of_secret(name: str) -> bool:
    return _ENVIRONMENT.search(name) is not None


def _masked_url(found: re.Match[str]) -> str:
    """A part of an URL, decoded if it holds a secret: the encoding of a secret is not always the one that Airflow knows."""
    for decode in (unquote, unquote_plus):
        plain = decode(found[0])
        if (hidden := _redacted(plain)) != plain:
            return hidden
    return found[0]


def _masked_value(value: Any) -> Any:
    """The value itself if there is no secret in it."""
    if type(value) is str:
        hidden = masked(value)
        return value if hidden == storable_text(value) else hidden
    if type(value) in (list, tuple):
        items = [_masked_value(item) for item in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else type(value)(items)
    if type(value) is dict:
        found = {key: _masked_value(item) for key, item in value.items()}
        return value if all(found[key] is value[key] for key in found) else found
    return value


def chain(error: BaseException) -> Iterator[BaseException]:
    """The error, what it was raised from or beside, and the members of groups; each once."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        inner = getattr(one, "error", None)  # of ADK's errors of dynamic nodes
        waiting += [one.__cause__, one.__context__, inner if isinstance(inner, BaseException) else None]
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions


# -- words -------------------------------------------------------------------------------------------------

_STDLIB = os.path.join(os.path.dirname(os.__file__), "")
_OURS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")


def explain(error: BaseException, *, cut_answers: Sequence[str] = ()) -> None:
    """Adds to an error what it does not say itself, as a note: where a wordless one comes from, which answer was cut.

    Args:
        error: What a task fails with. Other notes of it, of the model call that it comes from, say (``services.models``), stay.
        cut_answers: Of the model's answers those that ended at a limit, in words.
    """
    if cut_answers and _shows_cut(error):
        add_note(error, cut_answers[-1])
    if not str(error).strip() and not getattr(error, "__notes__", ()):
        frames = traceback.extract_tb(error.__traceback__)
        what = "A time limit passed" if timed_out(error) else f"{type(error).__name__} was raised without a message"
        where = next((frame for frame in reversed(frames) if not is_library(frame.filename)), None)
        at = f" in {where.name} ({where.filename}, line {where.lineno}): {where.line}" if where else ""
        add_note(error, f"{what}{at}.")


def place_of(error: BaseException) -> str:
    """Where in the user's own files an error comes from, ``file, line 12``; of a SyntaxError where it is. Empty: unknown."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return f"{error.filename}, line {error.lineno}"
    frames = reversed(traceback.extract_tb(error.__traceback__))
    own = next((frame for frame in frames if not is_library(frame.filename, ours=True)), None)
    return f"{own.filename}, line {own.lineno}" if own is not None else ""


def begin_in_own_code(error: BaseException) -> None:
    """Lets the tracebacks of an error, and of those that it came from, begin in the user's own files, if they go through any.

    What comes before is google-adk's engine and this package: the same some twenty frames for every node.
    """
    for one in chain(error):
        frame = one.__traceback__
        while frame is not None and is_library(frame.tb_frame.f_code.co_filename, ours=True):
            frame = frame.tb_next
        one.__traceback__ = frame or one.__traceback__


def add_note(error: BaseException, note: str) -> None:
    """Adds a note once."""
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def _shows_cut(error: BaseException) -> bool:
    """Whether an error is what becomes of a cut answer: JSON that ends too early, or no answer at all."""
    names = class_names(error)
    if "ValidationError" in names and callable(errors := getattr(error, "errors", None)):
        return any(one.get("type") == "json_invalid" for one in errors())
    return "JSONDecodeError" in names or "MAX_TOKENS" in str(error)


def is_library(path: str, *, ours: bool = False) -> bool:
    """Whether a file, or a folder with a slash at the end, is Python's, an installed package's or (``ours``) of this one."""
    parts = set(path.split(os.sep))
    return bool({"site-packages", "dist-packages", "asyncio"} & parts) or path.startswith(
        ("<", _STDLIB, *([_OURS] if ours else []))
    )
