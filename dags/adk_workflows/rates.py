"""ADK tools that convert amounts of money; an agent could use them as they are."""

from __future__ import annotations

from typing import Any

RATES = {"EUR": 1.0, "USD": 1.08, "JPY": 169.0}
"""How much of a currency one euro is."""


def convert(amount: float, source: str, target: str, tool_context: Any) -> dict[str, Any]:
    """Converts an amount of money.

    Args:
        amount: How much.
        source: Currency that it is in, such as EUR.
        target: Currency that it shall be in.
    """
    if unknown := {source, target} - RATES.keys():
        return {"error": f"no rate for {', '.join(sorted(unknown))}"}
    converted = round(amount / RATES[source] * RATES[target], 2)
    tool_context.state["converted"] = [*tool_context.state.get("converted", []), f"{amount} {source}"]
    return {"amount": converted, "currency": target}
