"""What a task's page says of its node, as Markdown: docstring, signature, model, instruction, tools, sub-agents, schemas."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.adk.workflow import BaseNode

_MOST = 4000  # characters of an instruction
_MOST_FIELDS = 20


def doc_of(node: BaseNode) -> str:
    """The node in its author's words; of a parallel worker what runs for each item. Empty where there is nothing to say."""
    from adk_airflow.runtime.adk.graph import body_of

    return "\n\n".join(_parts(body_of(node)))


def of_agent(agent: Any) -> str:
    """An agent that is a task of its own."""
    return "\n\n".join(_parts(agent))


def _parts(node: Any) -> Iterator[str]:
    from adk_airflow.runtime.adk.graph import function_of

    function, tool = function_of(node), getattr(node, "tool", None)
    text = inspect.getdoc(function) if function is not None else None
    text = text or node.description or (getattr(tool, "description", None) or "")
    if text.strip():
        yield text.strip()
    if function is not None:
        yield f"`{_signature(function)}`"
    elif tool is not None:
        yield f"**Tool** `{tool.name}` ({type(tool).__name__})"
    elif hasattr(node, "instruction"):
        yield from _of_llm_agent(node)
    if sub_agents := getattr(node, "sub_agents", None):
        yield f"**Sub-agents** {', '.join(f'`{agent.name}`' for agent in sub_agents)}"
    if function is None:
        for name in ("input_schema", "output_schema"):
            if (schema := getattr(node, name, None)) is not None:
                yield f"**{name.partition('_')[0].capitalize()}** {_schema(schema)}"


def _of_llm_agent(agent: Any) -> Iterator[str]:
    model = agent.model if isinstance(agent.model, str) else getattr(agent.model, "model", None) or type(agent.model).__name__
    if model:
        yield f"**Model** `{model}`"
    instruction = agent.instruction
    if callable(instruction):
        yield f"**Instruction** made at run time by `{getattr(instruction, '__name__', type(instruction).__name__)}`"
    elif instruction:
        text = instruction if len(instruction) <= _MOST else f"{instruction[: _MOST - 1]}…"
        yield f"**Instruction**\n\n{_fenced(inspect.cleandoc(text))}"
    if agent.tools:
        yield "**Tools**\n\n" + "\n".join(map(_tool, agent.tools))


def _tool(tool: Any) -> str:
    """A line for one of an agent's tools; a toolset has its tools at run time only."""
    name = getattr(tool, "name", None) or getattr(tool, "__name__", None) or type(tool).__name__
    said = getattr(tool, "description", None) or (inspect.getdoc(tool) if inspect.isroutine(tool) else "") or ""
    return f"* `{name}`" + (f": {said.strip().splitlines()[0]}" if said.strip() else "")


def _signature(function: Any) -> str:
    name = getattr(function, "__name__", type(function).__name__)
    try:
        return f"{name}{inspect.signature(function)}".replace("`", "'")
    except (TypeError, ValueError):
        return f"{name}(...)"


def _schema(schema: Any) -> str:
    fields = getattr(schema, "model_fields", None)
    name = getattr(schema, "__name__", None) or re.sub(r"\s+", " ", str(schema))[:100]
    if not isinstance(fields, dict):
        return f"`{name}`"
    shown = ", ".join(f"`{field}`" for field in list(fields)[:_MOST_FIELDS])
    return f"`{name}`: {shown}" + (", ..." if len(fields) > _MOST_FIELDS else "")


def _fenced(text: str) -> str:
    """The text as it is, whatever Markdown is in it."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}"
