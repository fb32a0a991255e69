"""No secret is in Airflow's database, a log, or a file that a run leaves: sixteen are planted, and all is searched for them.

What the tasks themselves need of them they get, whole.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from cryptography.fernet import Fernet

from adk_airflow.runtime.wire import sealed
from tests.planted import found
from tests.servers.gemini import GeminiRequest, GeminiServer, call, error, text
from tests.supervised import Tried, run_tasks

# What each looks like; the workflow reads them from the environment, so that its source holds none.
PLANTED = {
    "password of a connection": "planted-Pa55word/of+a connection'01",
    "password of a database": "planted-db-pa55word-02",
    "key in the environment": "planted-key-of-the-environment-03",
    "variable": "planted-variable-04",
    "client secret": "planted-client-secret-05",
    "exchanged token": "planted-access-token-06",
    "auth response": "planted-authorized-token-07",
    "header of a server": "planted-mcp-header-08",
    "told to the masker": "planted-told-to-the-masker-09",
    "state": "planted-in-state-10",
    "temp state": "planted-in-temp-state-11",
    "exception": "sk-ant-planted0exception00000000000012",
    "argument of a tool": "AIzaPlantedArgument0000000000000000013",
    "instruction": "ghp_planted00instruction0000000000000000014",
    "metadata of an artifact": "planted-in-metadata-15",
    "asked of a person": "planted-api-key-16",
}
SHOWN = {"output": "shown-in-an-output-1", "artifact": "shown-in-an-artifact-2", "words": "shown-in-words-3"}

SOURCE = '''
import os

from adk_airflow import AdkAgentOperator, AdkTaskGroup, AdkToolOperator, AdkWorkflowOperator
from airflow.sdk import BaseHook, DAG, Variable, task
from airflow.sdk.log import mask_secret
from fastapi.openapi.models import APIKey, HTTPBearer, OAuth2, OAuthFlowClientCredentials, OAuthFlows
from google.adk.agents import LlmAgent
from google.adk.auth.auth_credential import (
    AuthCredential, AuthCredentialTypes, HttpAuth, HttpCredentials, OAuth2Auth,
)
from google.adk.auth.auth_tool import AuthConfig
from google.adk.tools.authenticated_function_tool import AuthenticatedFunctionTool
from google.adk.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams
from google.adk.workflow import START, Workflow, node
from google.genai import types

from adk_airflow import as_node


def planted(name):
    return os.environ["ELSEWHERE_" + name.upper().replace(" ", "_")]


TOKENS = os.environ["ELSEWHERE_SERVER"]
OAUTH = AuthConfig(
    auth_scheme=OAuth2(flows=OAuthFlows(clientCredentials=OAuthFlowClientCredentials(tokenUrl=TOKENS + "/token", scopes={}))),
    raw_auth_credential=AuthCredential(
        auth_type=AuthCredentialTypes.OAUTH2,
        oauth2=OAuth2Auth(client_id="the-client", client_secret=planted("client secret")),
    ),
)
BEARER = AuthConfig(auth_scheme=HTTPBearer(), credential_key="of_the_user")


# -- a workflow that gets secrets, hands them on, and checks that they arrive ----------------------------------


def reads(ctx, node_input: str):
    """What code gets from Airflow, it hands on: in its output, in state, in a route's shadow."""
    password = BaseHook.get_connection("leaky").password
    assert password == planted("password of a connection")
    variable = Variable.get("service_token")
    mask_secret(planted("told to the masker"))
    ctx.state["variable"] = variable
    ctx.state["api_key"] = planted("state")
    ctx.state["temp:scratch"] = {"n": 1, "text": planted("temp state")}
    ctx.state["plain"] = "shown-in-an-output-1"
    return {
        "password": password,
        "key": os.environ["VENDOR_API_KEY"],
        "told": ["x " + planted("told to the masker") + " y"],
        "raw": ("<" + planted("told to the masker") + ">").encode(),
        "shown": "shown-in-an-output-1",
    }


def checks(ctx, node_input: dict):
    assert node_input["password"] == planted("password of a connection")
    assert node_input["key"] == planted("key in the environment")
    assert node_input["told"] == ["x " + planted("told to the masker") + " y"]
    assert node_input["raw"] == ("<" + planted("told to the masker") + ">").encode()
    assert ctx.state["variable"] == planted("variable")
    assert ctx.state["api_key"] == planted("state")
    assert ctx.state["temp:scratch"] == {"n": 1, "text": planted("temp state")}
    # As ADK keeps what a person authorized.
    ctx.state["of_the_user"] = AuthCredential(
        auth_type=AuthCredentialTypes.HTTP,
        http=HttpAuth(scheme="bearer", credentials=HttpCredentials(token=planted("auth response"))),
    )
    return {}


