"""The command `adk-airflow`. A subcommand is an entry of `_SUBCOMMANDS`; it imports what it needs when run."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Subparsers = Any  # argparse gives its collection of subparsers no public type


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one subcommand.

    Returns:
        The exit code: 0 done, 1 failed, 2 wrong usage (raised by argparse as `SystemExit`), 130 interrupted.
    """
    parser = argparse.ArgumentParser(prog="adk-airflow", description="Run Google ADK workflows as Airflow DAGs.")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in _SUBCOMMANDS:
        add(subparsers)
    arguments = parser.parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _add_demo(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("demo", help="start an Airflow, run one DAG, show its report, end the Airflow")
    _add_home(parser)
    _add_dags(parser)
    parser.add_argument("--dag-id", default="batch_retrieval", help="the DAG to run (%(default)s)")
    parser.add_argument("--conf", type=_json_object, default={}, metavar="JSON", help="the run's params")
    parser.add_argument("--timeout", type=_seconds, default=600.0, metavar="SECONDS", help="for the run (%(default).0f)")
    parser.add_argument("--keep", action="store_true", help="leave Airflow running")

    def run(arguments: argparse.Namespace) -> int:
        from adk_airflow.standalone.commands import demo

        return demo(
            home=arguments.home,
            dags=arguments.dags,
            dag_id=arguments.dag_id,
            conf=arguments.conf,
            timeout=arguments.timeout,
            keep=arguments.keep,
        )

    parser.set_defaults(run=run)


def _add_up(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("up", help="start an Airflow and leave it running")
    _add_home(parser)
    _add_dags(parser)

    def run(arguments: argparse.Namespace) -> int:
        from adk_airflow.standalone.commands import up

        return up(home=arguments.home, dags=arguments.dags)

    parser.set_defaults(run=run)


def _add_down(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("down", help="end the Airflow that `up` left running")
    _add_home(parser)

    def run(arguments: argparse.Namespace) -> int:
        from adk_airflow.standalone.commands import down

        return down(home=arguments.home)

    parser.set_defaults(run=run)


_SUBCOMMANDS: list[Callable[[Subparsers], None]] = [_add_demo, _add_up, _add_down]


def _add_home(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--home", type=Path, default=Path(".demo"), metavar="DIR", help="folder of this Airflow (%(default)s)")


def _add_dags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dags", type=Path, default=Path("dags"), metavar="DIR", help="folder with DAG files (%(default)s)")


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError("must be a JSON object such as '{\"top_k\": 3}'")
    return value


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0, not {text!r}")
    return value


if __name__ == "__main__":
    sys.exit(main())
