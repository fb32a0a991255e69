"""What a person clears or runs again: a first run's result, and nothing of an old record."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from tests.faults.dags.fault_calls import folder_of
from tests.faults.kills import ALONE, found
from tests.faults.rows import Row, Scenario, Table
from tests.faults.stand import Stand, Started, until
from tests.faults.verdict import Call, calls_of_agent, judge, next_round, plan

FIRST, SECOND = found("alone", 7, 14, 21, 28, 35), found("alone", 107, 114, 121, 128, 135)


def clears(stand: Stand, table: Table) -> list[Scenario]:
    """A scenario per row; all may run side by side."""

    def finished(row: Row, run: Started) -> None:
        view = stand.finish(run)
        row.check(view.state == "success", f"the run {view.state}")

    def afresh(row: Row, case: str, lines: list[str], tools: int) -> None:
        calls: list[Call] = [call for line in lines for call in calls_of_agent(line, tools)]
        row.judge(case, calls)
        row.check(row.counted == len(calls), "a clear does not make each call once")

    def task() -> None:
        with table.row("clear of a task whose process was killed in its first life") as row:
            run, _ = stand.run("fault_agent", "clear-task", ("alone", "T3"))
            next_round("clear-task")
            stand.clear(run, ["ask"])
            finished(row, run)
            afresh(row, "clear-task", ["alone"], 5)
            row.check(stand.output(run, "ask") == SECOND, f"the answer is {stand.output(run, 'ask')!r}")

    def killed_again() -> None:
        with table.row("clear of a task, then killed in its second life") as row:
            run, _ = stand.run("fault_agent", "clear-killed", ("alone", "M4"))
            next_round("clear-killed")
            plan("clear-killed", ("alone", "T5"))
            stand.clear(run, ["ask"])
            finished(row, run)
            row.judge("clear-killed", ALONE)
            row.check(stand.output(run, "ask") == SECOND, f"the answer is {stand.output(run, 'ask')!r}")

    def chain(name: str, case: str, lines: list[str], clear: Callable[[Started], None]) -> Scenario:
        def scenario() -> None:
            with table.row(name) as row:
                run, _ = stand.run("fault_chain", case, ("one", "M2"), ("two", "T1"))
                next_round(case)
                clear(run)
                finished(row, run)
                afresh(row, case, lines, 1)
                for line in ("one", "two"):
                    answer = stand.output(run, line)
                    row.check(answer == found(line, 107 if line in lines else 7), f"{line} answers {answer!r}")

        return scenario

    def another() -> None:
        with table.row("clear of one task while another one works, which is killed then") as row:
            plan("another", ("two", "T1"), what="hold")
            run = stand.start("fault_two_tasks", "another")
            stand.wait_for("another", "begin", ("two", "T1"))
            stand.wait_for("another", "end", ("one", "M2"))
            time.sleep(3)
            stand.clear(run, ["one"])
            plan("another", ("two", "M2"))
            (folder_of("another") / "hold" / "two.T1").unlink()
            finished(row, run)
            two = [call for call in calls_of_agent("two", 1) for _ in range(judge("another", []).made[call])]
            row.counted, row.expected = len(two), 3
            row.check(sorted(two) == [("two", "M1"), ("two", "M2"), ("two", "M2"), ("two", "T1")], f"it made {two}")

    def item() -> None:
        with table.row("clear of one mapped item") as row:
            run, _ = stand.run("fault_mapped", "clear-item", ("item3", "work"), count=6)
            next_round("clear-item")
            stand.clear(run, [["each.run", 1]])
            finished(row, run)
            row.judge("clear-item", [("item2", "work"), ("item3", "work")])
            row.check(row.counted == 2, "a clear does not make each call once")
            outputs = [stand.output(run, "each.run", map_index=at) for at in range(3)]
            row.check(outputs == [[0, 1], [1002, 1003], [4, 5]], f"the items are {outputs}")

    def same_id() -> None:
        with table.row("a run that was deleted, and another with its id") as row:
            run = stand.start("fault_agent", "same-id", ("alone", "M5"), run_id="the_same")
            stand.finish(run)
            next_round("same-id")
            stand.airflow.client.request("DELETE", f"/dags/{run.dag_id}/dagRuns/{run.run_id}")
            finished(row, stand.start("fault_agent", "same-id", run_id="the_same"))
            afresh(row, "same-id", ["alone"], 5)
            row.check(stand.output(run, "ask") == SECOND, f"the answer is {stand.output(run, 'ask')!r}")

    def backfills() -> None:
        with table.row("three backfills side by side, each run killed once") as row:
            days = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2)]
            dags = [f"fault_backfill_{name}" for name in ("a", "b", "c")]
            cases = [f"{dag}-{day:%Y-%m-%d}" for dag in dags for day in days]
            for case in cases:
                plan(case, ("alone", "T2"))
            for dag in dags:
                stand.airflow.client.create_backfill(dag, days[0], days[-1])
            for dag in dags:
                runs = until(lambda dag=dag: len(found := stand.airflow.client.runs(dag)) == 2 and found, f"runs of {dag}")  # type: ignore[misc]
                for one in runs:
                    run = Started(dag, one["dag_run_id"], "")
                    finished(row, run)
                    row.check(stand.output(run, "ask") == found("alone", 7, 14), f"the answer is {stand.output(run, 'ask')!r}")
            for case in cases:
                row.judge(case, calls_of_agent("alone", 2))

    def two_runs() -> None:
        with table.row("two runs of one DAG at once, each killed twice") as row:
            cases = ["run-a", "run-b"]
            runs = [stand.start("fault_agent", case, ("alone", "T3"), ("alone", "M5")) for case in cases]
            for run in runs:
                finished(row, run)
                row.judge(run.case, ALONE)
                row.check(stand.output(run, "ask") == FIRST, f"the answer is {stand.output(run, 'ask')!r}")

    def two_dags() -> None:
        with table.row("two DAGs of one workflow at once, with one run id, each killed twice") as row:
            at = [("as_node", "T3"), ("as_node", "M5")]
            run_id = f"both_{time.time_ns()}"
            runs = [stand.start(dag_id, dag_id, *at, run_id=run_id) for dag_id in ("fault_agent_node", "fault_agent_twin")]
            for run in runs:
                finished(row, run)
                row.judge(run.case, calls_of_agent("as_node", 5))
                answer = stand.output(run, "as_node")
                row.check(answer == found("as_node", 7, 14, 21, 28, 35), f"the answer is {answer!r}")

    return [
        task,
        killed_again,
        chain("clear of a task whose successor keeps", "clear-one", ["one"], lambda run: stand.clear(run, ["one"])),
        chain(
            "clear of a task with its downstream",
            "clear-down",
            ["one", "two"],
            lambda run: stand.clear(run, ["one"], downstream=True),
        ),
        chain("clear of a finished run", "clear-run", ["one", "two"], stand.clear_run),
        another,
        item,
        same_id,
        two_runs,
        two_dags,
        backfills,
    ]
