"""The retrieval tool in ADK: asked by a model, and as a fixed node of a graph."""

from __future__ import annotations

import asyncio
import json

import pytest
from adk_airflow_llama_index import IndexNotFoundError, IndexRetrieval, refresh_index
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.workflow import START, Workflow, node
from google.genai import types


@pytest.fixture
def location(documents, tmp_path):
    return refresh_index(documents, tmp_path / "index").location


class LibrarianLlm(BaseLlm):
    """Searches for what the user said with the arguments it was made with, then tells what it was given."""

    model: str = "librarian"
    arguments: dict = {}

    async def generate_content_async(self, llm_request, stream=False):
        parts = [part for content in llm_request.contents for part in content.parts or []]
        answers = [part.function_response.response for part in parts if part.function_response]
        if answers:
            part = types.Part(text=json.dumps(answers[-1]))
        else:
            call = types.FunctionCall(id="call-1", name="search_documents", args=self.arguments)
            part = types.Part(function_call=call)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def run(root, state=None, message="go"):
    """The events of one run of a workflow or agent in a fresh session."""

    async def collect():
        node_or_agent = {"node": root} if isinstance(root, Workflow) else {"agent": root}
        runner = InMemoryRunner(**node_or_agent, app_name="tests")
        session = await runner.session_service.create_session(app_name="tests", user_id="u", state=state or {})
        content = types.Content(role="user", parts=[types.Part(text=message)])
        return [event async for event in runner.run_async(user_id="u", session_id=session.id, new_message=content)]

    return asyncio.run(collect())


def run_node(tool, node_input, state=None, **options):
    """The output of the tool as a graph node that is given `node_input`."""

    def give():
        return node_input

    events = run(Workflow(name="ask", edges=[(START, give, node(tool, **options))]), state)
    outputs = [event.output for event in events if event.output is not None]
    return outputs[-1]


def test_an_agent_uses_it_as_it_is(location):
    llm = LibrarianLlm(arguments={"query": "cron expressions"})
    agent = LlmAgent(name="librarian", model=llm, tools=[IndexRetrieval()])
    events = run(agent, state={"index_location": location})
    answer = json.loads(events[-1].content.parts[0].text)
    assert answer["query"] == "cron expressions"
    assert [passage["document"] for passage in answer["passages"]] == ["croniter.md"]


def test_a_model_that_forgets_the_query_is_told_so(location):
    agent = LlmAgent(name="librarian", model=LibrarianLlm(arguments={"q": "cron"}), tools=[IndexRetrieval(location=location)])
    answer = json.loads(run(agent)[-1].content.parts[0].text)
    assert "mandatory input parameters are not present:\nquery" in answer["error"]


@pytest.mark.parametrize("arguments", [{}, {"query": None}, {"query": 7}, {"query": ["cron"]}])
def test_a_query_that_is_no_text_is_an_error_that_a_model_can_read(arguments):
    result = asyncio.run(IndexRetrieval().run_async(args=arguments, tool_context=None))
    assert list(result) == ["error"]


def test_the_declaration_requires_the_query():
    tool = IndexRetrieval(name="find", description="Finds it.")
    declaration = tool._get_declaration()
    assert (declaration.name, declaration.description) == ("find", "Finds it.")
    schema = declaration.parameters_json_schema or declaration.parameters.model_dump(exclude_none=True)
    assert schema["required"] == ["query"]
    assert list(schema["properties"]) == ["query"]


def test_a_fixed_node_searches_the_index_that_an_earlier_node_put_in_the_state(documents, tmp_path):
    def refresh(ctx):
        ctx.state["where"] = refresh_index(documents, tmp_path / "index").location
        return {"query": "cron expressions", "label": "ignored"}

    tool = IndexRetrieval(state_key="where")
    events = run(Workflow(name="ask", edges=[(START, refresh, node(tool))]))
    output = events[-1].output
    assert output["query"] == "cron expressions"
    (passage,) = output["passages"]
    assert (passage["document"], sorted(passage)) == ("croniter.md", ["document", "score", "text"])


