"""The hook, as tasks use it and as the Test button of the connection form does."""

from __future__ import annotations

import os

import pytest
from adk_airflow_google_genai import GoogleGenAIHook, GoogleGenAIVertexHook
from airflow.models.connection import Connection as StoredConnection
from airflow.sdk.exceptions import AirflowNotFoundException


@pytest.fixture
def test(monkeypatch):
    """Tests a connection as the API server does: from an environment variable, under an id of the moment."""

    def press(connection):
        stored = StoredConnection(
            conn_id="moment",
            conn_type=connection.conn_type,
            host=connection.host,
            password=connection.password,
            extra=connection.extra,
        )
        monkeypatch.setenv("AIRFLOW_CONN_MOMENT", stored.get_uri())
        return stored.test_connection()

    return press


@pytest.fixture
def define(monkeypatch):
    """Makes a connection known under its id."""

    def set_variable(connection):
        monkeypatch.setenv(f"AIRFLOW_CONN_{connection.conn_id.upper()}", connection.get_uri())
        return connection.conn_id

    return set_variable


def test_the_client_has_the_connections_credentials(cloud, gemini_connection, vertex_connection, define):
    before = dict(os.environ)
    gemini = GoogleGenAIHook(define(gemini_connection())).get_client()
    vertex = GoogleGenAIVertexHook(define(vertex_connection())).get_conn()
    for client in (gemini, vertex):
        assert client.models.generate_content(model="gemini-2.5-flash", contents="hi").text == "hello"
    assert cloud.requests[0].headers["x-goog-api-key"] == cloud.key
    assert cloud.requests[1].headers["authorization"] == f"Bearer {cloud.token}"
    assert cloud.requests[1].path.startswith("/v1beta1/projects/my-project/locations/europe-west1/")
    assert {name for name in os.environ if name not in before} == {"AIRFLOW_CONN_GEMINI", "AIRFLOW_CONN_VERTEX"}


def test_http_options_are_passed_on(cloud, gemini_connection, define):
    hook = GoogleGenAIHook(define(gemini_connection()))
    client = hook.get_client({"headers": {"X-Team": "maps"}, "base_url": "http://127.0.0.1:9"})
    client.models.generate_content(model="gemini-2.5-flash", contents="hi")
    assert cloud.requests[0].headers["x-team"] == "maps"


def test_constructing_a_hook_reads_no_connection():
    hook = GoogleGenAIHook("not_there")
    with pytest.raises(AirflowNotFoundException, match="not_there"):
        hook.get_client()
    assert (GoogleGenAIHook().conn_id, GoogleGenAIVertexHook().conn_id) == (
        "google_genai_default",
        "google_genai_vertex_default",
    )


def test_a_good_key_passes_the_test_with_one_free_request(cloud, gemini_connection, test):
    cloud.answer = {"totalTokens": 1}
    assert test(gemini_connection()) == (True, "the Gemini API accepts the credentials.")
    (request,) = cloud.requests
    assert request.path.endswith(":countTokens")
    assert request.headers["x-goog-api-key"] == cloud.key


def test_a_good_service_account_passes_the_test(cloud, vertex_connection, test):
    cloud.answer = {"totalTokens": 1}
    assert test(vertex_connection()) == (True, "Vertex AI, project my-project, europe-west1 accepts the credentials.")
    assert cloud.requests[0].headers["authorization"] == f"Bearer {cloud.token}"


def test_a_region_without_the_model_passes_too(cloud, vertex_connection, test):
    cloud.refuse(404, "NOT_FOUND", "Publisher Model was not found.")
    passed, message = test(vertex_connection())
    assert passed
    assert message.endswith("it does not offer gemini-2.5-flash there.")


@pytest.mark.parametrize(
    "refusal",
    [
        (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", "API_KEY_INVALID"),
        (403, "PERMISSION_DENIED", "Consumer 'api_key:{key}' has been suspended.", "CONSUMER_SUSPENDED"),
        (500, "INTERNAL", "cannot handle {key}", None),
    ],
)
def test_a_bad_key_fails_the_test_and_is_not_shown(refusal, cloud, gemini_connection, test):
    cloud.refuse(*refusal)
    passed, message = test(gemini_connection())
    assert not passed
    assert refusal[1] in message
    assert cloud.key not in message
    assert "moment" not in message


def test_other_faults_of_a_connection_fail_the_test_with_what_to_do(cloud, gemini_connection, vertex_connection, test):
    assert test(gemini_connection(key=None)) == (
        False,
        "Connection: it has no API key. Put one into its field API key (password).",
    )
    assert "no default credentials" in test(vertex_connection(key=None))[1]
    cloud.token_error = {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}
    assert "Invalid JWT Signature" in test(vertex_connection())[1]
    passed, message = test(gemini_connection(host="http://127.0.0.1:9"))
    assert not passed
    assert message.startswith("No answer from the Gemini API: ConnectError")


def test_a_page_that_is_not_there_is_no_answer_of_the_api(cloud, gemini_connection, test):
    cloud.status, cloud.answer = 404, {"detail": "Not Found"}
    passed, message = test(gemini_connection())
    assert not passed
    assert message.startswith("No answer from the Gemini API: ClientError: 404")
