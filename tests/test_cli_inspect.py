"""`adk-airflow plan`, `draw` and `run`: what they print, on real workflows, in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from adk_airflow import Plan
from adk_airflow.cli import main
from adk_airflow.translator.plan import PlannedTask, Upstream
from adk_airflow.translator.show import as_mermaid, as_text

ROOT = Path(__file__).parents[1]

WORKFLOWS = """
    import asyncio
    import sys
    import threading
    from google.adk import Event, Workflow
    from google.adk.events import RequestInput
    from google.adk.workflow import DEFAULT_ROUTE, JoinNode, RetryConfig, node

    print("the module was imported")

    def step(name, **kwargs):
        def body(node_input):
            return node_input
        return node(body, name=name, **kwargs)

    def classify(node_input: str):
        return Event(output=node_input, route="refund" if "money" in node_input else "other")

    def answer(node_input: str, tone: str = "plain"):
        return f"{tone}: {node_input}"

    draft, review, classify, answer = step("draft"), step("review"), node(classify), node(answer)
    router = Workflow(name="router", description="Answers mail.", edges=[
        ("START", classify, {"refund": answer, DEFAULT_ROUTE: draft}),
        (draft, review, {"again": draft, "done": answer}),
    ])

    def numbers():
        return [1, 2, 3]

    def silent(node_input):
        print("a node prints")

    attempts = []

    @node(retry_config=RetryConfig(max_attempts=2, initial_delay=0.01))
    def flaky():
        attempts.append(1)
        if len(attempts) == 1:
            raise ConnectionError("not yet")
        return "done"

    inner = Workflow(name="inner", edges=[("START", node(silent), flaky)])
    worker = step("double", parallel_worker=True, max_parallel_workers=2)
    batch = Workflow(name="batch", edges=[("START", node(numbers), worker, inner)])

    async def bad():
        raise LookupError("no such customer\\nat all")

    async def slow():
        await asyncio.sleep(20)

    failing = Workflow(name="failing", edges=[("START", (node(slow), node(bad)))])

    def ask():
        return RequestInput(interrupt_id="q1", message="Which colour?")

    def leave():
        sys.exit()

    def lost(node_input: str):
        return Event(output=node_input, route="sideways")

    def guarded(ctx):
        ctx.state["guard"] = threading.Lock()
        return open(__file__)

    def misspelt(nod_input, tone="plain"):
        return nod_input

    def number(node_input: int):
        return node_input

    def which_run(ctx):
        return {key: value for key, value in ctx.state.to_dict().items() if key.startswith("airflow:")}

    unrouted = Workflow(name="unrouted", edges=[("START", node(lost), {"left": step("l"), "right": step("r")})])
    locked = Workflow(name="locked", edges=[("START", node(guarded), node(which_run))])
    mistaken = Workflow(name="mistaken", edges=[("START", node(misspelt))])
    counting = Workflow(name="counting", edges=[("START", node(number))])
    dated = Workflow(name="dated", edges=[("START", node(which_run))])
    leaving = Workflow(name="leaving", edges=[("START", node(leave))])
    asking = Workflow(name="asking", edges=[("START", node(ask), step("tail"))])
    retrying = Workflow(name="retrying", edges=[("START", step("a"))], retry_config=RetryConfig(max_attempts=2))
    not_a_workflow = 3
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project as users have it: a DAGs folder with a workflow's module in it."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "dags").mkdir()
    (folder / "dags" / "cli_inspect_workflows.py").write_text(textwrap.dedent(WORKFLOWS))
    return folder


