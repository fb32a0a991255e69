"""ADK's memory bank service of Vertex AI, made of a connection."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from google.adk.memory import VertexAiMemoryBankService

from adk_airflow_google_genai.account import DEFAULT_LOCATION, VERTEX, Account, read_account, read_extra
from adk_airflow_google_genai.errors import GoogleGenAIConnectionError

if TYPE_CHECKING:
    from airflow.sdk import Connection
    from google.adk.events.event import Event
    from google.adk.memory.base_memory_service import SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions.session import Session

T = TypeVar("T")

_RESOURCE = re.compile(r"projects/(?P<project>[^/]+)/locations/(?P<location>[^/]+)/reasoningEngines/(?P<id>[^/]+)")
_ID = re.compile(r"[\w-]+")
_held_back: ContextVar[list[Callable[[], Awaitable[Any]]]] = ContextVar("_held_back")


def memory_service(connection: Connection) -> VertexAiMemoryBankService:
    """The memory bank that a connection names; entry point of the group ``adk_airflow.memory``.

    Args:
        connection: Of type ``google_genai_vertex``, its extra ``agent_engine`` an id or a full resource name; the latter says
            project and location itself, since models are often served from ``global`` and agent engines never are.

    Raises:
        GoogleGenAIConnectionError: The connection lacks something.
        ImportError: ``google-cloud-agentplatform`` is not installed (extra ``memory`` of this package); ADK says so.
    """
    account = read_account(connection)
    if not account.vertex:
        raise GoogleGenAIConnectionError(account.conn_id, f"only connections of type {VERTEX!r} have a memory bank.")
    engine = str(read_extra(connection).get("agent_engine") or "").strip()
    found = _RESOURCE.fullmatch(engine)
    if found:
        return ConnectionMemoryBankService(account, found["project"], found["location"], found["id"])
    if not _ID.fullmatch(engine):
        wrong = f"{engine!r} is no agent engine" if engine else "it names no agent engine"
        raise GoogleGenAIConnectionError(
            account.conn_id,
            f"{wrong}. Its field Agent engine (extra: agent_engine) takes an id, or"
            " projects/.../locations/.../reasoningEngines/...",
        )
    if account.location == DEFAULT_LOCATION:
        raise GoogleGenAIConnectionError(
            account.conn_id,
            "agent engines have a region, and its location is global. Give the agent engine by its full name:"
            " projects/.../locations/.../reasoningEngines/...",
        )
    return ConnectionMemoryBankService(account, str(account.project), str(account.location), engine)


class ConnectionMemoryBankService(VertexAiMemoryBankService):
    """ADK's service with two differences: credentials and address are the connection's alone, and what is written is
    waited for. ADK's own sends events in the background, and a task would end before they are sent.

    Args:
        account: Of the connection.
        project: Of the agent engine.
        location: Of the agent engine.
        agent_engine_id: Such as ``456``.
    """

    def __init__(self, account: Account, project: str, location: str, agent_engine_id: str) -> None:
        super().__init__(project=project, location=location, agent_engine_id=agent_engine_id, credentials=account.credentials)
        self._account = account

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        return await self._guarded(super().search_memory(app_name=app_name, user_id=user_id, query=query))

    async def add_session_to_memory(self, session: Session) -> None:
        await self._guarded(self._written(super().add_session_to_memory(session)))

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        adding = super().add_events_to_memory(
            app_name=app_name, user_id=user_id, events=events, session_id=session_id, custom_metadata=custom_metadata
        )
        await self._guarded(self._written(adding))

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        adding = super().add_memory(app_name=app_name, user_id=user_id, memories=memories, custom_metadata=custom_metadata)
        await self._guarded(adding)

    def _build_api_client(self) -> Any:
        """Where ADK lets subclasses set credentials and address.

        ADK's own would prefer a GOOGLE_API_KEY of the environment, if GOOGLE_GENAI_USE_ENTERPRISE is set there.
        """
        options = {"base_url": self._account.base_url} if self._account.base_url else None
        client = import_module("agentplatform").Client(  # untyped, and installed with the extra `memory` only
            project=self._project, location=self._location, credentials=self._account.credentials, http_options=options
        )
        return _HoldingClient(client.aio)

    async def _written(self, adding: Awaitable[None]) -> None:
        writes: list[Callable[[], Awaitable[Any]]] = []
        token = _held_back.set(writes)
        try:
            await adding
        finally:
            _held_back.reset(token)
        for write in writes:
            await write()

    async def _guarded(self, call: Awaitable[T]) -> T:
        try:
            return await call
        except Exception as error:
            refusal = self._account.refusal(error)
            if refusal is None:
                raise
        raise refusal  # outside of the handler: see Account.refusal


class _HoldingClient:
    """The client as ADK's service uses it, except that background writes are held back for ``_written`` to send."""

    def __init__(self, client: Any) -> None:
        self.memory_banks = _HoldingMemoryBanks(client.memory_banks)
        self._client = client  # closes its connections when it is collected


class _HoldingMemoryBanks:
    def __init__(self, memory_banks: Any) -> None:
        self.memories = memory_banks.memories
        self._memory_banks = memory_banks

    def ingest_events(self, **request: Any) -> Awaitable[None]:
        """What ADK runs in the background: nothing."""
        _held_back.get().append(partial(self._memory_banks.ingest_events, **request))
        return asyncio.sleep(0)
