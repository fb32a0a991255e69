"""Runs random workflows three ways and compares: ``python -m tests.fuzz --count 2000 --seed 1``.

Prints how many agreed, how many differed as documented, by kind, and a workflow that disagreed as code that can be pasted.
Exit 1 when one did.
"""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
import tempfile
import warnings


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=2000, help="how many workflows (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed draws the same workflows (default %(default)s)")
    parser.add_argument("--nodes", type=int, default=25, help="how many nodes one has at most (default %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the work, with seeds SEED, SEED+1, ...")
    args = parser.parse_args()
    if args.jobs > 1:
        return _share(args)

    os.environ["AIRFLOW__LOGGING__LOGGING_LEVEL"] = "CRITICAL"
    warnings.simplefilter("ignore")
    from adk_airflow.testing import use_airflow_home

    with tempfile.TemporaryDirectory(prefix="adk-airflow-fuzz-") as home:
        use_airflow_home(home)
        logging.disable(logging.CRITICAL)
        from tests.fuzz.explore import explore

        report = explore(args.count, seed_number=args.seed, most_nodes=args.nodes, tell=_tell)
    if report.disagreement is not None:
        print(report.explanation())
    print(f"seed {args.seed}: {report.summary()}")
    return 1 if report.disagreement is not None else 0


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _share(args: argparse.Namespace) -> int:
    """Runs a process for each seed; each has an Airflow of its own."""
    shares = [args.count // args.jobs + (number < args.count % args.jobs) for number in range(args.jobs)]
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz", f"--count={n}", f"--seed={args.seed + number}", f"--nodes={args.nodes}"]
        )
        for number, n in enumerate(shares)
    ]
    return max([process.wait() for process in running])


if __name__ == "__main__":
    sys.exit(main())