@pytest.fixture
def command(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Calls the command in that folder; gives exit code, standard output, standard error."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])

    def call(name: str, workflow: str, *arguments: str) -> tuple[int, str, str]:
        code = main([name, f"cli_inspect_workflows:{workflow}", *arguments])
        out, err = capsys.readouterr()
        return code, out, err.removeprefix("the module was imported\n")  # by the first test that needs it

    call.read = capsys.readouterr  # type: ignore[attr-defined]
    return call


def in_a_process(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    code = "import sys; from adk_airflow.cli import main; code = main(sys.argv[1:]); "
    code += "sys.exit(code or ('airflow was imported' if 'airflow' in sys.modules else 0))"
    command = [sys.executable, "-c", f"import sys; sys.path.append({str(ROOT)!r}); {code}", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


# -- plan ----------------------------------------------------------------------------------------------------


def test_plan_says_for_each_task_its_kind_trigger_rule_and_upstream(command) -> None:
    code, out, _ = command("plan", "router")
    lines = out.splitlines()

    assert code == 0
    assert lines[:2] == ["Workflow router, mode tasks: 3 tasks", "Answers mail."]
    assert [line.split(maxsplit=3) for line in lines if line.startswith(("classify", "draft_loop", "answer"))] == [
        ["classify", "function", "all_success", "START"],
        ["draft_loop", "region", "all_success", "classify [default]"],
        ["answer", "function", "none_failed_min_one_success", "classify [refund], draft_loop [done]"],
    ]
    assert "    embedded: a loop: ADK's own engine runs draft, review together in this task" in lines
    assert "Output: what answer returns" in lines


def test_plan_says_what_is_mapped_batched_and_nested_and_what_can_differ(command) -> None:
    choices = {"double": {"batch_size": 5, "pool": "small"}, "inner": {"mode": "embedded"}}
    _, out, _ = command("plan", "batch", "--nodes", json.dumps(choices))

    assert "    mapped: a task instance per 5 items, at most 1 at once\n    arguments: pool='small'" in out
    assert "    batched: 5 items per task instance" in out
    assert "    embedded: a nested workflow that is marked embedded: ADK's own engine runs it in this task" in out
    assert "* no-cancel-on-failure: " in out.partition("What can differ from one ADK process:")[2]


def test_plan_in_embedded_mode_is_one_task_without_differences(command) -> None:
    code, out, _ = command("plan", "retrying", "--mode", "embedded")

    assert code == 0
    assert "Workflow retrying, mode embedded: 1 task\n" in out
    assert out.endswith("What can differ from one ADK process: nothing that is known.\n")


def test_plan_as_json_is_the_whole_plan(command) -> None:
    _, out, _ = command("plan", "router", "--json")

    plan = json.loads(out)
    assert [task["task_id"] for task in plan["tasks"]] == ["classify", "draft_loop", "answer"]
    assert plan["tasks"][1]["nodes"] == ["draft", "review"]


def test_plan_of_the_example_needs_neither_airflow_nor_more_than_the_folder_of_dags() -> None:
    done = in_a_process("plan", "adk_workflows.batch_retrieval:root_agent", cwd=ROOT)

    assert (done.returncode, done.stderr) == (0, "")
    assert "retrieve.run       tool             all_success                  retrieve.items" in done.stdout


def test_what_the_module_prints_does_not_get_into_a_plan(folder: Path) -> None:
    done = in_a_process("plan", "cli_inspect_workflows:router", "--json", cwd=folder)

    assert done.stderr == "the module was imported\n"
    assert json.loads(done.stdout)["workflow"] == "router"


@pytest.mark.parametrize("name", ["plan", "draw", "run"])
def test_an_error_is_one_line_that_says_what_is_wrong(command, name: str) -> None:
    for workflow, text in {"nowhere": "has no attribute 'nowhere'", "not_a_workflow": "is no Workflow but a int"}.items():
        code, out, err = command(name, workflow)
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert err.startswith("adk-airflow: ")
        assert text in err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import sys; sys.exit()", "fails: SystemExit"),
        ("raise RuntimeError('no key')", "fails: RuntimeError: no key"),
        (
            "import not_installed_here",
            "fails: ModuleNotFoundError: No module named 'not_installed_here' ({file}, line 1). Install it where this runs.",
        ),
        ("\n\ndef x(:", "fails: SyntaxError: invalid syntax ({file}, line 3)"),
        ("\nroot_agent = undefined", "fails: NameError: name 'undefined' is not defined ({file}, line 2)"),
        (
            "from google.adk import Workflow\nroot_agent = Workflow(name='my flow', edges=[('START', print)])",
            "is refused by google-adk: Node name 'my flow' must be a valid Python identifier. That is letters, digits and"
            " underscores, with no digit first, such as 'my_flow'. ({file}, line 2)",
        ),
        (
            "from google.adk import Workflow\ndef a(): ...\nroot_agent = Workflow(name='w', edges=[('START', a, 'b')])",
            "is refused by google-adk: edges[0] is ('START', a, 'b'): 'b' is text, not a node. A route stands in a dict:"
            " (a, {{'b': ...}}); a node stands there itself, without quotes ({file}, line 3)",
        ),
        (
            "def root_agent():\n    return undefined",
            "fails: NameError: name 'undefined' is not defined ({file}, line 2)",
        ),
        (
            "def root_agent(size): ...",
            "is a function that needs arguments (size), and it is called without.",
        ),
        (
            "from google.adk import Agent\nroot_agent = Agent(name='helper', model='m')",
            "is no Workflow but a LlmAgent 'helper'. An agent alone is one task: AdkAgentOperator(agent=...), or load_agents()"
            " for a folder of them.",
        ),
    ],
)
def test_a_module_that_cannot_be_imported_is_an_error(folder: Path, capsys, monkeypatch, text: str, says: str) -> None:
    name = f"cli_inspect_broken_{abs(hash(text))}"
    (folder / "dags" / f"{name}.py").write_text(text)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])

    assert main(["plan", f"{name}:root_agent"]) == 1
    says = says.format(file=folder / "dags" / f"{name}.py")
    assert f"adk-airflow: workflow '{name}:root_agent' {says}" in capsys.readouterr().err
    assert main(["plan", f".{name}:root_agent"]) == 1
    assert "is not of the form 'package.module:attribute'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("workflow", "says"),
    [
        ("cli_inspect_workflow:router", "there is no module 'cli_inspect_workflow'. Did you mean 'cli_inspect_workflows'? "),
        ("some.where:router", "there is no module 'some'. It was looked for in "),
        (
            "cli_inspect_workflows.inner:router",
            "there is no module 'cli_inspect_workflows.inner'. 'cli_inspect_workflows' is a module, not a package: ",
        ),
        ("cli_inspect_workflows:ruoter", "cli_inspect_workflows has no attribute 'ruoter'. Did you mean 'router'?"),
        ("cli_inspect_workflows:zz", "cli_inspect_workflows has no attribute 'zz'. It has: classify, answer, draft, review,"),
    ],
)
def test_what_is_not_there_is_told_with_the_nearest_name_and_the_places(
    command, folder: Path, workflow: str, says: str
) -> None:
    command("plan", "router")  # the module is imported by now
    assert main(["plan", workflow]) == 1
    assert f"adk-airflow: workflow {workflow!r}: {says}" in (err := command.read()[1])
    if "no module" in says and "package" not in says:
        assert str(folder / "dags") in err
        assert str(folder) in err


