"""The command ``adk-airflow``. A subcommand is an entry of ``_SUBCOMMANDS``; it imports what it needs when run."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

Subparsers = Any  # argparse gives its collection of subparsers no public type


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one subcommand.

    Returns:
        The exit code: 0 done, 1 failed, 2 wrong usage (raised by argparse as ``SystemExit``), 130 interrupted.
    """
    parser = argparse.ArgumentParser(prog="adk-airflow", description="Run Google ADK workflows as Airflow DAGs.")
    parser.add_argument("--version", action=_Version, help="show the versions of adk-airflow, google-adk, Airflow and Python")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in _SUBCOMMANDS:
        add(subparsers)
    arguments = parser.parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


class _Version(argparse.Action):
    """Prints the versions and ends: they are looked up only then."""

    def __init__(self, option_strings: Sequence[str], dest: str, **kwargs: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, **kwargs)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        packages = ("adk-airflow", "google-adk", "apache-airflow")
        print("\n".join([*(f"{name} {version(name)}" for name in packages), f"Python {sys.version.split()[0]}"]))
        parser.exit()


def _add_demo(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("demo", help="start an Airflow, run one DAG, show its report, end the Airflow")
    _add_home(parser)
    _add_dags(parser)
    parser.add_argument("--dag-id", default="batch_retrieval", help="the DAG to run (%(default)s)")
    parser.add_argument("--conf", type=_json_object, default={}, metavar="JSON", help="the run's params")
    parser.add_argument("--timeout", type=_seconds, default=600.0, metavar="SECONDS", help="for the run (%(default).0f)")
    parser.add_argument("--keep", action="store_true", help="leave Airflow running")

    def run(arguments: argparse.Namespace) -> int:
        with _extra("local", "demo"):
            from adk_airflow.local.commands import demo

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
        with _extra("local", "up"):
            from adk_airflow.local.commands import up

        return up(home=arguments.home, dags=arguments.dags)

    parser.set_defaults(run=run)


def _add_down(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("down", help="end the Airflow that `up` left running")
    _add_home(parser)

    def run(arguments: argparse.Namespace) -> int:
        with _extra("local", "down"):
            from adk_airflow.local.commands import down

        return down(home=arguments.home)

    parser.set_defaults(run=run)


def _add_plan(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("plan", help="print which Airflow tasks a workflow becomes")
    _add_workflow(parser)
    _add_choices(parser)
    parser.add_argument("--json", action="store_true", help="print the whole plan as JSON")
    parser.add_argument(
        "--write",
        action="store_true",
        help="write what a DAG file needs of the workflow beside it, so that parsing imports nothing",
    )

    def run(arguments: argparse.Namespace) -> int:
        from adk_airflow.workflow_commands import plan, write_plan

        if arguments.write:
            return write_plan(arguments.workflow)
        return plan(arguments.workflow, mode=arguments.mode, nodes=arguments.nodes, as_json=arguments.json)

    parser.set_defaults(run=run)


def _add_draw(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("draw", help="draw which Airflow tasks a workflow becomes, in Mermaid")
    _add_workflow(parser)
    _add_choices(parser)
    parser.add_argument("--output", type=Path, metavar="FILE", help="a name in .mmd; else the drawing is printed")

    def run(arguments: argparse.Namespace) -> int:
        from adk_airflow.workflow_commands import draw

        return draw(arguments.workflow, mode=arguments.mode, nodes=arguments.nodes, output=arguments.output)

    parser.set_defaults(run=run)


def _add_run(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("run", help="run a workflow in this process, in ADK alone, without Airflow")
    _add_workflow(parser)
    parser.add_argument("--input", default="", metavar="TEXT", help="the user message; JSON for a node that takes data")
    parser.add_argument("--state", type=_json_object, default={}, metavar="JSON", help="the initial session state")
    conn_help = "Airflow connection of the agents' models, as llm_conn_id of AdkDag: AIRFLOW_CONN_<CONN_ID>, or of your Airflow"
    parser.add_argument("--conn", metavar="CONN_ID", help=conn_help)
    parser.add_argument("--json", action="store_true", help="print output, state and node runs as one JSON object at the end")

    def run(arguments: argparse.Namespace) -> int:
        from adk_airflow.workflow_commands import run

        return run(
            arguments.workflow,
            input=arguments.input,
            state=arguments.state,
            as_json=arguments.json,
            conn=arguments.conn,
        )

    parser.set_defaults(run=run)


def _add_clean_records(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("clean-records", help="remove old records of tasks")
    parser.add_argument(
        "--older-than",
        type=_days,
        metavar="DAYS",
        help="last written to so long ago (default: [adk_airflow] keep_records_days)",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say which")

    def run(arguments: argparse.Namespace) -> int:
        from adk_airflow.record_commands import clean_records

        return clean_records(older_than=arguments.older_than, dry_run=arguments.dry_run)

    parser.set_defaults(run=run)


def _add_doctor(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("doctor", help="say what of this Airflow keeps workflows from running well")
    parser.add_argument("--json", action="store_true", help="print what every check found as a JSON list")

    def run(arguments: argparse.Namespace) -> int:
        from adk_airflow.doctor import doctor

        return doctor(as_json=arguments.json)

    parser.set_defaults(run=run)


_SUBCOMMANDS: list[Callable[[Subparsers], None]] = [
    _add_demo,
    _add_up,
    _add_down,
    _add_plan,
    _add_draw,
    _add_run,
    _add_clean_records,
    _add_doctor,
]


def _add_workflow(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "workflow",
        metavar="MODULE:ATTRIBUTE",
        help="an ADK Workflow or App, such as my_agents.router:root_agent; modules are also found here and in ./dags",
    )


def _add_choices(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mode", choices=["tasks", "embedded"], default="tasks", help="as in AdkDag (%(default)s)")
    nodes_help = """per-node arguments as in AdkDag, such as '{"fetch": {"batch_size": 5}}'"""
    parser.add_argument("--nodes", type=_nodes, default={}, metavar="JSON", help=nodes_help)


@contextlib.contextmanager
def _extra(name: str, command: str) -> Iterator[None]:
    """What is imported here comes with an extra of this package; without it the command ends, saying so."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing == "adk_airflow":
            raise
        sys.exit(
            f"adk-airflow: `adk-airflow {command}` needs the Python package {missing!r}, which is not installed here."
            f' Install the extra that it comes with, in a clone of adk-airflow: pip install -c constraints.txt ".[{name}]"'
        )


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


def _nodes(text: str) -> dict[str, dict[str, Any]]:
    value = _json_object(text)
    if not all(isinstance(arguments, dict) for arguments in value.values()):
        raise argparse.ArgumentTypeError('must give a JSON object per node, such as \'{"fetch": {"batch_size": 5}}\'')
    return value


def _days(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of days, 0 or more, not {text!r}")
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
