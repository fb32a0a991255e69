"""What each shape of a workflow becomes: the table in docs/translation.md, line by line."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from google.adk import Event, Workflow
from google.adk.workflow import DEFAULT_ROUTE, JoinNode, RetryConfig, node

from adk_airflow import Plan, plan_workflow
from adk_airflow.errors import NodeOverrideError, UnsupportedWorkflowError, WorkflowLoadError


def step(name: str, **kwargs: Any) -> Any:
    def body(node_input: Any) -> Any:
        """Does one thing.

        And says more here.
        """
        return node_input

    return node(body, name=name, **kwargs)


def plan(*edges: Any, name: str = "wf", nodes: Any = None, mode: str = "tasks", **kwargs: Any) -> Plan:
    return plan_workflow(Workflow(name=name, edges=list(edges), **kwargs), nodes=nodes, mode=mode)


def rules(made: Plan) -> dict[str, tuple[str, list[str]]]:
    return {task.task_id: (task.trigger_rule, [up.task_id for up in task.upstream]) for task in made.tasks}


def test_a_chain_waits_for_the_node_before() -> None:
    a, b = step("a"), step("b")

    assert rules(plan(("START", a, b))) == {"a": ("all_success", []), "b": ("all_success", ["a"])}


def test_a_join_waits_for_all_its_predecessors() -> None:
    made = plan(("START", (step("a"), step("b")), JoinNode(name="join")))

    assert rules(made)["join"] == ("none_failed_min_one_success", ["a", "b"])


def test_a_node_with_several_predecessors_runs_when_one_of_them_did() -> None:
    made = plan(("START", (step("a"), step("b")), step("sink")))

    assert rules(made)["sink"] == ("none_failed_min_one_success", ["a", "b"])


def test_a_node_that_start_triggers_too_runs_even_when_the_others_were_skipped() -> None:
    sink, a = step("sink"), step("a")
    made = plan(("START", a, sink), ("START", sink))

    assert rules(made)["sink"] == ("none_failed", ["a"])
    assert next(task for task in made.tasks if task.task_id == "sink").starts


def test_routes_are_the_labels_of_the_arrows() -> None:
    r, a, b = step("r"), step("a"), step("b")
    made = plan(("START", r, {"x": a, True: a, DEFAULT_ROUTE: b}))
    labels = {task.task_id: task.upstream[0].label for task in made.tasks if task.upstream and task.kind == "node"}

    assert labels == {"a": "x, True", "b": "default"}


def test_a_parallel_worker_becomes_three_tasks_in_a_group() -> None:
    made = plan(("START", step("list"), step("each", parallel_worker=True, max_parallel_workers=3), step("after")))

    assert rules(made) == {
        "list": ("all_success", []),
        "each.items": ("all_success", ["list"]),
        "each.run": ("all_success", ["each.items"]),
        "each.collect": ("none_failed_min_one_success", ["each.items", "each.run"]),
        "after": ("all_success", ["each.collect"]),
    }
    assert next(task for task in made.tasks if task.task_id == "each.run").max_active == 3
    assert (made.first_tasks["each"], made.output_tasks["each"]) == ("each.items", "each.collect")


def test_a_worker_whose_retry_covers_the_whole_list_runs_in_one_task() -> None:
    from google.adk.workflow._parallel_worker import _ParallelWorker

    worker = _ParallelWorker(node=step("each"), retry_config=RetryConfig(max_attempts=2))
    task = plan(("START", worker)).tasks[0]

    assert (task.task_id, task.kind) == ("each", "node")
    assert "covers the whole list" in task.why


def test_a_retry_per_item_keeps_the_mapped_tasks() -> None:
    made = plan(("START", step("each", parallel_worker=True, retry_config=RetryConfig(max_attempts=2))))

    assert [task.task_id for task in made.tasks] == ["each.items", "each.run", "each.collect"]


def test_a_nested_workflow_becomes_a_task_group_with_an_input_and_an_output() -> None:
    inner = Workflow(name="inner", edges=[("START", step("a"), step("input"))])
    made = plan(("START", step("first"), inner, step("last")))

    assert rules(made) == {
        "first": ("all_success", []),
        "inner.input_": ("all_success", ["first"]),
        "inner.a": ("all_success", ["inner.input_"]),
        "inner.input": ("all_success", ["inner.a"]),
        "inner.output": ("none_failed_min_one_success", ["inner.input_", "inner.input"]),
        "last": ("all_success", ["inner.output"]),
    }
    assert made.output_tasks["inner"] == "inner.output"
    assert made.output_tasks["inner/a"] == "inner.a"


@pytest.mark.parametrize(
    ("inner", "reason"),
    [
        ({"retry_config": RetryConfig(max_attempts=2)}, "has a retry_config or timeout of its own"),
        ({"max_concurrency": 1}, "has a max_concurrency of its own"),
        ({}, "may run several times"),
    ],
)
def test_a_nested_workflow_that_cannot_be_taken_apart_runs_in_one_task_and_says_why(inner: Any, reason: str) -> None:
    nested = Workflow(name="inner", edges=[("START", step("a"))], **inner)
    first = step("first") if inner else (step("one"), step("two"))
    task = next(task for task in plan(("START", first, nested)).tasks if task.task_id == "inner")

    assert (task.kind, task.node_kind) == ("node", "workflow")
    assert reason in task.why


def test_arguments_go_to_a_node_of_a_nested_workflow_by_its_path_and_to_all_of_them_by_the_workflows_name() -> None:
    inner = Workflow(name="inner", edges=[("START", step("a"), step("b"))])
    made = plan(("START", inner), nodes={"inner": {"pool": "x"}, "inner/b": {"pool": "y", "retries": 1}})
    given = {task.task_id: task.arguments for task in made.tasks}

    assert (given["inner.a"], given["inner.b"]) == ({"pool": "x"}, {"pool": "y", "retries": 1})


def test_the_result_is_the_terminal_node_where_there_is_one() -> None:
    assert plan(("START", step("a"), step("b"))).result == "b"


@pytest.mark.parametrize("schema", [None, dict])
def test_several_terminals_or_an_output_schema_get_a_result_task(schema: Any) -> None:
    edges = ("START", (step("a"), step("b"))) if schema is None else ("START", step("a"))
    made = plan(edges, output_schema=schema)

    assert made.result == "workflow_result"
    assert made.tasks[-1].kind == "result"


def test_a_node_named_like_the_result_task_keeps_its_name() -> None:
    made = plan(("START", (step("workflow_result"), step("b"))))

    assert "workflow_result" in made.output_tasks
    assert made.result == "workflow_result_"


def test_max_concurrency_limits_the_run() -> None:
    assert plan(("START", step("a")), max_concurrency=4).max_active_tasks == 4
    assert plan(("START", step("a")), max_concurrency=0).max_active_tasks is None


def test_a_loop_becomes_one_task_between_the_others() -> None:
    a, b = step("a"), step("b")
    made = plan(("START", step("first"), a, b), (b, {"again": a, "done": step("end")}))
    loop = next(task for task in made.tasks if task.kind == "region")

    assert rules(made) == {
        "first": ("all_success", []),
        "a_loop": ("all_success", ["first"]),
        "end": ("all_success", ["a_loop"]),
    }
    assert loop.nodes == ("a", "b")
    assert "a loop: ADK's own engine runs a, b together" in loop.why
    assert next(task for task in made.tasks if task.task_id == "end").upstream[0].label == "done"


def test_a_node_that_triggers_itself_is_a_loop() -> None:
    a = step("a")
    made = plan(("START", a, {"again": a}))

    assert [task.task_id for task in made.tasks] == ["a_loop", "workflow_result"]
    assert "no node is terminal" in made.tasks[-1].why


def test_neighbours_that_are_embedded_share_a_task_with_what_lies_between() -> None:
    a, b, c, d = (step(name) for name in "abcd")
    made = plan(("START", a, b, c, d), (a, c), nodes={"a": {"mode": "embedded"}, "c": {"mode": "embedded"}})

    assert [(task.task_id, task.nodes) for task in made.tasks] == [("a_region", ("a", "b", "c")), ("d", ())]


def test_two_loops_are_two_tasks() -> None:
    a, b = step("a"), step("b")
    made = plan(("START", a, {"again": a, "on": b}), (b, {"again": b}))

    assert [task.task_id for task in made.tasks if task.kind == "region"] == ["a_loop", "b_loop"]


def test_arguments_of_a_regions_nodes_are_gathered_and_must_not_differ() -> None:
    a, b = step("a"), step("b")
    edges = (("START", a, b), (b, {"again": a}))
    made = plan(*edges, nodes={"a": {"pool": "x", "max_iterations": 3}, "b": {"retries": 1}})

    assert made.tasks[0].arguments == {"pool": "x", "max_iterations": {"a": 3}, "retries": 1}
    with pytest.raises(NodeOverrideError, match="a, b run in one task, but 'pool' was given as 'x' and, for 'b', as 'y'"):
        plan(*edges, nodes={"a": {"pool": "x"}, "b": {"pool": "y"}})


class OwnWay(Workflow):
    async def _run_impl(self, *, ctx: Any, node_input: Any) -> Any:
        yield node_input


def test_a_workflow_class_that_runs_its_graph_in_its_own_way_is_refused_as_tasks() -> None:
    with pytest.raises(UnsupportedWorkflowError, match="is of the class OwnWay, which runs its graph in its own way"):
        plan_workflow(OwnWay(name="wf", edges=[("START", step("a"))]))


def test_a_node_that_several_tasks_may_trigger_is_announced() -> None:
    def warned(*edges: Any) -> set[str]:
        return {text.split(":")[0] for text in plan(*edges).warnings}

    r, a, b = step("r"), step("a"), step("b")

    assert "run-order" in warned(("START", (step("a"), step("b")), step("sink")))
    assert "run-order" not in warned(("START", r, {"x": a, DEFAULT_ROUTE: b}), ((a, b), step("sink")))
    assert "run-order" not in warned(("START", step("a"), step("b")))


def test_a_task_after_a_loop_that_adk_would_run_beside_it_is_announced() -> None:
    def warned(*edges: Any, **nodes: Any) -> set[str]:
        return {text.split(":")[0] for text in plan(*edges, nodes=nodes).warnings}

    a, b, c, log, end = (step(name) for name in ("a", "b", "c", "log", "end"))
    beside = {"state-between-branches", "no-cancel-on-failure"}
    embedded = {"mode": "embedded"}

    assert warned(("START", a, b, {"again": a, "done": end})) == set()
    assert warned(("START", a, {"again": a}), (a, log)) == beside
    assert warned(("START", a, b, {"again": a}), (a, log)) == beside
    assert warned(("START", a, {"go": b}), (b, a), (b, {"done": log})) == beside
    assert warned(("START", a, (b, c)), (b, {"again": a, "done": end}), (c, {"again": a})) == beside
    assert warned(("START", a, b, end), a=embedded, b=embedded) == set()
    assert warned(("START", a, b), (a, log), a=embedded, b=embedded) == beside


def test_a_join_behind_nodes_that_may_repeat_is_announced() -> None:
    c, d, join = step("c"), step("d"), JoinNode(name="join")
    made = plan(("START", (step("a"), step("b")), c, join), ("START", d, join))

    assert any(text.startswith("join-pairing: node 'join'") for text in made.warnings)
    assert not any(
        text.startswith("join-pairing") for text in plan(("START", (step("a"), step("b")), JoinNode(name="j"))).warnings
    )


def test_embedded_mode_is_one_task_loops_and_all() -> None:
    a = step("a")
    made = plan(("START", a, {"again": a}), mode="embedded")

    assert [(task.task_id, task.kind) for task in made.tasks] == [("wf", "workflow")]


def test_a_retry_of_the_whole_workflow_is_refused_as_tasks() -> None:
    with pytest.raises(UnsupportedWorkflowError, match="retry_config or timeout of its own"):
        plan(("START", step("a")), retry_config=RetryConfig(max_attempts=2))


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        ({"clasify": {}}, "has no node 'clasify'. Did you mean 'classify'"),
        ({"zzz": {}}, "has no node 'zzz'. It has: classify, each"),
        ({"classify": {"mode": "mapped"}}, "mode 'mapped' is none of embedded .this is a function"),
        ({"classify": {"batch_size": 2}}, "batch_size is for parallel workers, this is a function"),
        ({"classify": {"max_iterations": 2}}, "max_iterations is for nodes of a loop"),
        ({"classify": {"task_id": "x"}}, "task_id is decided by the translation"),
        ({"classify": None}, "takes a dict of arguments, not None"),
        ({"each": {"mode": "parallel"}}, "mode 'parallel' is none of mapped, embedded"),
        ({"each": {"batch_size": 0}}, "batch_size 0 is not an integer of 1 or more"),
        ({"each": {"batch_size": True}}, "batch_size True is not an integer"),
        ({"each": {"mode": "embedded", "batch_size": 2}}, "node 'each': batch_size is for items in tasks of their own"),
        ({"classify": {"input": "x"}}, "input is decided by the translation"),
        ({"classify": {1: 2}}, "1 is not the name of an argument"),
        ({1: {}}, "has no node 1"),
        ([("classify", {})], "nodes takes a dict of arguments by node name"),
    ],
)
def test_a_wrong_override_names_the_node_and_what_is_right(nodes: Any, says: str) -> None:
    with pytest.raises(NodeOverrideError, match=says):
        plan(("START", step("classify"), step("each", parallel_worker=True)), nodes=nodes)


@pytest.mark.parametrize(("asked", "says"), [({"mode": "mapped"}, "mode='mapped'"), ({"batch_size": 2}, "batch_size")])
def test_a_worker_in_a_loop_cannot_be_mapped(asked: Any, says: str) -> None:
    each, end = step("each", parallel_worker=True), step("end")
    with pytest.raises(NodeOverrideError, match=f"node 'each': {says} is for items in tasks of their own.*a loop"):
        plan(("START", each, end), (end, {"again": each}), nodes={"each": asked})


def test_an_argument_for_a_node_that_has_no_task_of_its_own_is_refused() -> None:
    inner = Workflow(name="inner", edges=[("START", step("a"))])
    embedded = {"mode": "embedded"}

    with pytest.raises(NodeOverrideError, match="node 'inner/a': pool is for a task, and all of 'inner' runs in one"):
        plan(("START", inner), nodes={"inner": embedded, "inner/a": {"pool": "x"}})
    assert plan(("START", inner), nodes={"inner": embedded, "inner/a": embedded}).tasks[0].task_id == "inner"


def test_limits_of_nested_loops_go_to_the_task_that_runs_them_by_path() -> None:
    def nested() -> Workflow:
        spin = step("spin")
        return Workflow(name="inner", edges=[("START", spin, {"again": spin})])

    limit = {"inner/spin": {"max_iterations": 3}}
    whole = plan(("START", nested()), nodes={**limit, "inner": {"mode": "embedded"}})
    apart = plan(("START", nested()), nodes=limit)

    assert whole.tasks[0].arguments == {"max_iterations": {"inner/spin": 3}}
    assert {task.task_id: task.arguments for task in apart.tasks}["inner.spin_loop"] == {"max_iterations": {"spin": 3}}
    assert plan(("START", nested()), mode="embedded", nodes=limit).tasks[0].arguments == {"max_iterations": {"inner/spin": 3}}


def test_arguments_per_node_are_refused_where_there_is_one_task_for_all() -> None:
    with pytest.raises(NodeOverrideError, match="mode='embedded' runs all nodes in one task"):
        plan(("START", step("a")), mode="embedded", nodes={"a": {"pool": "x"}})


def test_an_agent_that_reads_what_others_said_is_announced_unless_it_comes_first() -> None:
    from google.adk.agents import SequentialAgent

    def made() -> SequentialAgent:
        return SequentialAgent(name="seq", sub_agents=[])

    assert any(text.startswith("agent-history: agent 'seq'") for text in plan(("START", step("a"), made())).warnings)
    assert plan(("START", made())).warnings == ()


def test_a_wrong_mode_is_an_error() -> None:
    with pytest.raises(NodeOverrideError, match="mode 'task' is none of tasks, embedded"):
        plan(("START", step("a")), mode="task")


def test_parallel_branches_warn_about_shared_state_and_cancelling() -> None:
    warned = {text.split(":")[0] for text in plan(("START", (step("a"), step("b")), JoinNode(name="j"))).warnings}

    assert warned == {"state-between-branches", "no-cancel-on-failure"}
    assert plan(("START", step("a"), step("b"))).warnings == ()


def test_a_plan_is_plain_data() -> None:
    made = plan(("START", step("list"), step("each", parallel_worker=True), {"x": step("a"), DEFAULT_ROUTE: step("b")}))
    data = json.loads(made.to_json())

    assert (data["plan"], data["workflow"], data["mode"], data["result"]) == (1, made.workflow, "tasks", made.result)
    assert [task["task_id"] for task in data["tasks"]] == [task.task_id for task in made.tasks]
    assert data["tasks"][-1]["upstream"] == [vars(before) for before in made.tasks[-1].upstream]


def test_a_plan_with_arguments_that_json_does_not_know_shows_them_the_same_each_time() -> None:
    class Told:
        """Its text has an address in it."""

    given = {"on_failure_callback": step, "execution_timeout": timedelta(minutes=5), "executor_config": {"told": Told()}}
    texts = {plan(("START", step("a")), nodes={"a": given}).to_json() for _ in range(2)}

    assert len(texts) == 1
    shown = json.loads(texts.pop())["tasks"][0]["arguments"]
    assert (shown["on_failure_callback"], shown["execution_timeout"]) == ("step", "0:05:00")
    assert "0x" not in shown["executor_config"]["told"]


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (object(), "is no Workflow but a object"),
        ("nowhere", "is not of the form 'package.module:attribute'"),
        ("no_such_module_here:root_agent", "there is no module 'no_such_module_here'"),
        ("json:root_agent", "json has no attribute 'root_agent'"),
        ("json:dumps", r"'json:dumps' is a function that needs arguments \(obj\), and it is called without"),
        (Workflow(name="empty"), "workflow 'empty' has no edges"),
    ],
)
def test_what_is_no_workflow_is_named(source: Any, says: str) -> None:
    with pytest.raises(WorkflowLoadError, match=says):
        plan_workflow(source)


def test_an_agent_alone_is_told_how_to_become_a_workflow() -> None:
    from google.adk import Agent

    with pytest.raises(WorkflowLoadError, match=r"is no Workflow but a LlmAgent 'bot'.*edges=\[\('START', agent\)\]"):
        plan_workflow(Agent(name="bot", model="gemini-2.5-flash"))


def test_a_function_that_makes_a_refused_workflow_gives_adks_reason() -> None:
    def build() -> Workflow:
        a = node(lambda: Event(), name="a")
        return Workflow(name="bad", edges=[("START", a, a)])

    with pytest.raises(WorkflowLoadError, match=r"refused by google-adk \(it is named 'bad'\): .*cycle detected: a -> a"):
        plan_workflow(build)