def test_a_workflow_that_cannot_become_tasks_is_refused_with_the_way_out(command) -> None:
    code, _, err = command("plan", "retrying")

    assert code == 1
    assert "can only run as a whole. Use mode='embedded'." in err


def test_a_wrong_node_name_is_refused_with_the_nearest_right_one(command) -> None:
    code, _, err = command("plan", "router", "--nodes", '{"clasify": {"pool": "x"}}')

    assert (code, err) == (1, "adk-airflow: workflow 'router' has no node 'clasify'. Did you mean 'classify'?\n")


def test_a_misspelt_argument_is_refused_as_in_a_dag(command) -> None:
    code, _, err = command("plan", "router", "--nodes", '{"classify": {"retires": 2}}')

    problem = "node 'classify': Airflow's operators have no argument 'retires'. Did you mean 'retries'?"
    assert (code, err) == (1, f"adk-airflow: workflow 'router', {problem}\n")


@pytest.mark.parametrize("given", ["no json", "[1]", '{"classify": 1}'])
def test_nodes_that_are_no_objects_are_wrong_usage(command, given: str) -> None:
    with pytest.raises(SystemExit) as exit_info:
        command("plan", "router", "--nodes", given)

    assert exit_info.value.code == 2


# -- draw ----------------------------------------------------------------------------------------------------


