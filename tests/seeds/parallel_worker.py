"""Seed 000, section 9: one node for every item of a list."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents.llm_agent import LlmAgent
from google.adk.workflow import START, Workflow, node
from google.adk.workflow._parallel_worker import _ParallelWorker


@node(parallel_worker=True)
async def summarise_document(ctx: Any, node_input: dict[str, str]) -> AsyncGenerator[dict[str, str], None]:
    yield {"doc_id": node_input["id"], "summary": node_input["text"][:10] + "…"}


async def produce_documents(ctx: Any, node_input: Any) -> AsyncGenerator[list[dict[str, str]], None]:
    yield [{"id": f"doc{number}", "text": f"Document {number} is long. " * 20} for number in (1, 2, 3)]


batch_summariser = Workflow(
    name="batch_summariser", edges=[(START, produce_documents), (produce_documents, summarise_document)]
)


running: list[int] = [0, 0]
"""How many calls of the API overlap now, and the most that ever did."""


@node
async def call_rate_limited_api(ctx: Any, node_input: int) -> AsyncGenerator[dict[str, Any], None]:
    running[0] += 1
    running[1] = max(running)
    await asyncio.sleep(0.02)
    running[0] -= 1
    yield {"input": node_input, "result": f"processed_{node_input}"}


async def produce_ids(ctx: Any, node_input: Any) -> AsyncGenerator[list[int], None]:
    yield list(range(10))


throttled_pipeline = Workflow(
    name="throttled_pipeline",
    edges=[
        (START, produce_ids),
        (produce_ids, _ParallelWorker(node=call_rate_limited_api, max_parallel_workers=3)),
    ],
)
decorated_throttle = Workflow(
    name="decorated_throttle",
    edges=[
        (START, produce_ids),
        (produce_ids, node(call_rate_limited_api, parallel_worker=True, max_parallel_workers=3)),
    ],
)


translate = LlmAgent(
    name="translate",
    model="gemini-2.5-flash",
    instruction="Translate the text to the language that is named with it.",
)


async def prepare_translations(ctx: Any, node_input: str) -> AsyncGenerator[list[dict[str, str]], None]:
    yield [{"text": node_input, "target_language": language} for language in ("French", "German", "Japanese")]


multi_lang_translate = Workflow(
    name="multi_lang_translate",
    edges=[(START, prepare_translations), (prepare_translations, node(translate, parallel_worker=True))],
)


@node(parallel_worker=True)
async def process_item(ctx: Any, node_input: Any) -> AsyncGenerator[str, None]:
    yield f"done:{node_input}"


async def send_single(ctx: Any, node_input: Any) -> AsyncGenerator[str, None]:
    yield "single_value"


single_item_workflow = Workflow(name="single_item_workflow", edges=[(START, send_single), (send_single, process_item)])


@node(parallel_worker=True)
async def unreliable_step(ctx: Any, node_input: int) -> AsyncGenerator[str, None]:
    if node_input == 2:
        raise ValueError(f"Item {node_input} failed intentionally.")
    await asyncio.sleep(0.05)
    yield f"ok:{node_input}"


async def produce_items(ctx: Any, node_input: Any) -> AsyncGenerator[list[int], None]:
    yield list(range(5))


error_propagation_demo = Workflow(
    name="error_propagation_demo", edges=[(START, produce_items), (produce_items, unreliable_step)]
)
