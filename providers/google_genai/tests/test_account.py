"""What a connection may hold, and what is said where it does not."""

from __future__ import annotations

import json

import pytest
from adk_airflow_google_genai.account import read_account
from adk_airflow_google_genai.errors import GoogleGenAIConnectionError
from airflow.sdk import Connection
from google.auth.exceptions import RefreshError, TransportError

KEY = "AIza-not-a-real-key-0123456789abcdef"


@pytest.mark.parametrize(
    ("host", "port", "base_url"),
    [
        (None, None, None),
        ("", None, None),
        ("https://gateway.example/gemini/", None, "https://gateway.example/gemini"),
        ("gateway.example", None, "https://gateway.example"),
        ("http://gateway.example", 8080, "http://gateway.example:8080"),
        ("https://gateway.example/gemini", 8443, "https://gateway.example:8443/gemini"),
        ("http://gateway.example:8080/", 443, "http://gateway.example:8080"),
        ("", 443, None),
    ],
)
def test_the_base_url_is_the_host(host, port, base_url):
    connection = Connection(conn_id="gemini", conn_type="google_genai", password=f" {KEY}\n", host=host, port=port)
    account = read_account(connection)
    assert (account.base_url, account.api_key, account.vertex) == (base_url, KEY, False)


def test_a_connection_may_be_a_uri_of_the_environment():
    uri = f"google-genai://http://:{KEY}@127.0.0.1%3A8080/"
    account = read_account(Connection(conn_id="gemini", uri=uri))
    assert (account.base_url, account.api_key) == ("http://127.0.0.1:8080", KEY)


def test_project_and_location_have_defaults(vertex_connection):
    account = read_account(vertex_connection(project="", location=""))
    assert (account.project, account.location, account.base_url is None) == ("project-of-the-key", "global", False)


def test_a_key_may_be_an_object_in_the_extra_as_in_airflows_google_connections(key_json):
    extra = json.dumps({"keyfile_dict": json.loads(key_json)})
    account = read_account(Connection(conn_id="vertex", conn_type="google_genai_vertex", extra=extra))
    assert account.project == "project-of-the-key"
    assert account.credentials.service_account_email == "airflow@project-of-the-key.iam.gserviceaccount.com"


def test_a_key_that_was_pasted_into_one_line_is_read(vertex_connection, key_json):
    account = read_account(vertex_connection(key=key_json.replace("\n", "")))
    assert account.credentials is not None


def test_no_key_are_the_default_credentials(vertex_connection):
    account = read_account(vertex_connection(key=None))
    assert (account.credentials, account.project) == (None, "my-project")


BROKEN = {
    "no key": (Connection(conn_id="c", conn_type="google_genai"), "no API key.*field API key"),
    "blank key": (Connection(conn_id="c", conn_type="google_genai", password="  "), "no API key"),
    "other type": (Connection(conn_id="c", conn_type="http"), "its type is 'http'.*'google_genai_vertex'"),
    "no project": (Connection(conn_id="c", conn_type="google_genai_vertex"), "no Google Cloud project.*field Project id"),
    "extra": (Connection(conn_id="c", conn_type="google_genai_vertex", extra='["secret-1"]'), "not a JSON object"),
    "no extra": (Connection(conn_id="c", conn_type="google_genai_vertex", extra="secret-1"), "not a JSON object"),
    "key": (Connection(conn_id="c", conn_type="google_genai_vertex", password="secret-1"), "cannot be read.*whole JSON"),
    "list": (Connection(conn_id="c", conn_type="google_genai_vertex", password='["secret-1"]'), "cannot be read"),
    "user": (
        Connection(conn_id="c", conn_type="google_genai_vertex", password='{"private_key": "secret-1"}'),
        "cannot be read",
    ),
}


@pytest.mark.parametrize(("connection", "says"), BROKEN.values(), ids=BROKEN)
def test_a_broken_connection_is_named_with_the_field_to_correct(connection, says):
    with pytest.raises(GoogleGenAIConnectionError, match=f"^Connection 'c': .*{says}") as caught:
        read_account(connection)
    error = caught.value
    assert (error.__cause__, error.__context__) == (None, None)
    assert "secret-1" not in f"{error} {error!r} {vars(error)}"


def test_a_damaged_private_key_is_not_quoted(vertex_connection, key_json):
    info = json.loads(key_json) | {"private_key": "-----BEGIN PRIVATE KEY-----\nsecret-1\n-----END PRIVATE KEY-----\n"}
    with pytest.raises(GoogleGenAIConnectionError, match="cannot be read") as caught:
        read_account(vertex_connection(key=json.dumps(info)))
    assert "secret-1" not in f"{caught.value!r} {caught.value.__context__!r}"


def test_a_metadata_server_that_cannot_be_reached_may_be_there_at_the_next_try(vertex_connection):
    account = read_account(vertex_connection())
    refused, unreachable = RefreshError("invalid_grant"), RefreshError("no answer")
    unreachable.__cause__ = TransportError("connection refused")
    assert account.refusal(refused).permanent is True
    assert account.refusal(unreachable).permanent is False
