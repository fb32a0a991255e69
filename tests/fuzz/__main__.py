"""Runs random workflows three ways and compares: ``python -m tests.fuzz --count 2000 --seed 1``.

Prints how many agreed, how many differed as documented, by kind, and each workflow that disagreed as code that can be pasted.
Exit 1 when one did. A process draws a hundred at a time, and stops there at the first that disagrees; so a seed gives the same
workflows however many processes there are.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed

from tests.fuzz.explore import Report, explore, prepare

AT_A_TIME = 100
MOST_SHARES = 1_000_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=2000, help="how many workflows (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed draws the same workflows (default %(default)s)")
    parser.add_argument("--nodes", type=int, default=25, help="how many nodes one has at most (default %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default %(default)s)")
    args = parser.parse_args()
    shares = [min(AT_A_TIME, args.count - done) for done in range(0, args.count, AT_A_TIME)]

    with tempfile.TemporaryDirectory(prefix="adk-airflow-fuzz-") as homes:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(args.jobs, context, prepare, (homes,)) as pool:
            seeds = range(args.seed * MOST_SHARES, args.seed * MOST_SHARES + len(shares))
            running = [
                pool.submit(explore, count, seed_number=seed, most_nodes=args.nodes)
                for count, seed in zip(shares, seeds, strict=True)
            ]
            total = Report()
            for future in as_completed(running):
                report = future.result()
                total += report
                if report.disagreements:
                    print(report.explanation(), flush=True)
                print(total.summary(), file=sys.stderr, flush=True)
    print(f"seed {args.seed}: {total.summary()}")
    return 1 if total.disagreements else 0


if __name__ == "__main__":
    sys.exit(main())
