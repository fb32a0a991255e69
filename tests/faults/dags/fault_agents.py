"""Agents that make several calls, as a task of their own and as nodes (airflow)."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, Param
from fault_calls import begin, end, round_of
from google.adk.agents import Agent
from google.adk.tools import ToolContext
from google.adk.workflow import JoinNode, Workflow

from adk_airflow import AdkAgentOperator, AdkDag

RETRIES = {"retries": 12, "retry_delay": timedelta(seconds=0.1)}
PARAMS = {"case": Param("none"), "input": Param("Look all numbers up.")}


def look_up(number: int, tool_context: ToolContext) -> dict[str, int]:
    """Looks a number up, which costs something."""
    case, line = tool_context.state["case"], tool_context.agent_name
    begin(case, line, f"T{number}")
    tool_context.state[f"{line}_{number}"] = number * 7
    end(case, line, f"T{number}")
    return {"value": number * 7 + 100 * round_of(case)}


def agent(name: str, steps: int) -> Agent:
    return Agent(
        name=name,
        model="gemini-2.5-flash",
        instruction=f"case={{case}} line={name} steps={steps}",
        tools=[look_up],
    )


with DAG("fault_agent", schedule=None, params=PARAMS, default_args=RETRIES) as agent_dag:
    AdkAgentOperator(task_id="ask", agent=agent("alone", 5), prompt="{{ params.input }}")

node_dag = AdkDag(
    Workflow(name="node", edges=[("START", agent("as_node", 5))]),
    dag_id="fault_agent_node",
    schedule=None,
    params=PARAMS,
    default_args=RETRIES,
)

left, right, both = agent("left", 3), agent("right", 3), JoinNode(name="both")
pair_dag = AdkDag(
    Workflow(name="pair", edges=[("START", (left, right), both)]),
    dag_id="fault_pair",
    mode="embedded",
    schedule=None,
    params=PARAMS,
    default_args=RETRIES,
)

one, two = agent("one", 1), agent("two", 1)
chain_dag = AdkDag(
    Workflow(name="chain", edges=[("START", one, two)]),
    dag_id="fault_chain",
    schedule=None,
    params=PARAMS,
    default_args=RETRIES,
)
