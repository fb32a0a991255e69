"""Seed 000, section 8: nodes made with ``node`` and ``Node``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents.llm_agent import LlmAgent
from google.adk.auth.auth_credential import AuthCredential, AuthCredentialTypes, OAuth2Auth
from google.adk.auth.auth_schemes import OpenIdConnectWithConfig
from google.adk.auth.auth_tool import AuthConfig
from google.adk.workflow import START, Node, RetryConfig, Workflow, node


@node
async def fetch_data(ctx: Any, node_input: str) -> AsyncGenerator[dict[str, Any], None]:
    yield {"topic": node_input, "records": [1, 2, 3, 4, 5]}


@node
async def process_data(ctx: Any, node_input: dict[str, Any]) -> AsyncGenerator[dict[str, int], None]:
    records = node_input["records"]
    yield {"count": len(records), "total": sum(records)}


data_pipeline = Workflow(name="data_pipeline", edges=[(START, fetch_data), (fetch_data, process_data)])


@node(
    name="flaky_api_call",
    retry_config=RetryConfig(max_attempts=3, initial_delay=0.01, backoff_factor=2.0, jitter=0.1),
    timeout=10.0,
)
async def call_external_api(ctx: Any, node_input: str) -> AsyncGenerator[Any, None]:
    """Asks the service whose address is in the session state."""
    import httpx

    async with httpx.AsyncClient() as client:
        response = await client.get(f"{ctx.state['service_url']}/data/{node_input}")
        response.raise_for_status()
        yield response.json()


resilient_pipeline = Workflow(name="resilient_pipeline", edges=[(START, call_external_api)])


@node(name="slow_api_call", timeout=0.05)
async def call_slow_api(ctx: Any, node_input: str) -> AsyncGenerator[str, None]:
    await asyncio.sleep(30)
    yield "too late"


impatient_pipeline = Workflow(name="impatient_pipeline", edges=[(START, call_slow_api)])


classifier = LlmAgent(
    name="classifier",
    model="gemini-2.5-flash",
    instruction="Say whether the text is positive, negative or neutral.",
)
sentiment_pipeline = Workflow(name="sentiment_pipeline", edges=[(START, node(classifier, name="sentiment_step", timeout=15.0))])


CALENDAR_AUTH = AuthConfig(
    auth_scheme=OpenIdConnectWithConfig(
        authorization_endpoint="https://accounts.example.com/auth",
        token_endpoint="https://accounts.example.com/token",
        scopes=["calendar.readonly"],
    ),
    raw_auth_credential=AuthCredential(
        auth_type=AuthCredentialTypes.OPEN_ID_CONNECT,
        oauth2=OAuth2Auth(client_id="the-client", client_secret="the-client-secret"),
    ),
)


@node(rerun_on_resume=True, auth_config=CALENDAR_AUTH)
async def fetch_calendar(ctx: Any, node_input: Any) -> AsyncGenerator[dict[str, Any], None]:
    credential = ctx.get_auth_response(CALENDAR_AUTH)
    yield {"status": "auth_pending"} if credential is None else {"events": [], "status": "fetched"}


calendar_workflow = Workflow(name="calendar_workflow", edges=[(START, fetch_calendar)])


class EnrichRecord(Node):
    """Adds to one record; ADK runs it once per record of a list."""

    parallel_worker: bool = True

    async def run_node_impl(self, *, ctx: Any, node_input: Any) -> AsyncGenerator[Any, None]:
        yield {**node_input, "enriched": True, "score": len(str(node_input))}


async def produce_records(ctx: Any, node_input: Any) -> AsyncGenerator[list[dict[str, int]], None]:
    yield [{"id": number, "value": number * 10} for number in range(5)]


enrich_records = EnrichRecord(name="enrich_records")
batch_enrich = Workflow(name="batch_enrich", edges=[(START, produce_records), (produce_records, enrich_records)])