def test_draw_prints_mermaid_with_routes_groups_and_colours(command) -> None:
    _, out, _ = command("draw", "batch")

    assert out.startswith('flowchart LR\n  START(["START"])\n')
    assert '  subgraph t1_group["double"]\n    t1["items<br/>' in out
    assert '    t2[["run<br/><small>function, mapped, at most 2 at once</small>"]]' in out
    assert "  START --> t0\n  t0 --> t1\n" in out
    _, out, _ = command("draw", "router")
    assert '  t0 -->|"refund"| t2\n' in out
    assert "  class t0,t2 adk_function\n" in out
    assert "  class t1 adk_region\n" in out


def test_draw_writes_a_mermaid_file(command, tmp_path: Path) -> None:
    code, out, _ = command("draw", "router", "--output", str(tmp_path / "plan.mmd"))

    assert (code, out) == (0, f"{tmp_path / 'plan.mmd'}: 3 tasks of router\n")
    assert (tmp_path / "plan.mmd").read_text() == command("draw", "router")[1]


@pytest.mark.parametrize("name", ["plan.png", "plan.svg", "plan"])
def test_draw_refuses_other_formats_and_names_the_right_one(command, tmp_path: Path, name: str) -> None:
    code, _, err = command("draw", "router", "--output", str(tmp_path / name))

    assert code == 1
    assert "give a name that ends in .mmd (Mermaid)" in err
    assert not (tmp_path / name).exists()


def test_draw_says_why_it_cannot_write(command, tmp_path: Path) -> None:
    code, _, err = command("draw", "router", "--output", str(tmp_path / "missing" / "plan.mmd"))

    assert code == 1
    assert err.endswith("missing/plan.mmd': No such file or directory\n")


def test_text_in_a_drawing_is_escaped() -> None:
    hostile = '<b>&"`#'
    tasks = (
        PlannedTask("a", "a", "node", "function", starts=True, description=hostile),
        PlannedTask("b", "b", "node", "Own<Kind>", upstream=(Upstream("a", hostile),)),
    )
    plan = Plan("wf", "", "tasks", tasks, {}, {}, {}, result="b")

    assert '-->|"#60;b#62;#38;#34;#96;#35;"|' in as_mermaid(plan)
    assert "b     Own<Kind>  all_success   a [" in as_text(plan)


def test_groups_in_groups_are_subgraphs_in_subgraphs() -> None:
    tasks = (
        PlannedTask("outer.inner.a", "a", "node", "function", starts=True),
        PlannedTask("outer.b", "b", "node", "function", upstream=(Upstream("outer.inner.a", "x"),)),
        PlannedTask("c", "c", "node", "function", upstream=(Upstream("outer.b"), Upstream("outer.inner.a"))),
    )
    lines = [line.strip() for line in as_mermaid(Plan("wf", "", "tasks", tasks, {}, {}, {}, result="c")).splitlines()]

    order = ['subgraph t0_group["outer"]', 'subgraph t0_group["inner"]', "end", "end"]
    assert [line for line in lines if line.startswith("subgraph") or line == "end"] == order
    assert {'t0 -->|"x"| t1', "t1 --> t2", "t0 --> t2"} <= set(lines)


