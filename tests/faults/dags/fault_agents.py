"""Agents that make several calls, as a task of their own and as nodes (airflow)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param
from fault_calls import begin, end, round_of
from google.adk.agents import Agent
from google.adk.tools import ToolContext
from google.adk.workflow import JoinNode, Workflow
from google.genai import types

from adk_airflow import AdkAgentOperator, AdkDag

COMMON: dict[str, Any] = {
    "schedule": None,
    "params": {"case": Param("none"), "input": Param("Look all numbers up.")},
    "default_args": {"retries": 12, "retry_delay": timedelta(seconds=0.1)},
}


def look_up(number: int, line: str, tool_context: ToolContext) -> dict[str, int]:
    """Looks a number up, which costs something."""
    case = tool_context.state["case"]
    begin(case, line, f"T{number}")
    tool_context.state[f"{line}_{number}"] = number * 7
    end(case, line, f"T{number}")
    return {"value": number * 7 + 100 * round_of(case)}


def agent(name: str, steps: int, **options: Any) -> Agent:
    instruction = f"case={{case}} line={name} plan={','.join(f'T{at}' for at in range(1, steps + 1))}"
    return Agent(name=name, model="gemini-2.5-flash", instruction=instruction, tools=[look_up], **options)


def asking(dag_id: str, asked: Agent, **options: Any) -> DAG:
    """A DAG of one task, which asks the agent."""
    with DAG(dag_id, **{**COMMON, **options}) as dag:
        AdkAgentOperator(task_id="ask", agent=asked, prompt="{{ params.input }}")
    return dag


agent_dag = asking("fault_agent", agent("alone", 5))
impatient = agent("alone", 5, generate_content_config=types.GenerateContentConfig(http_options=types.HttpOptions(timeout=3000)))
patient_dag = asking("fault_answers", impatient, default_args={"retries": 8, "retry_delay": timedelta(seconds=5)})

for most in (4, 6):
    spends: dict[str, Any] = {**COMMON["default_args"], "max_llm_calls": most}
    globals()[f"budget_{most}_dag"] = asking(f"fault_budget_{most}", agent("alone", 5), default_args=spends)
    spends_afresh = {**spends, "durable": False}
    globals()[f"afresh_{most}_dag"] = asking(f"fault_budget_afresh_{most}", agent("alone", 5), default_args=spends_afresh)

as_node = Workflow(name="node", edges=[("START", agent("as_node", 5))])
node_dag = AdkDag(as_node, dag_id="fault_agent_node", **COMMON)
twin_dag = AdkDag(as_node, dag_id="fault_agent_twin", **COMMON)

left, right = agent("left", 3), agent("right", 3)
pair = Workflow(name="pair", edges=[("START", (left, right), JoinNode(name="both"))])
pair_dag = AdkDag(pair, dag_id="fault_pair", mode="embedded", **COMMON)

chain = Workflow(name="chain", edges=[("START", agent("one", 1), agent("two", 1))])
chain_dag = AdkDag(chain, dag_id="fault_chain", **COMMON)
frugal_dag = AdkDag(chain, dag_id="fault_budget_chain", max_llm_calls=4, **COMMON)
frugal_dag_3 = AdkDag(chain, dag_id="fault_budget_chain_3", max_llm_calls=3, **COMMON)

with DAG("fault_two_tasks", **COMMON) as two_tasks_dag:
    for name in ("one", "two"):
        AdkAgentOperator(task_id=name, agent=agent(name, 1), prompt="{{ params.input }}")


def backfilled(dag_id: str) -> DAG:
    """A DAG whose runs are cases of their own, by their dates."""
    with DAG(dag_id, **{**COMMON, "schedule": "@daily"}, catchup=False) as dag:
        AdkAgentOperator(
            task_id="ask", agent=agent("alone", 2), prompt="{{ params.input }}", state={"case": dag_id + "-{{ ds }}"}
        )
    return dag


backfills = [backfilled(f"fault_backfill_{name}") for name in ("a", "b", "c")]
