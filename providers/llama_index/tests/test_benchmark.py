"""The benchmark on a made-up collection in the format of Cranfield, small enough to work out by hand."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "retrieval.py"

pytestmark = pytest.mark.skipif(not BENCHMARK.exists(), reason="the benchmark is in the repository only")

DOCUMENTS = """.I 1
.T
zebras in the morning
.A
nobody
.B
a journal
.W
zebras graze .
.I 2
.T
lions
.A
.B
.W
lions sleep near zebras, far from everything else that lives there .
.I 3
.T
.A
.B
.W
.I 4
.T
boats
.A
.B
.W
a boat on a lake .
"""

# As in the original, the numbers have gaps and the judgments count the queries.
QUERIES = """.I 001
.W
zebras
.I 007
.W
lions on
boats
.I 012
.W
submarines
.I 013
.W
nobody judged this boat
"""

JUDGMENTS = """1 0 2 1\r
1 0 3 2\r
1 0 1 -1\r
2 0 2 1
2 0 4 3
3 0 1 1
"""


@pytest.fixture
def collection(tmp_path):
    (tmp_path / "cran.all.1400").write_text(DOCUMENTS)
    (tmp_path / "cran.qry").write_text(QUERIES)
    (tmp_path / "cranqrel").write_text(JUDGMENTS)
    return tmp_path


def benchmark(collection: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARK), "--collection", str(collection)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_the_figures_are_those_worked_out_by_hand(collection):
    result = benchmark(collection)
    assert result.returncode == 0, result.stderr
    figures = json.loads(result.stdout.splitlines()[-1])
    # Query 1 finds 1 (judged of no interest) and then 2; of its relevant 2 and 3 one is found, at rank 2.
    first = (1 / math.log2(3)) / (1 + 1 / math.log2(3))
    # Query 2 finds 2 and 4, both relevant, and query 3 nothing. Query 4 has no judgment and does not count.
    assert figures["ndcg_at_10"] == pytest.approx((first + 1 + 0) / 3, abs=1e-4)
    assert figures["recall_at_10"] == pytest.approx((0.5 + 1 + 0) / 3, abs=1e-4)
    assert (figures["documents"], figures["indexed"], figures["skipped"]) == (4, 3, 1)
    assert (figures["queries"], figures["reused"]) == (4, 3)
    assert all(figures[name] >= 0 for name in ("index_seconds", "refresh_seconds", "query_seconds"))
    assert "asking 4 queries (bm25)" in result.stdout


def test_a_missing_file_is_said_plainly(collection):
    (collection / "cranqrel").unlink()
    result = benchmark(collection)
    assert (result.returncode, result.stdout) == (2, "")
    assert "cranqrel missing" in result.stderr
    assert "Traceback" not in result.stderr
