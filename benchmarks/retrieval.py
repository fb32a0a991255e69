"""Measures retrieval quality and speed on the Cranfield collection.

    python benchmarks/retrieval.py --collection DIR [--mode bm25] [--top-k 10]

DIR holds the classic files `cran.all.1400`, `cran.qry` and `cranqrel`; none of them is part of this
project. The documents (title and abstract) are written as files to a temporary directory, indexed with
`refresh_index` and searched with `open_index(...).search`, which is what a workflow does.

What is measured, over all queries that have a relevant document, as trec_eval does it:

* Queries are numbered 1, 2, ... in the order of the file, which is how the judgments name them; the
  numbers after `.I` in `cran.qry` have gaps.
* A document is relevant when its grade is above 0, and relevance is binary: copies of `cranqrel` disagree on
  what the grades mean (in the original 1 is best and 4 is least, others turn that around), and the copy behind
  the usual figures has nothing but 1. Grades of 0 or below ("of no interest") count as not judged.
* nDCG@10 is the sum of 1 / log2(rank + 1) over the relevant documents among the first ten, divided by
  the largest sum possible for the query.
* recall@10 is the share of the query's relevant documents that is among the first ten.

With these definitions a plain bm25s (English stemming and stop words, title and abstract) has nDCG@10 0.523
and recall@10 0.451 on the copy with 1,837 judgments.

Documents without text (the collection has two) are skipped by the index and so never found.

The last line is one line of JSON. Exit code 2: the collection, or a file of it, is missing.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from adk_airflow_llama_index import open_index, refresh_index
from adk_airflow_llama_index.search import SearchMode

CUTOFF = 10
FILES = ("cran.all.1400", "cran.qry", "cranqrel")


def read_records(path: Path) -> list[dict[str, str]]:
    """The records of a file in the SMART format, in file order: their fields by letter, `I` being the
    number."""
    records = []
    for record in re.split(r"^\.I\s+", path.read_text(encoding="utf-8", errors="replace"), flags=re.M)[1:]:
        number, *fields = re.split(r"^\.([A-Z])[ \t]*$", record, flags=re.M)
        texts = {letter: text.strip() for letter, text in zip(fields[::2], fields[1::2], strict=True)}
        records.append({"I": number.strip(), **texts})
    return records


def read_judgments(path: Path) -> dict[int, set[str]]:
    """The numbers of the relevant documents by query number."""
    relevant: dict[int, set[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            query, _, document, grade = line.split()
            if int(grade) > 0:
                relevant.setdefault(int(query), set()).add(document)
    return relevant


def ndcg(ranking: Sequence[str], relevant: set[str]) -> float:
    gain = sum(1 / math.log2(rank + 1) for rank, name in enumerate(ranking[:CUTOFF], 1) if name in relevant)
    return gain / sum(1 / math.log2(rank + 1) for rank in range(1, min(CUTOFF, len(relevant)) + 1))


def recall(ranking: Sequence[str], relevant: set[str]) -> float:
    return len(relevant.intersection(ranking[:CUTOFF])) / len(relevant)


def mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return round(sum(numbers) / len(numbers), 4) if numbers else 0.0


def quality(rankings: Mapping[int, Sequence[str]], relevant: Mapping[int, set[str]]) -> dict[str, float]:
    judged = [query for query in rankings if relevant.get(query)]
    return {
        "ndcg_at_10": mean(ndcg(rankings[query], relevant[query]) for query in judged),
        "recall_at_10": mean(recall(rankings[query], relevant[query]) for query in judged),
    }


def run(collection: Path, folder: Path, mode: SearchMode, top_k: int) -> dict[str, float | int | str]:
    documents, queries = (read_records(collection / name) for name in FILES[:2])
    relevant = read_judgments(collection / FILES[2])
    source = folder / "documents"
    source.mkdir()
    for record in documents:
        text = f"{record.get('T', '')}\n\n{record.get('W', '')}"
        (source / f"{record['I']}.txt").write_text(text, encoding="utf-8")

    embed_model = None if mode == "bm25" else "gemini"
    built = refresh_index(source, folder / "index", embed_model=embed_model, progress=print)
    again = refresh_index(source, folder / "index", embed_model=embed_model, progress=print)

    print(f"asking {len(queries)} queries ({mode})")
    started = time.perf_counter()
    index = open_index(built.location)
    rankings = {}
    for number, query in enumerate(queries, start=1):
        found = index.search(query["W"], top_k=top_k, mode=mode)
        rankings[number] = [passage.document.removesuffix(".txt") for passage in found]
    query_seconds = time.perf_counter() - started
    return {
        "mode": mode,
        **quality(rankings, relevant),
        "documents": len(documents),
        "indexed": built.documents,
        "skipped": len(built.skipped),
        "queries": len(queries),
        "index_seconds": round(built.seconds, 3),
        "refresh_seconds": round(again.seconds, 3),
        "reused": again.reused,
        "query_seconds": round(query_seconds, 3),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Retrieval quality and speed on the Cranfield collection.")
    parser.add_argument("--collection", type=Path, required=True, metavar="DIR", help=f"holds {', '.join(FILES)}")
    parser.add_argument("--mode", choices=("bm25", "dense", "fused"), default="bm25", help="all but bm25 need a Gemini key")
    parser.add_argument("--top-k", type=int, default=CUTOFF, metavar="N", help="documents to ask for, at least 10")
    options = parser.parse_args(arguments)
    if options.top_k < CUTOFF:
        parser.error(f"--top-k must be at least {CUTOFF}, which is where quality is measured")
    missing = [name for name in FILES if not (options.collection / name).is_file()]
    if missing:
        print(
            f"The Cranfield collection is not complete in {str(options.collection)!r}: "
            f"{', '.join(missing)} missing. "
            "Give the directory that holds its three files with --collection.",
            file=sys.stderr,
        )
        return 2
    with tempfile.TemporaryDirectory(prefix="cranfield-") as folder:
        print(json.dumps(run(options.collection, Path(folder), options.mode, options.top_k)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
