"""An ADK agent with Airflow's own SQL tools: the provider ``common-ai`` gives them to any ADK agent.

Its ``HookToolset`` and ``ObjectStorageToolset`` reach an agent in the same way. The connection is read when a tool is called.
"""

from __future__ import annotations

from airflow.providers.common.ai.tools.adk import AirflowTools
from airflow.providers.common.ai.toolsets.sql import SQLToolset
from google.adk.agents.llm_agent import LlmAgent

root_agent = LlmAgent(
    name="sql_analyst",
    model="gemini-2.5-flash",
    description="Answers questions about the shop's orders.",
    instruction="Look at the schema, then answer the question with read-only queries. Name the numbers you found.",
    tools=[AirflowTools(SQLToolset(db_conn_id="shop", allowed_tables=["orders"]))],
)
