"""Airflow's masker is told what ADK's auth machinery handles, and of nothing else."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fastapi.openapi.models import APIKey, HTTPBearer
from google.adk.agents import LlmAgent
from google.adk.auth.auth_credential import (
    AuthCredential,
    AuthCredentialTypes,
    HttpAuth,
    HttpCredentials,
    OAuth2Auth,
    ServiceAccount,
    ServiceAccountCredential,
)
from google.adk.auth.auth_tool import AuthConfig
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.authenticated_function_tool import AuthenticatedFunctionTool
from google.adk.tools.mcp_tool import McpToolset, SseConnectionParams, StdioConnectionParams, StreamableHTTPConnectionParams
from google.adk.tools.openapi_tool import OpenAPIToolset
from google.adk.tools.toolbox_toolset import ToolboxToolset
from google.genai import types
from google.oauth2.credentials import Credentials as GoogleCredentials
from mcp import StdioServerParameters
from toolbox_adk import CredentialStrategy

from adk_airflow.runtime import failures
from adk_airflow.runtime.adk.credentials import Credentials, credential_keys, secrets_of

BEARER = AuthCredential(
    auth_type=AuthCredentialTypes.HTTP,
    http=HttpAuth(
        scheme="bearer",
        credentials=HttpCredentials(username="user-name", password="pa55-word", token="the-token"),
        additional_headers={"X-Other": "other-header"},
    ),
)
OAUTH = AuthCredential(
    auth_type=AuthCredentialTypes.OAUTH2,
    oauth2=OAuth2Auth(
        client_id="client-id", client_secret="client-secret", auth_uri="https://auth", auth_code="auth-code",
        access_token="access-token", refresh_token="refresh-token", code_verifier="verifier",
    ),
)  # fmt: skip
ACCOUNT = AuthCredential(
    auth_type=AuthCredentialTypes.SERVICE_ACCOUNT,
    service_account=ServiceAccount(
        scopes=["a-scope"],
        service_account_credential=ServiceAccountCredential(
            project_id="project", private_key_id="key-id", private_key="private-key", client_email="mail", client_id="id",
            auth_uri="u", token_uri="t", auth_provider_x509_cert_url="p", client_x509_cert_url="c", universe_domain="d",
        ),
    ),
)  # fmt: skip
OF_BEARER = {"pa55-word", "the-token", "other-header"}
OF_OAUTH = {"client-secret", "auth-code", "access-token", "refresh-token", "verifier"}
SCHEME = APIKey.model_validate({"in": "header", "name": "key"})
CONFIG = AuthConfig(auth_scheme=SCHEME, raw_auth_credential=BEARER, exchanged_auth_credential=OAUTH, credential_key="my-key")
GOOGLE = GoogleCredentials("google-token", "google-refresh", None, "https://token", "client", "google-secret").to_json()


def of_function(credential: Any) -> str:
    """A tool."""
    return ""


TOOL = AuthenticatedFunctionTool(func=of_function, auth_config=CONFIG)
SERVERS: list[Any] = [
    McpToolset(connection_params=kind(url="http://x/mcp", headers={"Authorization": "Bearer in-a-header", "Accept": "text/x"}))
    for kind in (SseConnectionParams, StreamableHTTPConnectionParams)
]
PROCESS = McpToolset(
    connection_params=StdioConnectionParams(
        server_params=StdioServerParameters(command="x", env={"MY_API_KEY": "in-its-environment", "LANG": "C.UTF-8"})
    )
)
TOOLBOX = ToolboxToolset(
    "http://x",
    credentials=CredentialStrategy.manual_token("in-its-credentials"),
    additional_headers={"X-Api-Key": "in-a-header", "Accept": "text/x"},
)
OPENAPI = OpenAPIToolset(
    spec_dict={
        "openapi": "3.0.0",
        "info": {"title": "t", "version": "1"},
        "servers": [{"url": "http://x"}],
        "paths": {"/a": {"get": {"operationId": "get_a", "responses": {"200": {"description": "the-description"}}}}},
    },
    auth_scheme=HTTPBearer(),
    auth_credential=BEARER,
)


@pytest.mark.parametrize(
    ("held", "secrets"),
    [
        (BEARER, OF_BEARER),
        (OAUTH, OF_OAUTH),
        (ACCOUNT, {"key-id", "private-key"}),
        (CONFIG, OF_BEARER | OF_OAUTH),
        (BEARER.model_dump(), OF_BEARER),
        (OAUTH.model_dump(by_alias=True, exclude_none=True), OF_OAUTH),
        (CONFIG.model_dump(mode="json", by_alias=True), OF_BEARER | OF_OAUTH),
        (GOOGLE, {"google-token", "google-refresh", "google-secret"}),
        (TOOL, OF_BEARER | OF_OAUTH),
        *((server, {"Bearer in-a-header", "in-a-header"}) for server in SERVERS),
        (PROCESS, {"in-its-environment"}),
        (TOOLBOX, {"in-a-header", "in-its-credentials"}),
        (OPENAPI, OF_BEARER),
        ({"token": "a word of a dict"}, set()),
        ("token_uri", set()),
        (LlmAgent(name="a", instruction="words"), set()),
        (of_function, set()),
        (None, set()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_secrets_of(held: Any, secrets: set[str]) -> None:
    assert set(secrets_of(held)) == secrets


def test_the_keys_of_the_state_for_a_tool() -> None:
    assert credential_keys(TOOL) == {"my-key", "temp:my-key"}
    assert credential_keys(AgentTool(LlmAgent(name="a"))) == set()


def test_an_agent_that_calls_itself_through_a_tool_ends() -> None:
    agent = LlmAgent(name="a")
    agent.tools = [AgentTool(agent)]

    assert set(secrets_of(agent)) == set()


def masked(*texts: str) -> list[bool]:
    return [failures.masked(f"<{text}>") == "<***>" for text in texts]


def test_what_an_event_carries_is_known_before_anybody_logs_it() -> None:
    call = types.FunctionCall(
        name="adk_request_credential",
        args={"functionCallId": "1", "authConfig": {"rawAuthCredential": {"authType": "apiKey", "apiKey": "asked-for-key"}}},
    )
    answer = types.FunctionResponse(
        name="adk_request_credential",
        response={"exchangedAuthCredential": {"oauth2": {"authResponseUri": "https://back?code=answered-code"}}},
    )
    other = types.FunctionCall(name="search", args={"token": "words-of-a-search"})
    parts = [types.Part(function_call=call), types.Part(function_response=answer), types.Part(function_call=other)]
    state = {"cached": GOOGLE.replace("google-token", "token-of-a-cache"), "adk_x_1": "token-as-text-1", "title": "title-of-it"}
    event = Event(author="a", content=types.Content(parts=parts), actions=EventActions(state_delta=state))

    asyncio.run(Credentials().on_event_callback(invocation_context=None, event=event))

    assert masked("asked-for-key", "https://back?code=answered-code", "token-of-a-cache", "token-as-text-1") == [True] * 4
    assert masked("words-of-a-search", "title-of-it") == [False] * 2
