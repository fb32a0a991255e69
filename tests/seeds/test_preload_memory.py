"""Seed 000, section 3: PreloadMemoryTool, as DAG runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from google.adk import Event
from google.adk.cli.service_registry import get_service_registry
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
from google.adk.sessions.session import Session
from google.adk.workflow import START, Workflow

from adk_airflow.testing import run_workflow
from tests.seeds import preload_memory as seed
from tests.seeds.as_dag import StartServer, run_agent
from tests.seeds.in_process import run_in_process
from tests.servers.gemini import GeminiRequest

UseMemory = Callable[[BaseMemoryService], None]


@pytest.fixture
def use_memory(monkeypatch: pytest.MonkeyPatch) -> UseMemory:
    """Gives the tasks a memory service, under a URI scheme that is registered as ADK's own are."""

    def use(service: BaseMemoryService) -> None:
        get_service_registry().register_memory_service("seeds", lambda uri, **_: service)
        monkeypatch.setenv("AIRFLOW__ADK_AIRFLOW__MEMORY_SERVICE_URI", "seeds://memory")

    return use


class UnreachableMemory(BaseMemoryService):
    """A memory service that is down."""

    async def add_session_to_memory(self, session: Session) -> None:
        raise ConnectionError("the memory service is down")

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        raise ConnectionError("the memory service is down")


def told(app_name: str, text: str) -> InMemoryMemoryService:
    """A memory in which the user said something once."""
    service = InMemoryMemoryService()
    session = Session(app_name=app_name, user_id="airflow", id="yesterday")
    session.events.append(Event(author="user", message=text, timestamp=1_780_000_000.0))
    asyncio.run(service.add_session_to_memory(session))
    return service


def everything(request: GeminiRequest) -> str:
    return "\n".join([request.system, *request.texts])


def remembering(request: GeminiRequest) -> str:
    return "You are Alice." if "Alice" in everything(request).replace(request.last_text, "") else "I do not know."


def test_examples_1_and_3_what_was_said_before_is_in_the_request(gemini: StartServer, use_memory: UseMemory) -> None:
    server = gemini(lambda request: "Rex is your dog.")
    use_memory(told("dag_of_memory_agent", "My dog is called Rex"))

    run = run_agent(seed.memory_agent, "Who is Rex?")

    (request,) = server.requests
    lines = everything(request).splitlines()
    block = lines[lines.index("<PAST_CONVERSATIONS>") + 1 : lines.index("</PAST_CONVERSATIONS>")]
    assert block[0].startswith("Time: 2026-05-2")
    assert block[1:] == ["user: My dog is called Rex"]
    assert request.last_text == "Who is Rex?"
    assert list(request.tools) == []
    assert run.output == "Rex is your dog."


def test_examples_1_and_3_the_request_is_adks_own(gemini: StartServer, use_memory: UseMemory) -> None:
    server = gemini(lambda request: "Rex is your dog.")
    use_memory(told("dag_of_memory_agent", "My dog is called Rex"))

    run_agent(seed.memory_agent, "Who is Rex?")
    run_in_process(seed.memory_agent, "Who is Rex?", memory_service=told("seeds", "My dog is called Rex"))

    in_dag, in_process = server.requests
    assert in_dag.body == in_process.body


def test_example_2_todays_run_finds_what_yesterdays_run_kept(gemini: StartServer, use_memory: UseMemory) -> None:
    gemini(remembering)
    use_memory(InMemoryMemoryService())

    before = run_agent(seed.persistent_agent, "What is my name?")
    run_agent(seed.persistent_agent, "My name is Alice.")
    after = run_agent(seed.persistent_agent, "What is my name?")

    assert before.output == "I do not know."
    assert after.output == "You are Alice."


def test_example_4_without_the_callback_nothing_is_kept(gemini: StartServer, use_memory: UseMemory) -> None:
    gemini(remembering)
    use_memory(InMemoryMemoryService())

    run_agent(seed.memory_agent, "My name is Alice.")

    assert run_agent(seed.memory_agent, "What is my name?").output == "I do not know."


def test_example_5_a_memory_that_is_down_leaves_the_agent_without_it(gemini: StartServer, use_memory: UseMemory) -> None:
    server = gemini(remembering)
    use_memory(UnreachableMemory())

    run = run_agent(seed.memory_agent, "What is my name?")

    assert (run.state, run.output) == ("success", "I do not know.")
    assert "PAST_CONVERSATIONS" not in everything(server.requests[0])


def test_as_a_node_of_a_workflow_it_finds_the_memory_too(gemini: StartServer, use_memory: UseMemory) -> None:
    gemini(remembering)
    use_memory(told("memory_flow", "My name is Alice"))

    run = run_workflow(Workflow(name="memory_flow", edges=[(START, seed.memory_agent)]), input="What is my name?")

    assert run.output == "You are Alice."
