"""Looks at a customer's orders in a database that an MCP Toolbox server guards: an ADK workflow.

    START ── find_orders ── summarize ─┬─ large: reviewer
             (a tool, no model)        └─ default: accept

`find_orders` is one tool of the server as a fixed step; `reviewer` is an agent that may use all tools of the toolset
`reading`. Both take the server from the Airflow connection `shop_toolbox`, in the task that needs it.

Parameters are read from the session's state: `customer`, and `limit`, the total from which an agent looks at the orders.
The server's side is in `toolbox_query.yaml` here.
"""

from __future__ import annotations

import json
from typing import Any

from adk_airflow_toolbox import ConnectionToolboxToolset
from google.adk import Event
from google.adk.agents import LlmAgent
from google.adk.workflow import DEFAULT_ROUTE, START, Workflow, node

CONN_ID = "shop_toolbox"
shop = ConnectionToolboxToolset(CONN_ID, toolset_name="reading")


def rows_of(answer: str) -> list[dict[str, Any]]:
    """The rows that a SQL tool gave: Toolbox answers `null` for none, an object for one, a list for several."""
    rows = json.loads(answer)
    if rows is None:
        return []
    return rows if isinstance(rows, list) else [rows]


def summarize(node_input: str, customer: str, limit: float = 100.0) -> Event:
    """Outputs how much the customer ordered; the route is `large` when that is at least `limit`."""
    rows = rows_of(node_input)
    total = sum(row["total"] for row in rows)
    summary = {"customer": customer, "orders": len(rows), "total": total}
    return Event(output=summary, route="large" if total >= limit else "small")


def accept(node_input: dict[str, Any]) -> str:
    """Nobody needs to look."""
    return f"{node_input['customer']}: {node_input['orders']} orders of {node_input['total']:.2f} in all, accepted."


reviewer = LlmAgent(
    name="reviewer",
    model="gemini-2.5-flash",
    instruction=(
        "You are given a summary of a customer's orders. Compare it with the customer's orders above half of that total, and"
        " say in one sentence whether a person should look at them."
    ),
    tools=[shop],
)

find_orders = node(shop.tool("orders_of_customer", name="find_orders"))

root_agent = Workflow(
    name="toolbox_query",
    edges=[(START, find_orders, summarize, {"large": reviewer, DEFAULT_ROUTE: accept})],
)
