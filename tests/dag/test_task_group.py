"""A workflow is a task group beside other tasks: it takes and gives XComs, waits, is skipped as a whole."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.models.asset import AssetEvent
from airflow.sdk import DAG, Asset, Param, PokeReturnValue, TaskGroup, setup, task, teardown
from airflow.utils.session import create_session
from google.adk import Context, Workflow
from google.adk.workflow import node
from sqlalchemy import select

from adk_airflow import AdkDag, AdkTaskGroup
from adk_airflow.errors import UnsupportedWorkflowError
from adk_airflow.testing import run_dag
from tests.dag.nodes import const, router, show


def test_a_task_group_takes_and_gives_xcoms_beside_other_tasks_twice_in_one_dag() -> None:
    def words(node_input: str) -> list[str]:
        return node_input.split()

    def upper(node_input: str) -> str:
        return node_input.upper()

    def glue(node_input: list[str], sep: str = "-") -> str:
        return sep.join(node_input)

    wf = Workflow(name="shout", edges=[("START", words, node(upper, parallel_worker=True), glue)])
    with DAG("mixed", schedule=None) as dag:

        @task
        def ask() -> str:
            return "hello big world"

        @task
        def sep() -> str:
            return "+"

        first = AdkTaskGroup(wf, "first", input=ask(), state={"sep": sep()})
        second = AdkTaskGroup(wf, "second", input=first.output, mode="embedded")

        @task
        def end(one: str, two: str) -> list[str]:
            return [one, two]

        end(first.output, second.output)
    run = run_dag(dag)

    assert run.state == "success"
    assert run.outputs["first.glue"] == ["HELLO+BIG+WORLD"]
    assert run.outputs["second.shout"] == ["HELLO+BIG+WORLD"]
    assert run.task_states["end"] == ["success"]


def test_a_task_group_stands_between_setup_and_teardown_and_takes_one_of_several_outputs() -> None:
    def upper(node_input: str) -> str:
        return node_input.upper()

    def glue(node_input: str, sep: str) -> str:
        return f"{node_input}{sep}"

    seen = []
    with DAG("between", schedule=None) as dag:

        @setup
        def prepare() -> None:
            seen.append("prepare")

        @teardown
        def clean() -> None:
            seen.append("clean")

        @task(multiple_outputs=True)
        def ask() -> dict[str, str]:
            return {"text": "hello", "sep": "!"}

        @task
        def plain(ti: Any = None) -> str:
            return str(ti.xcom_pull("upper"))

        asked = ask()
        group = AdkTaskGroup(
            Workflow(name="wf", edges=[("START", upper, glue)]),
            input=asked["text"],
            state={"sep": asked["sep"]},
            prefix_group_id=False,
        )
        prepare() >> group >> plain() >> clean()
    run = run_dag(dag)

    assert (run.state, seen) == ("success", ["prepare", "clean"])
    assert {task_id: run.outputs[task_id] for task_id in ("upper", "glue")} == {"upper": ["HELLO"], "glue": ["HELLO!"]}


def test_a_task_group_waits_for_a_sensor_and_updates_an_asset() -> None:
    def greet(node_input: str) -> str:
        return f"hello {node_input}"

    greeting = Asset("adk-airflow-test-greeting")
    with DAG("watching", schedule=None) as dag:

        @task.sensor(poke_interval=0.1, timeout=10)
        def name_is_there() -> PokeReturnValue:
            return PokeReturnValue(is_done=True, xcom_value="world")

        group = AdkTaskGroup(
            Workflow(name="hello", edges=[("START", greet)]), input=name_is_there(), nodes={"greet": {"outlets": [greeting]}}
        )

        @task(inlets=[greeting])
        def read(text: str) -> str:
            return text.upper()

        read(group.output)
    run = run_dag(dag)

    assert run.state == "success"
    assert run.outputs["hello.greet"] == ["hello world"]
    with create_session() as session:
        events = session.scalars(select(AssetEvent).where(AssetEvent.source_run_id == run.run_id)).all()
    assert [(event.source_task_id, event.source_dag_id) for event in events] == [("hello.greet", "watching")]


def test_a_task_group_that_is_skipped_is_skipped_as_a_whole() -> None:
    first, second, spin = show("first"), show("second"), router("spin", "on")
    edges = [
        ("START", first, second),
        ("START", second),
        ("START", spin),
        (first, spin),
        (spin, {"again": spin, "on": show("end")}),
    ]
    with DAG("chosen", schedule=None) as dag:

        @task.branch
        def choose() -> str:
            return "other"

        @task
        def other() -> int:
            return 1

        group = AdkTaskGroup(Workflow(name="wf", edges=edges), "g", input="hello")
        choose() >> [group, other()]
    run = run_dag(dag)

    assert {state for name, states in run.task_states.items() if name.startswith("g.") for state in states} == {"skipped"}
    assert run.task_states["other"] == ["success"]


def test_a_task_group_takes_all_that_a_mapped_task_gave_and_none_is_none() -> None:
    def look(ctx: Context, node_input: str) -> list[Any]:
        return [node_input, ctx.state["rows"]]

    with DAG("mapped_input", schedule=None, params={"input": "not this"}) as dag:

        @task
        def double(number: int) -> int:
            return 2 * number

        @task
        def nothing() -> None:
            return None

        rows = double.expand(number=[1, 2])
        wf = Workflow(name="wf", edges=[("START", look)])
        AdkTaskGroup(wf, "some", input=rows, state={"rows": rows})
        AdkTaskGroup(wf, "none", input=nothing(), state={"rows": 1})
    run = run_dag(dag)

    assert run.outputs["some.look"] == [["[2,4]", [2, 4]]]
    assert run.outputs["none.look"] == [["", 1]]


def test_a_task_group_refuses_what_only_a_dag_or_one_task_can_keep() -> None:
    from airflow.sdk import task_group

    with DAG("refused", schedule=None), pytest.raises(UnsupportedWorkflowError, match="has max_concurrency=1"):
        AdkTaskGroup(Workflow(name="wf", edges=[("START", const("a", 1))], max_concurrency=1), "g")

    with DAG("refused_mapped", schedule=None):

        @task_group
        def each(number: int) -> None:
            AdkTaskGroup(Workflow(name="wf", edges=[("START", const("a", 1))]), "g", input=number)

        with pytest.raises(UnsupportedWorkflowError, match="cannot be in the mapped task group 'each'"):
            each.expand(number=[1, 2])


@pytest.mark.parametrize("mode", ["tasks", "embedded"])
@pytest.mark.parametrize("params", [{}, {"n": 3}, {"n": Param(3, type="integer")}])
def test_a_group_without_state_starts_with_the_runs_params(mode: Any, params: dict[str, Any]) -> None:
    def first(n: int = 1) -> str:
        return f"first {n}"

    def then(node_input: str, n: int = 1) -> str:
        return f"{node_input}, then {n}"

    wf = Workflow(name="wf", edges=[("START", first, then)])
    with DAG("of_params", schedule=None, params=params) as dag:

        @task
        def ask() -> str:
            return "hi"

        AdkTaskGroup(wf, "plain", mode=mode)
        with TaskGroup("around"):
            AdkTaskGroup(wf, "inside", input=ask(), mode=mode)

    for conf, n in (({"n": 7}, 7), ({}, 3 if params else 1)):
        outputs = run_dag(dag, conf=conf).outputs
        last = [given for name, (given,) in outputs.items() if name.endswith((".then", ".wf"))]
        assert last == [f"first {n}, then {n}"] * 2


@pytest.mark.parametrize("last", ["one", "two"])
def test_a_task_of_the_same_dag_takes_the_output_of_an_adk_dag(last: str) -> None:
    given = []
    ends: Any = const("a", {"rows": 2}) if last == "one" else (const("a", {"rows": 2}), router("b", "x"))
    dag = AdkDag(Workflow(name="wf", edges=[("START", ends)]), f"taken_{last}", schedule=None)
    with dag:

        @task
        def publish(rows: dict[str, int]) -> None:
            given.append(rows)

        publish(dag.output)

    assert run_dag(dag).state == "success"
    assert given == [{"rows": 2}]
