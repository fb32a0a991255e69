"""A process that is forked after the preload uses gRPC, HTTP, threads, event loops and ADK like any other."""

from __future__ import annotations

import json
import subprocess
import sys

ALL = ["grpc.aio", "grpc", "http", "adk", "thread"]


def test_what_a_fork_may_break_works_in_parent_and_children() -> None:
    server = subprocess.Popen([sys.executable, "-m", "tests.preload.echo"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        addresses = server.stdout.readline().split()
        command = [sys.executable, "-m", "tests.preload.forks", *addresses, "60"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    finally:
        server.kill()
        server.communicate()

    assert json.loads(done.stdout.splitlines()[-1]) == {
        "a child": ALL,
        "a child of threads": ALL,
        "a child of an open event loop": ALL,
        "a child of an open HTTP client": ALL,
        "the parent": ALL,
        "a child of a parent that used all of it": ALL,
    }
