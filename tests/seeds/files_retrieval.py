"""Seed 000, section 5: agents that search a folder of files."""

from __future__ import annotations

from typing import Any

from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.retrieval.files_retrieval import FilesRetrieval
from google.adk.workflow import START, Workflow, node

MODEL = "gemini-2.5-flash"


def docs_agent(folder: str) -> LlmAgent:
    """Reads and embeds the whole folder, as everything here does that makes a FilesRetrieval."""
    search_docs = FilesRetrieval(name="search_docs", description="Search the documentation files.", input_dir=folder)
    return LlmAgent(
        name="docs_agent", model=MODEL, instruction="Always call search_docs before you answer.", tools=[search_docs]
    )


def policy_agent(folder: str) -> LlmAgent:
    from llama_index.embeddings.google_genai import GoogleGenAIEmbedding

    embedding = GoogleGenAIEmbedding(model_name="text-embedding-005", embed_batch_size=10)
    policy_search = FilesRetrieval(
        name="policy_search", description="Search policy documents.", input_dir=folder, embedding_model=embedding
    )
    return LlmAgent(name="policy_agent", model=MODEL, instruction="Search the policies.", tools=[policy_search])


def knowledge_agent(legal: str, technical: str) -> LlmAgent:
    folders = {"legal": legal, "technical": technical}
    tools: list[Any] = [
        FilesRetrieval(name=f"search_{topic}", description=f"Search {topic} documents.", input_dir=folder)
        for topic, folder in folders.items()
    ]
    return LlmAgent(
        name="knowledge_agent",
        model=MODEL,
        instruction="Use search_legal for contracts and search_technical for engineering.",
        tools=tools,
    )


@node(rerun_on_resume=True)
async def ask_when_needed(ctx: Any, node_input: str) -> Any:
    """The seed's lazy pattern: the folder is read when the node runs, not when the DAG file is parsed."""
    return await ctx.run_node(docs_agent(ctx.state["docs_dir"]), node_input)


lazy_retrieval = Workflow(name="lazy_retrieval", edges=[(START, ask_when_needed)])
