"""Text that only this Airflow can read, in a database or a file that others may look into: encrypted with its Fernet key.

The key is ``[core] fernet_key``, with which Airflow itself encrypts connections. Of several keys, separated by commas, the
first encrypts and any of them decrypts, so that a key can be replaced. An Airflow without one, or a worker that is not told it,
seals nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from adk_airflow.errors import EnvelopeError, ServiceConfigurationError
from adk_airflow.runtime.wire import codec

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

HOW_TO_SET_A_KEY = (
    "Set [core] fernet_key, the same for all parts of Airflow, workers included"
    ' (make one: python -c "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())").'
)
_NOT_SET = "{FERNET_KEY}"  # what Airflow's task SDK says where there is no airflow.cfg
_SEALED = "sealed"  # no tag of the codec's: what it makes of a value never looks like a sealed one


class Seal(Protocol):
    """Says of each value that is to travel how it stands in XCom."""

    def __call__(self, data: Any, what: str, key: str = "") -> Any:
        """The value as it is, or sealed.

        Args:
            data: The encoded value.
            what: What it is, for people; empty where nobody need be told of it.
            key: Of a value of the state: its key.
        """


def as_it_is(data: Any, what: str, key: str = "") -> Any:
    """A ``Seal`` that seals nothing."""
    return data


def sealed(data: Any, secrets: Sequence[str] = ()) -> Any:
    """The encoded value in the form that ``opened`` opens; None where Airflow has no Fernet key.

    Args:
        data: The encoded value.
        secrets: What in it is secret: who opens it tells Airflow's masker.
    """
    token = seal(codec.dumps([data, list(secrets)]))
    return None if token is None else {codec.TAG: _SEALED, "v": token}


def opened(data: Any) -> Any:
    """The encoded value, whether it was sealed or not.

    Raises:
        EnvelopeError: It was, and cannot be opened.
    """
    if not (isinstance(data, dict) and data.get(codec.TAG) == _SEALED):
        return data
    token = data.get("v")
    if not isinstance(token, str):
        raise EnvelopeError(f"a sealed value holds a {type(token).__name__}")
    found, secrets = json.loads(open_sealed(token))
    if secrets:
        from airflow.sdk.log import mask_secret

        for secret in secrets:
            mask_secret(secret)
    return found


def seal(text: str) -> str | None:
    """The text encrypted, in ASCII, about 4/3 as long; None where Airflow has no Fernet key.

    Raises:
        ServiceConfigurationError: ``[core] fernet_key`` is none.
    """
    fernet = _fernet()
    return None if fernet is None else fernet.encrypt(text.encode(errors="surrogatepass")).decode("ascii")


def open_sealed(text: str) -> str:
    """The text that ``seal`` was given.

    Raises:
        EnvelopeError: The key is missing here or another one, or the text was changed; it says what to do beside running again
            what sealed the text.
        ServiceConfigurationError: ``[core] fernet_key`` is none.
    """
    from cryptography.fernet import InvalidToken

    fernet = _fernet()
    if fernet is None:
        raise EnvelopeError(f"a value is sealed with Airflow's Fernet key, and there is none here. {HOW_TO_SET_A_KEY}")
    try:
        return fernet.decrypt(text.encode()).decode(errors="surrogatepass")
    except (InvalidToken, TypeError, ValueError):
        raise EnvelopeError(
            "a value is sealed with another Fernet key than [core] fernet_key is here, or damaged. All parts of Airflow must"
            " have the same key; where it was replaced, put the old one behind the new, separated by a comma"
        ) from None


@cache
def _fernet() -> MultiFernet | None:
    """By the settings. Once per process: they may have it from a command or a secrets backend."""
    from airflow.sdk import conf
    from cryptography.fernet import Fernet, MultiFernet

    setting = conf.get("core", "fernet_key", fallback="")
    if setting in ("", _NOT_SET):
        return None
    try:
        return MultiFernet([Fernet(key.encode()) for key in setting.split(",")])
    except ValueError as error:
        raise ServiceConfigurationError(f"[core] fernet_key: {error} {HOW_TO_SET_A_KEY}") from None
