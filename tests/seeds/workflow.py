"""Seed 000, section 10: ``max_concurrency`` and the ways to write edges."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from google.adk import Event
from google.adk.agents.llm_agent import LlmAgent
from google.adk.workflow import DEFAULT_ROUTE, START, Edge, JoinNode, Workflow, node
from google.adk.workflow._graph import Graph

MODEL = "gemini-2.5-flash"


async def split(ctx: Any, node_input: str) -> AsyncGenerator[str, None]:
    yield node_input


workers = tuple(
    LlmAgent(name=f"worker_{number}", model=MODEL, instruction=f"Process task variant {number}.") for number in range(5)
)
# As the seed has it: five nodes at the end. Each gives an output, and ADK takes only one from a workflow.
bounded_fan_out = Workflow(name="bounded_fan_out", max_concurrency=2, edges=[(START, split), (split, workers)])

gather = JoinNode(name="gather")
gathered_fan_out = Workflow(
    name="gathered_fan_out",
    max_concurrency=2,
    edges=[(START, split), (split, workers), *((worker, gather) for worker in workers)],
)


async def classify_ticket(ctx: Any, node_input: str) -> AsyncGenerator[Event, None]:
    text = node_input.lower()
    billing = "invoice" in text or "payment" in text
    tech = "error" in text or "crash" in text
    yield Event(output=node_input, route="billing" if billing else "tech" if tech else "general")


async def handle_billing(ctx: Any, node_input: str) -> AsyncGenerator[str, None]:
    yield f"Billing handled: {node_input}"


async def handle_tech(ctx: Any, node_input: str) -> AsyncGenerator[str, None]:
    yield f"Tech handled: {node_input}"


async def handle_general(ctx: Any, node_input: str) -> AsyncGenerator[str, None]:
    yield f"General handled: {node_input}"


ticket_router = Workflow(
    name="ticket_router",
    edges=[
        (START, classify_ticket),
        (classify_ticket, {"billing": handle_billing, "tech": handle_tech, "general": handle_general}),
    ],
)


# The seed's spelling: without a type ADK 2.13 gives the first node the whole message instead of its text.
async def get_priority(ctx, node_input):
    score = len(str(node_input))
    yield Event(output=node_input, route="high" if score > 100 else "medium" if score > 50 else "low")


async def get_text_priority(ctx: Any, node_input: str) -> AsyncGenerator[Event, None]:
    score = len(node_input)
    yield Event(output=node_input, route="high" if score > 100 else "medium" if score > 50 else "low")


async def urgent_handler(ctx, node_input):
    yield f"URGENT: {node_input}"


async def standard_handler(ctx, node_input):
    yield f"standard: {node_input}"


async def low_handler(ctx, node_input):
    yield f"low priority: {node_input}"


def _by_priority(name: str, first: Any) -> Workflow:
    return Workflow(
        name=name,
        edges=[(START, first), (first, {"high": urgent_handler, "medium": standard_handler, "low": low_handler})],
    )


priority_router = _by_priority("priority_router", get_priority)
text_priority_router = _by_priority("text_priority_router", get_text_priority)


extract = LlmAgent(name="extract", model=MODEL, instruction="Extract the named entities from the text.")
classify = LlmAgent(name="classify", model=MODEL, instruction="Classify the entities by type.")
nlp_graph = Graph.from_edge_items([(START, extract), (extract, classify)])
nlp_graph.validate_graph()
nlp_pipeline = Workflow(name="nlp_pipeline", graph=nlp_graph)


async def split_topics(ctx: Any, node_input: Any) -> AsyncGenerator[list[str], None]:
    yield ["climate change", "renewable energy", "carbon capture"]


@node(parallel_worker=True)
async def research_topic(ctx: Any, node_input: str) -> AsyncGenerator[dict[str, str], None]:
    yield {"topic": node_input, "summary": f"Summary of {node_input}"}


@node
async def collect_all(ctx: Any, node_input: list[dict[str, str]]) -> AsyncGenerator[Any, None]:
    yield node_input


async def write_report(ctx: Any, node_input: list[dict[str, str]]) -> AsyncGenerator[str, None]:
    yield "REPORT:\n" + "\n".join(f"- {item['summary']}" for item in node_input)


research_pipeline = Workflow(
    name="research_pipeline",
    max_concurrency=3,
    edges=[
        (START, split_topics),
        (split_topics, research_topic),
        (research_topic, collect_all),
        (collect_all, write_report),
    ],
)


def _show(name: str) -> Any:
    def body(node_input: Any) -> str:
        return f"{name}({node_input})"

    return node(body, name=name)


def _emit(name: str, route: Any) -> Any:
    def body(node_input: str) -> Event:
        return Event(output=node_input, route=route)

    return node(body, name=name)


_first, _last = _emit("first", None), _show("last")
_edge_to = _show("edge_to")
_routed = {name: _emit(name, route) for name, route in (("one", "a"), ("many", ["a", "b"]), ("none", "z"), ("fan", "x"))}
_join = JoinNode(name="both")

edge_patterns = {
    "chain": Workflow(name="chain", edges=[(START, _first, _show("a"), _show("b"), _last)]),
    "edge_objects": Workflow(
        name="edge_objects",
        edges=[Edge(from_node=START, to_node=_first), Edge(from_node=_first, to_node=_edge_to)],
    ),
    "routed_edge_object": Workflow(
        name="routed_edge_object",
        edges=[(START, _routed["one"]), Edge(from_node=_routed["one"], to_node=_edge_to, route="a")],
    ),
    "fan_out_and_in": Workflow(name="fan_out_and_in", edges=[(START, _first, (_show("a"), _show("b")), _join)]),
    "route_list_of_an_event": Workflow(
        name="route_list_of_an_event",
        edges=[(START, _routed["many"], {"a": _show("a"), "b": _show("b"), "c": _show("c")}, _join, _last)],
    ),
    "route_list_of_an_edge": Workflow(
        name="route_list_of_an_edge",
        edges=[(START, _routed["one"]), Edge(from_node=_routed["one"], to_node=_last, route=["a", "b"])],
    ),
    "default_route": Workflow(
        name="default_route", edges=[(START, _routed["none"], {"a": _show("a"), DEFAULT_ROUTE: _show("other")}, _last)]
    ),
    "fan_out_of_a_route": Workflow(
        name="fan_out_of_a_route",
        edges=[(START, _routed["fan"], {"x": (_show("a"), _show("b")), "y": _show("c")}), (START, _first, _show("d"))],
    ),
}