async def calls(credential, tool_context):
    """The token of the user's, which its server quotes."""
    assert credential.http.credentials.token == planted("auth response")
    part = types.Part(text="shown-in-an-artifact-2")
    await tool_context.save_artifact("report", part, custom_metadata={"token": planted("metadata of an artifact")})
    return {"answer": "hello " + credential.http.credentials.token}


async def exchanges(credential, tool_context):
    token = credential.oauth2.access_token
    assert token == planted("exchanged token")
    return {"answer": "welcome " + token}


def ends(ctx, node_input: dict):
    assert node_input == {"answer": "welcome " + planted("exchanged token")}
    assert ctx.state["of_the_user"].http.credentials.token == planted("auth response")
    ctx.state["last"] = node_input
    return "done, " + node_input["answer"]


user_tool = AuthenticatedFunctionTool(func=calls, auth_config=BEARER)
client_tool = AuthenticatedFunctionTool(func=exchanges, auth_config=OAUTH)


def drops(ctx, node_input: dict):
    assert node_input == {"answer": "hello " + planted("auth response")}
    return {}


first, second, third, last = map(node, (reads, checks, drops, ends))
working = Workflow(
    name="working",
    edges=[(START, first), (first, second), (second, user := as_node(user_tool, name="user")), (user, third),
           (third, client := as_node(client_tool, name="client")), (client, last)],
)

# -- what fails ------------------------------------------------------------------------------------------------


def raises(node_input: str):
    try:
        raise KeyError(planted("exception"))
    except KeyError as inner:
        raise ValueError("refused: " + planted("exception")) from inner


async def refuses(credential, tool_context):
    raise RuntimeError("401 for " + credential.oauth2.access_token)


refusing_tool = AuthenticatedFunctionTool(func=refuses, auth_config=OAUTH)
failing = Workflow(name="failing", edges=[(START, node(raises))])


# -- agents ----------------------------------------------------------------------------------------------------


async def remember(callback_context):
    await callback_context.add_session_to_memory()


def look_up(key: str) -> dict:
    """Looks something up."""
    return {"found": "with " + key}


asking_tool = AuthenticatedFunctionTool(
    func=look_up,
    auth_config=AuthConfig(
        auth_scheme=APIKey(**{"in": "header", "name": "key"}),
        raw_auth_credential=AuthCredential(
            auth_type=AuthCredentialTypes.OAUTH2, oauth2=OAuth2Auth(client_id="c", client_secret=planted("asked of a person"))
        ),
    ),
)
server = McpToolset(
    connection_params=StreamableHTTPConnectionParams(
        url=TOKENS + "/mcp", headers={"Authorization": "Bearer " + planted("header of a server")}
    )
)


def agent(name, **fields):
    return LlmAgent(name=name, model="gemini-2.5-flash", after_agent_callback=remember, **fields)


with DAG("planted", schedule=None, default_args={"retries": 1}) as dag:
    work = AdkTaskGroup(working, group_id="work")
    AdkTaskGroup(failing, group_id="fail")
    AdkWorkflowOperator(task_id="whole", workflow=working)
    AdkToolOperator(task_id="refused", tool=refusing_tool)
    AdkAgentOperator(task_id="uses_tools", agent=agent("finder", tools=[look_up]), prompt="find it")
    AdkAgentOperator(
        task_id="told", agent=agent("told", instruction="Use " + planted("instruction")), prompt="{{ conn.leaky.password }}"
    )
    AdkAgentOperator(task_id="has_server", agent=agent("serving", tools=[server]), prompt="go")
    AdkToolOperator(task_id="opens_server", toolset=server, tool_name="anything")
    AdkAgentOperator(task_id="asks", agent=agent("asking", tools=[asking_tool]), prompt="find it")
    AdkAgentOperator(task_id="quoted", agent=agent("quoted"), prompt="refuse", llm_conn_id="leaky")
    AdkAgentOperator(task_id="breaks", agent=agent("breaking", tools=[look_up]), prompt="find it and break")
    AdkAgentOperator(task_id="kept", agent=agent("kept"), prompt="go", session_id="one")

    @task
    def reads_plain(value):
        print(value)
        assert value == "done, welcome ***", value

    list(dag.task_dict.values())
    reads_plain(dag.get_task("whole").output)