@pytest.mark.parametrize("node_input", [{"query": "cron"}, "cron"])
def test_a_node_takes_arguments_or_plain_text(node_input, location):
    output = run_node(IndexRetrieval(location=location), node_input)
    assert [passage["document"] for passage in output["passages"]] == ["croniter.md"]


def test_a_parallel_worker_answers_a_list_in_its_order(location):
    questions = ["cron", "zebra", "database tables", "dates", '{"query": "pool"}']
    output = run_node(
        IndexRetrieval(), [{"query": text} for text in questions], {"index_location": location}, parallel_worker=True
    )
    assert [answer["query"] for answer in output] == questions
    assert [[passage["document"] for passage in answer["passages"]] for answer in output] == [
        ["croniter.md"],
        [],
        ["sqlalchemy.md"],
        ["pendulum.md"],
        ["guide/pools.md"],
    ]


def test_a_parallel_worker_answers_an_empty_list_with_one(location):
    assert run_node(IndexRetrieval(location=location), [], parallel_worker=True) == []


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("", "The query is blank"),
        ("zebra", "The query has no word that occurs in the 4 documents"),
        ("斑馬", "The query has no word that occurs in the 4 documents"),
        (
            "the of and",
            "The query has no word to search for: stop words, single letters or digits and punctuation are not indexed",
        ),
        ("?! a 🚀", "The query has no word to search for"),
    ],
)
def test_a_result_without_passages_says_why(query, why, location):
    output = run_node(IndexRetrieval(location=location), {"query": query})
    assert (output["query"], output["passages"]) == (query, [])
    assert output["message"].startswith(why)


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("bm25", "The query has no word that occurs"),
        ("dense", "No passage resembles the query."),
        (None, "No passage resembles the query, and it has no word that occurs"),
    ],
)
def test_a_result_without_passages_says_why_in_every_mode(mode, why, documents, tmp_path, new_embedding):
    location = refresh_index(documents, tmp_path / "index", embed_model=new_embedding()).location
    output = run_node(IndexRetrieval(location=location, embed_model=new_embedding(), mode=mode), {"query": "zebra"})
    assert output["passages"] == []
    assert output["message"].startswith(why)


def test_a_result_with_passages_has_no_message(location):
    assert sorted(run_node(IndexRetrieval(location=location), "cron")) == ["passages", "query"]


def test_top_k_and_mode_are_those_of_the_search(location):
    many = run_node(IndexRetrieval(location=location, mode="bm25"), {"query": "cron task date database"})
    one = run_node(IndexRetrieval(location=location, top_k=1), {"query": "cron task date database"})
    assert len(many["passages"]) == 4
    assert one["passages"] == many["passages"][:1]


def test_an_embedding_model_can_be_given(documents, tmp_path, new_embedding):
    location = refresh_index(documents, tmp_path / "index", embed_model=new_embedding()).location
    tool = IndexRetrieval(location=location, embed_model=new_embedding(), mode="dense")
    output = run_node(tool, {"query": "the cron thing"})
    assert [passage["document"] for passage in output["passages"]] == ["croniter.md"]


def test_without_a_location_the_run_fails_and_says_what_to_do():
    with pytest.raises(IndexNotFoundError, match=r"'search_documents'.*'index_location'.*run refresh_index"):
        run_node(IndexRetrieval(), {"query": "cron"})


@pytest.mark.parametrize(
    ("options", "why"), [({"top_k": 0}, "top_k is 0"), ({"mode": "sparse"}, "Unknown search mode 'sparse'")]
)
def test_what_no_search_can_mean_is_refused_when_the_tool_is_made(options, why):
    with pytest.raises(ValueError, match=why):
        IndexRetrieval(**options)


def test_making_the_tool_reads_nothing():
    assert IndexRetrieval(location="/nowhere").location == "/nowhere"
