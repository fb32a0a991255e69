"""Which values are sealed in an envelope, what plain forms show of them, and what happens where there is no key."""

from __future__ import annotations

import base64
import json
import logging
from typing import Any

import pytest
from airflow.models.xcom import XComModel
from airflow.sdk.execution_time.xcom import XCom
from airflow.sdk.log import mask_secret
from airflow.utils.session import create_session
from cryptography.fernet import Fernet
from google.adk.auth.auth_credential import AuthCredential, AuthCredentialTypes, HttpAuth, HttpCredentials, OAuth2Auth
from google.adk.workflow import START, Workflow, node
from sqlalchemy import select

from adk_airflow.errors import EnvelopeError
from adk_airflow.runtime import failures, sealing
from adk_airflow.runtime.wire import codec, lineage
from adk_airflow.runtime.wire.envelope import Envelope, Firing
from adk_airflow.testing import WorkflowRun, run_workflow
from tests.keys import SetKey
from tests.planted import found

TOLD = "what-the-masker-was-told-0123"


@pytest.fixture(autouse=True)
def _told(set_key: SetKey) -> None:
    mask_secret(TOLD)
    set_key(Fernet.generate_key().decode())


CREDENTIAL = AuthCredential(
    auth_type=AuthCredentialTypes.HTTP, http=HttpAuth(scheme="bearer", credentials=HttpCredentials(token="t"))
)
SECRET = [
    TOLD,
    f"in {TOLD} words",
    {"a": [1, {"b": TOLD}]},
    {TOLD: 1},
    {1: TOLD},
    {(1, TOLD): 2},
    TOLD.encode(),
    bytearray(f"x{TOLD}x".encode()),
    base64.b64encode(TOLD.encode()).decode(),
    base64.urlsafe_b64encode(f"??>{TOLD}".encode()).decode(),
    {f"x{TOLD}"},
    f"https://x/?q={TOLD.replace('-', '%2D')}",
    "AIzaSyA0123456789abcdefghijklmnopqrs",
    "ghp_0123456789abcdefghijklmnopqrstuvwxyz",
    "-----BEGIN PRIVATE KEY-----\nMIIEvQ\n-----END PRIVATE KEY-----",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
    {"password": "short"},
    {"list": {"access_token": ["t"]}},
    CREDENTIAL,
    CREDENTIAL.model_dump(exclude_none=True),
    {"c": CREDENTIAL},
    AuthCredential(auth_type=AuthCredentialTypes.OAUTH2, oauth2=OAuth2Auth(auth_code="c")).model_dump(by_alias=True),
    '{"access_token": "t"}',
]
NO_SECRET = [
    None,
    1,
    "",
    "words",
    "a risk-adjusted-return-on-capital-and-more, ask-a-very-long-question-without-end",
    "Bearer authentication-is-explained-here",
    {"total_tokens": 12, "password": None, "token": ""},
    [{"title": "passwords", "text": "secrets of a good password"}],
    "https://shop/item?id=12&key=blue-shirt-in-large",
    "YWJjZGVmZ2hpamtsbW5vcA==",
]


@pytest.mark.parametrize("value", SECRET, ids=repr)
def test_what_holds_a_secret_is_sealed_and_comes_back(value: Any) -> None:
    envelope = Envelope("a", "wf", "a", firings=(Firing("a", value),), state=lineage.write({}, {"k": codec.encode(value)}, "a"))
    text = envelope.dumps(sealing.Sealing())

    data = json.loads(text)
    assert [list(data["firings"][0]["output"]), list(data["state"]["k"][0])] == [["$", "v"]] * 2
    assert data["state"]["k"][1:] == ["a", []]
    assert Envelope.loads(text, task="a") == envelope


@pytest.mark.parametrize("value", NO_SECRET, ids=repr)
def test_what_holds_none_stands_as_it_is(value: Any) -> None:
    envelope = Envelope("a", "wf", "a", firings=(Firing("a", value),), state=lineage.write({}, {"k": codec.encode(value)}, "a"))

    assert envelope.dumps(sealing.Sealing()) == envelope.dumps()
    assert sealing.masked(value) == (value, False)


@pytest.mark.parametrize("key", ["temp:x", "temp:", "api_key", "adk_OAUTH2_12_oauth2_34", "a_b_existing_exchanged_credential"])
def test_state_is_sealed_by_its_key(key: str) -> None:
    text = Envelope("a", "wf", "a", state=lineage.write({}, {key: "plain"}, "a")).dumps(sealing.Sealing())

    assert "plain" not in text
    assert Envelope.loads(text, task="a").state[key] == lineage.Entry("plain", "a")


