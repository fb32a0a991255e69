"""A node runs as often, after what and with what ADK would run it; what no route reaches is skipped."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk import Context, Event, Workflow
from google.adk.workflow import DEFAULT_ROUTE, JoinNode, node

from adk_airflow.testing import run_workflow
from tests.dag.nodes import const, router, show


def test_state_flows_through_a_route_that_was_not_taken() -> None:
    """What a router wrote is seen after the branches meet, also when the way led past the task that read it."""

    def left(ctx: Context) -> Event:
        ctx.state["from_left"] = 1
        return Event(route="past")

    def right(ctx: Context) -> None:
        ctx.state["from_right"] = 2

    def end(ctx: Context) -> list[Any]:
        return [ctx.state.get("from_left"), ctx.state.get("from_right")]

    left_node, middle, end_node = node(left), const("middle", 1), node(end)
    wf = Workflow(
        name="wf",
        edges=[("START", left_node, {"to_middle": middle}), (middle, end_node), ("START", node(right), end_node)],
    )
    run = run_workflow(wf)

    assert run.task_states["middle"] == ["skipped"]
    assert run.output == [1, 2]


@pytest.mark.parametrize(
    ("route", "taken"),
    [("x", {"a"}), ("z", {"d"}), (None, {"d"}), (["x", "y"], {"a", "b"}), (True, {"yes"}), (1, {"yes"}), ("1", {"d"})],
)
def test_a_route_runs_what_adk_would_run_and_skips_the_rest(route: Any, taken: set[str]) -> None:
    targets = {"x": show("a"), "y": show("b"), True: show("yes"), DEFAULT_ROUTE: show("d")}
    wf = Workflow(name="wf", edges=[("START", router("r", route), targets), (tuple(targets.values()), JoinNode(name="never"))])
    states = run_workflow(wf).task_states

    assert {name for name in ("a", "b", "yes", "d") if states[name] == ["success"]} == taken
    assert {name for name in ("a", "b", "yes", "d") if states[name] == ["skipped"]} == {"a", "b", "yes", "d"} - taken
    assert states["never"] == ["skipped"]


def test_a_node_that_one_router_passes_by_still_runs_for_another() -> None:
    target = show("target")
    wf = Workflow(
        name="wf",
        edges=[("START", router("r1", "no"), {"yes": target}), ("START", router("r2", "yes", 2), {"yes": target})],
    )
    run = run_workflow(wf)

    assert run.outputs["target"] == ["target:2"]


def test_a_way_round_is_not_cut_off_by_the_direct_edge_that_was_not_taken() -> None:
    r, around, target = router("r", "around", 1), show("around"), show("target")
    run = run_workflow(Workflow(name="wf", edges=[("START", r, {"around": around, "direct": target}), (around, target)]))

    assert run.output == "target:'around:1'"


def test_several_triggers_fire_a_node_and_all_after_it_once_each_in_order() -> None:
    wf = Workflow(name="wf", edges=[("START", (const("a", 1), const("b", 2)), show("mid"), show("tail"))])
    run = run_workflow(wf)

    assert run.outputs["mid"] == ["mid:1", "mid:2"]
    assert run.outputs["tail"] == ["tail:'mid:1'", "tail:'mid:2'"]
    assert run.output == "tail:'mid:2'"


@pytest.mark.parametrize("nested", [True, False])
def test_start_counts_as_arrived_for_every_firing_of_a_join(nested: bool) -> None:
    def tick(ctx: Context) -> Event:
        ctx.state["ticks"] = ctx.state.get("ticks", 0) + 1
        return Event(output=ctx.state["ticks"], route="again" if ctx.state["ticks"] < 2 else "done")

    tick_node, join = node(tick), JoinNode(name="join")
    last = node(lambda node_input: sorted(f"{name}: {value!r}" for name, value in node_input.items()), name="last")
    follow = show("follow")
    edges: list[Any] = [("START", tick_node), (tick_node, {"again": tick_node}), (tick_node, follow)]
    wf = Workflow(name="inner", edges=[*edges, ("START", join), (follow, join), (join, last)])
    path = "last"
    if nested:
        wf, path = Workflow(name="outer", edges=[("START", wf)]), "inner.last"

    tasks, embedded = (run_workflow(wf, input="go", mode=mode) for mode in ("tasks", "embedded"))
    assert [lines[1] for lines in tasks.outputs[path]] == ["follow: 'follow:1'", "follow: 'follow:2'"]
    assert tasks.output == embedded.output
    assert "text='go'" in tasks.output[0]


def test_a_trigger_never_comes_before_one_that_it_depends_on() -> None:
    a, b, c = const("a", 1), show("b"), show("c")
    wf = Workflow(name="wf", edges=[("START", a), (b, c), (a, b), (a, c)])

    assert run_workflow(wf).outputs["c"] == ["c:1", "c:'b:1'"]


def test_a_failure_is_not_lost_behind_a_join_that_could_not_fire_anyway() -> None:
    def bad() -> None:
        raise KeyError("bad")

    r, bad_node, other, join = router("r", "x"), node(bad), show("other"), JoinNode(name="join")
    wf = Workflow(
        name="wf",
        edges=[("START", r, {"x": bad_node, "y": other}), ((bad_node, other), join, show("end")), (r, show("beside"))],
    )
    run = run_workflow(wf)

    assert run.state == "failed"
    assert run.error == ("KeyError", "'bad'")


def outer(where: str) -> Workflow:
    """A workflow with a node, in the place that the test is about, whose route no edge has."""
    lost = router("lost", "sideways", output="x")
    edges: list[Any] = [(lost, {"left": show("l"), "right": show("r"), 3: show("three")})]
    if where == "loop":
        again = node(lambda node_input: Event(output=1, route=None if node_input else "go"), name="again")
        edges = [("START", again, lost), (lost, {"left": again, "right": show("r"), 3: show("three")})]
        return Workflow(name="wf", edges=edges)
    inner = Workflow(name="inner" if where == "nested" else "wf", edges=[("START", lost), *edges])
    return Workflow(name="wf", edges=[("START", inner, show("tail"))]) if where == "nested" else inner


@pytest.mark.parametrize("mode", ["tasks", "embedded"])
@pytest.mark.parametrize("where", ["plain", "nested", "loop"])
def test_a_route_that_no_edge_has_is_a_warning_with_those_that_they_have(
    where: str, mode: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_workflow(outer(where), mode=mode)
    name = "inner" if where == "nested" else "wf"

    assert run.state == "success"
    said = [line for line in capsys.readouterr().out.splitlines() if "its edges have the routes" in line]
    assert len(said) == 1
    assert (
        f"[warning  ] Workflow {name!r}, node 'lost' emitted route 'sideways', and its edges have the routes 'left', 'right',"
        " 3: nothing runs after it. Correct the route, or add an edge for DEFAULT_ROUTE."
    ) in said[0]


def test_a_route_that_an_edge_has_or_the_default_takes_is_no_warning(capsys: pytest.CaptureFixture[str]) -> None:
    a, b = router("a", ["x", "no"], output=1), router("b", "other", output=2)
    run_workflow(Workflow(name="wf", edges=[("START", a, {"x": b}), (b, {"y": show("c"), DEFAULT_ROUTE: show("d")})]))

    assert "its edges have the routes" not in capsys.readouterr().out