# -- run -----------------------------------------------------------------------------------------------------


def test_run_prints_node_runs_and_the_output(command) -> None:
    code, out, err = command("run", "router", "--input", "my money", "--state", '{"tone": "formal"}')
    first, second, _, summary, output = out.splitlines()

    assert (code, err) == (0, "")
    assert first.split(maxsplit=4)[2:] == ["ok", "router@1/classify@1", "route 'refund'  \"my money\""]
    assert second.split(maxsplit=4)[2:] == ["ok", "router@1/answer@1", '"formal: my money"']
    assert summary.startswith("router: 2 node runs in ")
    assert output == "formal: my money"


def test_run_as_json_gives_every_node_run_also_silent_and_failed_ones(folder: Path) -> None:
    done = in_a_process("run", "cli_inspect_workflows:batch", "--json", cwd=folder)
    result = json.loads(done.stdout)

    assert done.returncode == 0
    assert done.stderr.splitlines()[:2] == ["the module was imported", "a node prints"]
    assert (result["workflow"], result["status"], result["output"], result["error"]) == ("batch", "ok", "done", "")
    runs = [(run["path"], run["status"], run["output"]) for run in result["node_runs"]]
    assert runs[0] == ("batch@1/numbers@1", "ok", [1, 2, 3])
    assert sorted(runs[1:4]) == [(f"batch@1/double@1/double@{number}", "ok", number) for number in (1, 2, 3)]
    assert runs[4:] == [
        ("batch@1/double@1", "ok", [1, 2, 3]),
        ("batch@1/inner@1/silent@1", "ok", None),
        ("batch@1/inner@1/flaky@1", "failed", None),
        ("batch@1/inner@1/flaky@1", "ok", "done"),
        ("batch@1/inner@1", "ok", "done"),
    ]
    assert result["node_runs"][6]["error"] == "ConnectionError: not yet"
    assert all(run["seconds"] >= 0 for run in result["node_runs"])


def test_run_of_a_failing_workflow_says_which_node_and_where_without_a_traceback(command, folder: Path) -> None:
    code, out, err = command("run", "failing")
    runs = [line.split(maxsplit=4)[2:] for line in out.splitlines()]

    assert code == 1
    assert runs == [
        ["failed", "failing@1/bad@1", "LookupError: no such customer at all"],
        ["cancelled", "failing@1/slow@1"],
    ]
    assert "Traceback" not in err
    where = f"({folder / 'dags' / 'cli_inspect_workflows.py'}, line "
    said = "adk-airflow: workflow 'failing', node failing@1/bad@1 failed with LookupError: no such customer at all "
    assert err.splitlines()[-1].startswith(said + where)


def test_run_of_a_workflow_that_asks_a_person_shows_the_question_and_ends(command) -> None:
    code, out, err = command("run", "asking")

    assert code == 1
    assert out.split() == [*out.split()[:2], "waiting", "asking@1/ask@1"]
    assert "workflow 'asking' is paused: node asking@1/ask@1 asks a person for input: 'Which colour?'." in err


def test_run_of_a_node_that_ends_the_process_is_a_failure(command) -> None:
    code, out, err = command("run", "leaving")

    assert code == 1
    assert out.split()[2:] == ["cancelled", "leaving@1/leave@1"]
    assert "adk-airflow: workflow 'leaving', the run failed with SystemExit" in err
    assert "Traceback" not in err


def test_run_as_json_shows_values_as_a_task_would(command) -> None:
    code, out, _ = command("run", "router", "--input", "my money", "--json", "--state", f'{{"size": {2**64}, "n": [1]}}')

    assert code == 0
    assert json.loads(out)["state"] == {"size": str(2**64), "n": [1]}


def test_run_as_json_tells_a_pause_and_a_failure_apart(command) -> None:
    paused, failed = (json.loads(command("run", name, "--json")[1]) for name in ("asking", "failing"))

    assert (paused["status"], failed["status"]) == ("paused", "failed")
    assert "LookupError: no such customer" in failed["error"]