def test_temp_state_is_sealed_whatever_it_is() -> None:
    text = Envelope("a", "wf", "a", state=lineage.write({}, {"temp:pin": 4711, "tokens": 4711}, "a")).dumps(sealing.Sealing())

    assert text.count("4711") == 1


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (f"in {TOLD} words", "in *** words"),
        ({"a": [1, TOLD], TOLD: None}, {"a": [1, "***"], "***": None}),
        ({TOLD: 1, f"{TOLD}{TOLD}": 2, "******": 3}, [["***", 1], ["******", 2], ["******", 3]]),
        ([base64.b64encode(f"x{TOLD}".encode()).decode(), "words"], ["***", "words"]),
        ({"password": "short", "x": TOLD}, {"password": "short", "x": "***"}),
    ],
)
def test_a_plain_form_has_stars_in_their_place(data: Any, shown: Any) -> None:
    assert sealing.masked(data) == (shown, True)


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ({"password": "short", "x": 1}, {"password": "***", "x": 1}),
        ({"a": [{"accessToken": {"v": ["t"]}}]}, {"a": [{"accessToken": "***"}]}),
        (
            {"auth_code": "c", "codeVerifier": "v", "total_tokens": 3},
            {"auth_code": "***", "codeVerifier": "***", "total_tokens": 3},
        ),
    ],
)
def test_a_record_has_stars_also_for_what_is_called_like_a_secret(data: Any, shown: Any) -> None:
    assert sealing.masked(data, by_name=True) == (shown, True)
    assert sealing.masked(data) == (data, False)


def test_a_long_text_takes_no_longer_than_its_length() -> None:
    for part in ("a", "%", "=%41", "AIza", "eyJ.", "-----BEGIN PRIVATE KEY-----", "Bearer ", "https://a.b/?key=", "sk-"):
        text = part * (100_000 // len(part))  # its square: minutes
        assert sealing.holds_secret([text]) is failures.holds_secret(text)


# -- in a run ----------------------------------------------------------------------------------------------


def gives(ctx: Any, node_input: Any) -> list[Any]:
    ctx.state["temp:n"] = 1
    ctx.state["seen"] = {"a": TOLD}
    return [f"x {TOLD}", {"label": TOLD}, 3]


async def takes(ctx: Any, node_input: Any) -> Any:
    assert ctx.state["temp:n"] == 1
    assert ctx.state["seen"] == {"a": TOLD}
    return node_input


def ends(ctx: Any, node_input: Any) -> Any:
    return [node_input, ctx.state["seen"]]


def parallel() -> Workflow:
    first, each, last = node(gives), node(takes, parallel_worker=True), node(ends)
    return Workflow(name="parallel", edges=[(START, first), (first, each), (each, last)])


OUTPUT = [[f"x {TOLD}", {"label": TOLD}, 3], {"a": TOLD}]


def xcoms(run: WorkflowRun, key: str) -> list[Any]:
    with create_session() as session:
        rows = session.execute(select(XComModel).where(XComModel.run_id == run.run_id, XComModel.key == key)).scalars()
        return [XCom.deserialize_value(row) for row in rows]


def test_items_of_a_parallel_worker_and_their_labels_hide_a_secret_too() -> None:
    run = run_workflow(parallel())

    assert (run.state, run.output) == ("success", OUTPUT)
    assert found({"told": TOLD}) == {}
    assert set(run.labels["takes.run"].values()) == {"1 · x ***", "2 · ***", "3 · 3"}
    assert [["x ***", {"label": "***"}, 3], {"a": "***"}] in xcoms(run, "return_value")


@pytest.mark.parametrize("mode", ["tasks", "embedded"])
def test_a_run_without_a_key_is_the_same_and_warns(set_key: SetKey, caplog: pytest.LogCaptureFixture, mode: Any) -> None:
    set_key("")
    with caplog.at_level(logging.WARNING, "adk_airflow"):
        run = run_workflow(parallel(), mode=mode)

    assert (run.state, run.output) == ("success", OUTPUT)
    told = [line for line in caplog.messages if "in clear text" in line]
    assert all(
        "Set [core] fernet_key, the same for all parts of Airflow, workers included (make one: " in line for line in told
    )
    if mode == "tasks":
        assert [line.partition(" may")[0] for line in told] == [
            "workflow 'parallel', node 'gives': its output, state key 'seen', state key 'temp:n'",
            "workflow 'parallel', node 'takes': the list of its items",
            *["workflow 'parallel', node 'takes': its output"] * 2,
            "workflow 'parallel', node 'takes': its output",
            "workflow 'parallel', node 'ends': its output",
        ]
    else:
        assert told[0].startswith(
            "workflow 'parallel': its output, state key 'seen', state key 'temp:n' may hold a secret, and is"
        )


def test_a_key_that_changed_names_the_task_to_clear(set_key: SetKey) -> None:
    text = Envelope("a", "wf", "a", firings=(Firing("a", TOLD),)).dumps(sealing.Sealing())
    set_key(Fernet.generate_key().decode())

    with pytest.raises(EnvelopeError, match=r"task 'a': a value is sealed with another Fernet key .*Clear task 'a' so that it"):
        Envelope.loads(text, task="a")
