"""Text that only an Airflow with the same Fernet key reads."""

from __future__ import annotations

import re

import pytest
from cryptography.fernet import Fernet

from adk_airflow.errors import EnvelopeError, ServiceConfigurationError
from adk_airflow.runtime.wire import sealed
from tests.keys import SetKey

OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()


@pytest.mark.parametrize("text", ["", "a b", "sk-1234", "ünïcödé \U0001f512 \x00", "\ud800", "x" * 1_000_000, '{"a": [1, 2]}'])
def test_it_comes_back_and_is_not_seen(set_key: SetKey, text: str) -> None:
    set_key(NEW)
    token = sealed.seal(text)

    assert token is not None
    assert token.isascii()
    assert not text or text not in token
    assert sealed.open_sealed(token) == text


def test_the_same_text_looks_different_each_time(set_key: SetKey) -> None:
    set_key(NEW)

    assert sealed.seal("a") != sealed.seal("a")


@pytest.mark.parametrize("setting", ["", "{FERNET_KEY}"])
def test_without_a_key_nothing_is_sealed(set_key: SetKey, setting: str) -> None:
    set_key(NEW)
    token = sealed.seal("secret")
    assert token is not None
    set_key(setting)

    assert sealed.seal("secret") is None
    with pytest.raises(
        EnvelopeError, match=r"sealed with Airflow's Fernet key, and there is none here\. Set \[core\] fernet_key"
    ):
        sealed.open_sealed(token)


def test_a_key_is_replaced_as_airflow_does_it(set_key: SetKey) -> None:
    set_key(OLD)
    before = sealed.seal("before")
    assert before is not None
    set_key(f"{NEW},{OLD}")
    after = sealed.seal("after")
    assert after is not None

    assert [sealed.open_sealed(before), sealed.open_sealed(after)] == ["before", "after"]
    set_key(NEW)
    assert sealed.open_sealed(after) == "after"
    with pytest.raises(EnvelopeError, match="put the old one behind the new, separated by a comma"):
        sealed.open_sealed(before)


@pytest.mark.parametrize("text", ["", "abc", "gAAAAA", "ü", "\ud800", "\x00", "-" * 100])
def test_what_was_not_sealed_is_not_opened(set_key: SetKey, text: str) -> None:
    set_key(NEW)

    with pytest.raises(EnvelopeError, match="sealed with another Fernet key"):
        sealed.open_sealed(text)


def test_a_changed_text_is_not_opened(set_key: SetKey) -> None:
    set_key(NEW)
    token = sealed.seal("a secret")
    assert token is not None

    for at in range(len(token)):  # every character, and every cut
        other = "A" if token[at] != "A" else "B"
        changed = token[:at] + other + token[at + 1 :]
        try:
            told = sealed.open_sealed(changed)
        except EnvelopeError as error:
            told = str(error)
        assert told == "a secret" or "damaged" in told
        with pytest.raises(EnvelopeError):
            sealed.open_sealed(token[:at])


@pytest.mark.parametrize(
    "setting", ["abc", f"{NEW},", f"{NEW},abc", "ü"], ids=["no key", "none after a comma", "no key after a comma", "no ASCII"]
)
def test_a_setting_that_is_no_key_says_how_to_make_one(set_key: SetKey, setting: str) -> None:
    set_key(setting)

    with pytest.raises(ServiceConfigurationError, match=re.escape("[core] fernet_key: ")) as caught:
        sealed.seal("secret")
    assert "Fernet.generate_key()" in str(caught.value)
    assert setting not in str(caught.value)


def test_it_reads_the_key_with_which_airflow_encrypts(set_key: SetKey) -> None:
    from airflow.sdk.crypto import get_fernet

    set_key(f"{NEW},{OLD}")
    get_fernet.cache_clear()
    try:
        token = sealed.seal("secret")
        assert token is not None
        assert get_fernet().decrypt(token) == b"secret"
        assert sealed.open_sealed(get_fernet().encrypt(b"secret").decode()) == "secret"
    finally:
        get_fernet.cache_clear()