def test_a_run_needs_no_airflow_and_still_shows_outputs_without_spans(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    done = in_a_process("run", "cli_inspect_workflows:router", "--input", "hello money", cwd=folder)

    assert done.returncode == 0, done.stderr
    lines = [line.split(maxsplit=4)[2:] for line in done.stdout.splitlines()[:2]]
    assert lines == [
        ["ok", "router@1/classify@1", "route 'refund'  \"hello money\""],
        ["ok", "router@1/answer@1", '"plain: hello money"'],
    ]


def test_run_warns_of_a_route_that_no_edge_has(command) -> None:
    code, out, err = command("run", "unrouted", "--input", "hi")

    assert (code, out.endswith("Output:\nnull\n")) == (0, True)
    assert (
        "adk-airflow: warning: workflow 'unrouted', node 'lost' emitted route 'sideways', and its edges have the routes 'left',"
        " 'right': nothing runs after it. Correct the route, or add an edge for DEFAULT_ROUTE.\n"
    ) in err


def test_run_warns_of_what_could_not_travel_between_tasks(command) -> None:
    code, out, _ = command("run", "locked", "--json")

    assert (code, json.loads(out)["status"]) == (0, "ok")
    warnings = json.loads(out)["warnings"]
    assert [text.partition(", which has no JSON form")[0] for text in warnings] == [
        "between Airflow tasks the output of node locked@1/guarded@1 could not travel: value is a _io.TextIOWrapper",
        "between Airflow tasks state key 'guard' could not travel: value is a _thread.lock",
    ]
    assert all(f"adk-airflow: warning: {text}\n" in command("run", "locked")[2] for text in warnings)


def test_run_says_where_the_function_is_whose_parameter_has_no_value(command, folder: Path) -> None:
    code, _, err = command("run", "mistaken", "--state", '{"tone": "warm"}')
    lines = textwrap.dedent(WORKFLOWS).splitlines()
    line = lines.index('def misspelt(nod_input, tone="plain"):') + 1

    assert code == 1
    assert err.endswith(
        f"The function is at {folder / 'dags' / 'cli_inspect_workflows.py'}, line {line}. A parameter is 'node_input', 'ctx' or"
        " a key of the state, which has tone. Did you mean 'node_input'?\n"
    )


def test_run_says_where_the_function_is_whose_input_does_not_fit_and_all_that_the_error_says(command, folder: Path) -> None:
    code, _, err = command("run", "counting", "--input", "many")

    assert code == 1
    assert "failed with ValidationError: 1 validation error for int Input should be a valid integer, unable to parse" in err
    assert f"({folder / 'dags' / 'cli_inspect_workflows.py'}, line " in err


def test_run_has_the_keys_of_an_airflow_run_in_its_state(command) -> None:
    code, out, _ = command("run", "dated", "--json", "--state", '{"airflow:logical_date": "2026-01-02T00:00:00+00:00"}')
    found = json.loads(out)

    assert code == 0
    assert found["output"]["airflow:dag_id"] == "dated"
    assert found["output"]["airflow:run_id"].startswith("manual__20")
    assert found["output"]["airflow:logical_date"] == "2026-01-02T00:00:00+00:00"
    assert found["output"]["airflow:data_interval_end"].startswith("20")
    assert found["state"] == {}


def test_run_takes_the_credentials_of_a_connection(command) -> None:
    assert command("run", "dated", "--conn", "absent") == (
        1,
        "",
        "adk-airflow: workflow 'dated': there is no Airflow connection 'absent'. Add it under Admin, Connections, or correct"
        " its id.\n",
    )


def test_the_versions_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])

    assert ended.value.code == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in shown] == ["adk-airflow", "google-adk", "apache-airflow", "Python"]
    assert all(line.split()[1][0].isdigit() for line in shown)
