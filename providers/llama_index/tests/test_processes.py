"""Several processes and one index directory; processes that are killed."""

from __future__ import annotations

import json
import time

from adk_airflow_llama_index import open_index, refresh_index

REFRESH_AT_A_SIGNAL = """
import json, pathlib, sys, time
from adk_airflow_llama_index import open_index, refresh_index
import adk_airflow_llama_index.terms, llama_index.core
source, index_dir, signal, ready = map(pathlib.Path, sys.argv[1:])
ready.touch()
while not signal.exists():
    time.sleep(0.01)
report = refresh_index(source, index_dir)
answer = open_index(report.location).search("cron")
print(json.dumps([report.to_dict(), [passage.document for passage in answer]]))
"""

REFRESH_AND_HANG = """
import sys, time
from adk_airflow_llama_index import refresh_index
def progress(words):
    if words.startswith("publishing"):
        print(words, flush=True)
        time.sleep(600)
refresh_index(sys.argv[1], sys.argv[2], progress=progress)
"""


def wait_for(paths):
    deadline = time.monotonic() + 120
    while not all(path.exists() for path in paths):
        assert time.monotonic() < deadline, f"none of the processes made {paths}"
        time.sleep(0.05)


def test_processes_that_refresh_at_once_share_one_version(documents, tmp_path, start):
    ready = [tmp_path / f"ready-{number}" for number in range(2)]
    processes = [start(REFRESH_AT_A_SIGNAL, documents, tmp_path / "index", tmp_path / "signal", path) for path in ready]
    wait_for(ready)
    (tmp_path / "signal").touch()
    outputs = [process.communicate(timeout=120) for process in processes]

    reports, answers = zip(*(json.loads(output) for output, _ in outputs), strict=True)
    assert {report["location"] for report in reports} == {str(path) for path in (tmp_path / "index").glob("*-*")}
    assert sorted(report["built"] for report in reports) == [False, True]
    assert sorted(report["reused"] for report in reports) == [0, 4]
    assert list(answers) == [["croniter.md"], ["croniter.md"]]


def test_a_build_that_was_killed_leaves_nothing_that_is_served(documents, tmp_path, start, write):
    before = refresh_index(documents, tmp_path / "index")
    write(documents, {"pendulum.md": "Zebras at noon."})
    process = start(REFRESH_AND_HANG, documents, tmp_path / "index")
    told = process.stdout.readline()
    process.kill()
    process.communicate(timeout=60)
    assert told.startswith("publishing"), "the process was to be killed in the middle of the build"
    (rest,) = (tmp_path / "index").glob(".building-*")
    assert any(rest.iterdir())
    assert [path.name for path in (tmp_path / "index").glob("*-*") if path.name[0] != "."] == [
        before.location.rpartition("/")[2]
    ]

    report = refresh_index(documents, tmp_path / "index")

    assert (report.built, report.changed, report.reused) == (True, 1, 3)
    assert open_index(report.location).search("zebras")[0].document == "pendulum.md"
    assert not list((tmp_path / "index").glob(".building-*"))
    assert open_index(before.location).search("zebras") == []