'''


class _Server(BaseHTTPRequestHandler):
    """Gives tokens; refuses everything else, and quotes what it was sent."""

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        if self.path == "/token":
            status, answer = 200, {"access_token": PLANTED["exchanged token"], "token_type": "Bearer", "expires_in": 3600}
        else:
            status, answer = 401, {"error": f"no {self.headers.get('authorization')}, {sent}"}
        self._send(status, json.dumps(answer).encode())

    def do_GET(self) -> None:
        self._send(401, f"no {self.headers.get('authorization')}".encode())

    do_DELETE = do_GET

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status, f"no {self.headers.get('authorization')}" if status == 401 else None)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the output of the tests is not what is searched."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    http = ThreadingHTTPServer(("127.0.0.1", 0), _Server)
    thread = threading.Thread(target=http.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{http.server_port}"
    http.shutdown()
    http.server_close()
    thread.join()


def script(request: GeminiRequest) -> Any:
    """A model that uses the tool it has, says again what it is told, and quotes the key that it refuses."""
    if request.last_text == "refuse":
        return error(403, message=f"no {request.api_key}")
    if request.function_responses and "break" in request.texts[0]:
        return error(400, message="no more")
    if request.function_responses:
        return text(f"shown-in-words-3, {json.dumps(request.function_responses[0]['response'])}")
    if request.tools:
        return call("look_up", {"key": PLANTED["argument of a tool"]})
    return text(f"shown-in-words-3: {request.system} {request.last_text}")


@pytest.fixture(scope="module")
def tried(server: str) -> Iterator[dict[str, Tried]]:
    with pytest.MonkeyPatch.context() as patch, GeminiServer(script) as models:
        for name, value in {**models.environment, "NO_PROXY": "127.0.0.1"}.items():
            patch.setenv(name, value)
        connection = {"conn_type": "google_genai", "password": PLANTED["password of a connection"], "host": models.url}
        database = {"conn_type": "postgres", "host": "127.0.0.1", "port": 1, "password": PLANTED["password of a database"]}
        patch.setenv("AIRFLOW_CONN_LEAKY", json.dumps(connection))
        patch.setenv("AIRFLOW_CONN_KEEPING", json.dumps(database))
        patch.setenv("AIRFLOW__ADK_AIRFLOW__SESSION_CONN_ID", "keeping")
        patch.setenv("AIRFLOW_VAR_SERVICE_TOKEN", PLANTED["variable"])
        patch.setenv("VENDOR_API_KEY", PLANTED["key in the environment"])
        patch.setenv("ELSEWHERE_SERVER", server)
        for name, value in PLANTED.items():
            patch.setenv("ELSEWHERE_" + name.upper().replace(" ", "_"), value)
        patch.setenv("AIRFLOW__CORE__FERNET_KEY", Fernet.generate_key().decode())
        sealed._fernet.cache_clear()
        yield run_tasks("planted", SOURCE)
    sealed._fernet.cache_clear()


def test_the_tasks_do_what_they_do_without_secrets(tried: dict[str, Tried]) -> None:
    states = {task: one.state for task, one in tried.items()}
    works = [*(f"work.{name}" for name in ("reads", "checks", "user", "drops", "client", "ends")), "whole", "reads_plain"]
    assert [states.pop(task) for task in works] == ["success"] * len(works)
    assert states == {
        "uses_tools": "success",
        "told": "success",
        "has_server": "success",  # ADK lets an agent go on without a toolset that does not load
        "opens_server": "up_for_retry",
        "fail.raises": "up_for_retry",
        "refused": "up_for_retry",
        "asks": "up_for_retry",
        "breaks": "failed",
        "quoted": "failed",
        "kept": "failed",
    }


def test_no_planted_secret_is_found(tried: dict[str, Tried]) -> None:
    assert tried
    assert found(PLANTED) == {}


def test_what_is_no_secret_is_found_by_the_same_search(tried: dict[str, Tried]) -> None:
    assert tried
    places = found(SHOWN)
    assert places["output"] >= {"xcom.value"}
    assert places["artifact"] >= {"adk_artifacts"}
    assert places["words"] >= {"xcom.value", "logs", "adk_memory"}
