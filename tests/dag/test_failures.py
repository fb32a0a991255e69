"""A failure is that of the node, with what it had done until then and what to do."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from google.adk import Context, Event, Workflow
from google.adk.workflow import RetryConfig, node

from adk_airflow.testing import run_workflow
from tests.dag.nodes import const, show


def test_the_attempts_of_a_retry_are_counted_as_in_adk() -> None:
    def flaky(ctx: Context) -> int:
        ctx.state[f"try{ctx.attempt_count}"] = True
        if ctx.attempt_count < 3:
            raise ConnectionError("again")
        return ctx.attempt_count

    wf = Workflow(name="wf", edges=[("START", node(flaky, retry_config=RetryConfig(initial_delay=0.01, jitter=0)))])
    run = run_workflow(wf)

    assert run.output == 3
    assert run.session_state == {"try1": True, "try2": True, "try3": True}


def test_a_failure_is_the_nodes_own_exception_and_keeps_the_state_up_to_then() -> None:
    def bad(ctx: Context) -> None:
        ctx.state["during"] = 1
        raise LookupError("no such customer")

    run = run_workflow(Workflow(name="orders", edges=[("START", const("ok", 1), node(bad), show("tail"))]))

    assert run.state == "failed"
    assert run.error == ("LookupError", "no such customer")
    assert run.session_state == {"during": 1}
    assert run.task_states["tail"] == ["upstream_failed"]


def test_an_output_that_cannot_travel_fails_the_task_that_made_it() -> None:
    run = run_workflow(Workflow(name="wf", edges=[("START", node(object, name="thing"), show("tail"))]))

    assert run.task_states == {"tail": ["upstream_failed"], "thing": ["failed"]}
    assert run.error is not None
    assert run.error[0] == "ValueNotTransferableError"
    assert "workflow 'wf', node 'thing': its output cannot travel" in run.error[1]


def test_a_state_value_that_cannot_travel_names_its_key() -> None:
    def keep(ctx: Context) -> int:
        ctx.state["good"], ctx.state["lock"] = 1, object()
        return 1

    run = run_workflow(Workflow(name="wf", edges=[("START", node(keep))]))

    assert run.error is not None
    assert "node 'keep': state key 'lock' cannot travel" in run.error[1]
    assert run.session_state == {"good": 1}


def test_two_last_outputs_fail_the_run_as_in_adk() -> None:
    run = run_workflow(Workflow(name="wf", edges=[("START", (const("a", 1), const("b", 2)))]))

    assert run.error is not None
    assert run.error[0] == "WorkflowConfigurationError"


def test_a_node_that_asks_a_person_fails_with_what_to_do() -> None:
    from google.adk.events.request_input import RequestInput

    run = run_workflow(Workflow(name="wf", edges=[("START", node(lambda: RequestInput(message="well?"), name="ask"))]))

    assert run.error is not None
    assert run.error[0] == "HumanInputNotSupportedError"
    assert "node wf@1/ask@1 asks a person for input: 'well?'" in run.error[1]


def an_open_file() -> Any:
    return open(__file__)


def a_lock_in_a_list() -> Any:
    return {"a": [1, threading.Lock()]}


def a_lock_in_state(ctx: Context) -> str:
    ctx.state["guard"] = threading.Lock()
    return "done"


def a_generator_in_state() -> Event:
    return Event(output="done", state={"box": {"rows": 2, "more": (row for row in "ab")}})


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (an_open_file, "its output cannot travel to another task: value is a _io.TextIOWrapper"),
        (a_lock_in_a_list, "its output cannot travel to another task: value['a'][1] is a _thread.lock"),
        (a_lock_in_state, "state key 'guard' cannot travel to another task: value is a _thread.lock"),
        (a_generator_in_state, "state key 'box' cannot travel to another task: value['more'] is a builtins.generator"),
    ],
)
def test_what_cannot_even_be_copied_is_named_with_its_node_and_place(body: Any, says: str) -> None:
    run = run_workflow(Workflow(name="wf", edges=[("START", node(body, name="a"), show("tail"))]))

    assert run.state == "failed"
    assert run.error is not None
    assert run.error[0] == "ValueNotTransferableError"
    assert run.error[1].startswith(f"workflow 'wf', node 'a': {says}, which has no JSON form.")
    assert run.task_states["tail"] == ["upstream_failed"]


def test_a_lock_that_only_nodes_of_one_task_share_is_theirs() -> None:
    wf = Workflow(name="wf", edges=[("START", node(a_lock_in_a_list, name="a"), node(lambda node_input: 1, name="b"))])

    assert run_workflow(wf, mode="embedded").output == 1
    run = run_workflow(Workflow(name="wf", edges=[("START", node(a_lock_in_state, name="a"))]), mode="embedded")
    assert run.error is not None
    assert run.error[1].startswith("workflow 'wf': state key 'guard' cannot travel to another task: value is a _thread.lock")


def test_a_parameter_without_a_value_is_told_with_its_function_and_what_there_is() -> None:
    def polite(nod_input: str, tone: str) -> str:
        return tone + nod_input

    line = polite.__code__.co_firstlineno
    run = run_workflow(Workflow(name="wf", edges=[("START", const("a", 1), polite)]), state={"tone": "warm"})

    assert run.error is not None
    assert run.error[0] == "WorkflowDataError"
    assert run.error[1].endswith(
        f"The function is at {__file__}, line {line}. A parameter is 'node_input', 'ctx' or a key of the state, which has tone."
        " Did you mean 'node_input'?"
    )


def test_the_log_of_a_failure_is_one_good_line_and_one_traceback(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    def bad() -> None:
        raise LookupError("no such customer\nat all")

    run_workflow(Workflow(name="orders", edges=[("START", node(bad))]))
    shown = "".join(capsys.readouterr())

    assert "Workflow 'orders', node 'bad' failed (orders@1/bad@1): LookupError: no such customer at all" in shown
    assert shown.count("Traceback (most recent call last)") == 1
    assert f'File "{__file__}", line ' in shown.partition("Task failed with exception")[2]
    assert "_node_runner.py" not in shown.partition("Task failed with exception")[2]  # the engine's frames, the same for all
    assert shown.count("[error    ]") == 2  # that line, and Airflow's with the traceback
    assert [record.levelname for record in caplog.records if "no such customer" in record.getMessage()] == ["WARNING"]


def test_the_attempts_that_adk_tries_again_are_warnings_without_tracebacks(caplog: pytest.LogCaptureFixture) -> None:
    def flaky(ctx: Context) -> int:
        if ctx.attempt_count < 2:
            raise ConnectionError("not yet")
        return ctx.attempt_count

    wf = Workflow(name="wf", edges=[("START", node(flaky, retry_config=RetryConfig(initial_delay=0.01, jitter=0)))])
    assert run_workflow(wf).state == "success"
    said = [record for record in caplog.records if record.name.startswith("google_adk") and record.levelname != "INFO"]

    assert [(record.levelname, record.getMessage().partition(". Note")[0]) for record in said] == [
        ("WARNING", "A run of a node failed: ConnectionError: not yet"),
        ("WARNING", "Node flaky failed and is being retried locally"),
    ]
    assert not any(record.exc_info for record in said)
