"""A failure is that of the node, with what it had done until then and what to do."""

from __future__ import annotations

from google.adk import Context, Workflow
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
