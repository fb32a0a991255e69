"""A model server that fails: busy, limited, cut off, silent."""

from __future__ import annotations

import time

from tests.faults.dags.fault_calls import folder_of
from tests.faults.kills import ALONE, found
from tests.faults.model import LIMIT, FaultyModel
from tests.faults.rows import Scenario, Table
from tests.faults.stand import Stand
from tests.faults.verdict import events, plan


def answers(stand: Stand, table: Table, model: FaultyModel) -> list[Scenario]:
    """The first one last: it concerns all that ask meanwhile."""

    def once(name: str, what: str) -> Scenario:
        def scenario() -> None:
            with table.row(name) as row:
                plan(what, ("alone", "M4"), what=what)
                run, view = stand.run("fault_answers", what)
                row.check(view.state == "success", f"the run {view.state}")
                row.judge(what, ALONE)
                row.check(row.kills == 1, "the model did not fail")
                answer = stand.output(run, "ask")
                row.check(answer == found("alone", 7, 14, 21, 28, 35), f"the answer is {answer!r}")
                if what == "limit":
                    [refused] = [event["time"] for event in events(what) if event["event"] == what]
                    again = min(event["time"] for event in events(what) if event["time"] > refused)
                    row.check(again - refused >= LIMIT, f"it came again after {again - refused:.1f} s, not {LIMIT:.0f} s")

        return scenario

    def outage() -> None:
        with table.row("model server that answers 503 for a minute") as row:
            plan("outage", ("alone", "T3"), what="hold")
            run = stand.start("fault_answers", "outage")
            stand.wait_for("outage", "begin", ("alone", "T3"))
            model.outage = time.time() + 60
            (folder_of("outage") / "hold" / "alone.T3").unlink()
            view = stand.finish(run, timeout=900)
            row.check(view.state == "success", f"the run {view.state}")
            row.judge("outage", ALONE)
            answer = stand.output(run, "ask")
            row.check(answer == found("alone", 7, 14, 21, 28, 35), f"the answer is {answer!r}")

    return [
        once(f"model server that answers 429 with a delay of {LIMIT:.0f} s", "limit"),
        once("model server whose answer is cut off", "cut"),
        once("model server whose answer never comes", "never"),
        outage,
    ]
