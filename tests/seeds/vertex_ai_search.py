"""Seed 000, section 4: agents whose model searches in Vertex AI Search."""

from __future__ import annotations

from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.readonly_context import ReadonlyContext
from google.adk.tools.vertex_ai_search_tool import VertexAiSearchTool
from google.genai import types

MODEL = "gemini-2.5-flash"
_COLLECTION = "projects/my-project/locations/global/collections/default_collection"


def store(name: str) -> str:
    return f"{_COLLECTION}/dataStores/{name}"


ENGINE = f"{_COLLECTION}/engines/my-search-engine"

doc_search_agent = LlmAgent(
    name="doc_search_agent",
    model=MODEL,
    instruction="Answer from the product documentation.",
    tools=[VertexAiSearchTool(data_store_id=store("my-docs-store"))],
)

multi_store_agent = LlmAgent(
    name="multi_store_agent",
    model=MODEL,
    instruction="Search the knowledge bases and the catalogue.",
    tools=[
        VertexAiSearchTool(
            search_engine_id=ENGINE,
            data_store_specs=[
                types.VertexAISearchDataStoreSpec(data_store=store("store-a")),
                types.VertexAISearchDataStoreSpec(data_store=store("store-b")),
            ],
            max_results=10,
        )
    ],
)

filtered_search_agent = LlmAgent(
    name="filtered_search_agent",
    model=MODEL,
    instruction="Use public articles only.",
    tools=[
        VertexAiSearchTool(
            data_store_id=store("articles-store"), filter='category: "public" AND publish_year >= 2025', max_results=5
        )
    ],
)


class UserScopedSearchTool(VertexAiSearchTool):
    """Finds what belongs to the user that the session state names."""

    def _build_vertex_ai_search_config(self, readonly_context: ReadonlyContext) -> types.VertexAISearch:
        owner = readonly_context.state.get("user_id", "anonymous")
        return types.VertexAISearch(datastore=self.data_store_id, filter=f'owner_id = "{owner}"', max_results=self.max_results)


personal_doc_agent = LlmAgent(
    name="personal_doc_agent",
    model=MODEL,
    instruction="Search the documents of this user.",
    tools=[UserScopedSearchTool(data_store_id=store("user-docs"), max_results=5)],
)


async def lookup_metadata(doc_id: str) -> dict[str, str]:
    """Look up who wrote a document.

    Args:
        doc_id: The document.
    """
    return {"doc_id": doc_id, "author": "Alice", "version": "3.1"}


def hybrid_agent(model: str, bypass: bool) -> LlmAgent:
    return LlmAgent(
        name="hybrid_agent",
        model=model,
        instruction="Search for documents, then call lookup_metadata.",
        tools=[VertexAiSearchTool(data_store_id=store("my-store"), bypass_multi_tools_limit=bypass), lookup_metadata],
    )
