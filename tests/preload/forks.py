"""Forks after the preload, and uses in parent and children what a fork may break.

Run as ``python -m tests.preload.forks GRPC HTTP SECONDS``. GRPC is the address of a gRPC server, HTTP the URL of another.
Prints what each process made of it, as JSON. A child that has not ended after SECONDS counts as one that hangs.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import airflow.sdk.execution_time.supervisor  # noqa: F401  # what a process that forks tasks has
import airflow.sdk.execution_time.task_runner  # noqa: F401

from adk_airflow.preload import preload

GRPC, HTTP, SECONDS = sys.argv[1], sys.argv[2], float(sys.argv[3])


async def over_grpc() -> str:
    import grpc.aio

    async with grpc.aio.insecure_channel(GRPC) as channel:
        answer: bytes = await channel.unary_unary("/test.Echo/Say")(b"grpc.aio", timeout=SECONDS)
        return answer.decode()


def over_blocking_grpc() -> str:
    import grpc

    with grpc.insecure_channel(GRPC) as channel:
        answer: bytes = channel.unary_unary("/test.Echo/Say")(b"grpc", timeout=SECONDS)
        return answer.decode()


async def over_http() -> str:
    import httpx

    async with httpx.AsyncClient(trust_env=False) as client:
        return (await client.get(HTTP)).text


async def with_adk() -> str:
    """A node in ADK's own Runner, with a thread of its own."""
    from google.adk.runners import InMemoryRunner
    from google.adk.workflow import Workflow, node
    from google.genai import types

    async def step() -> str:
        return await asyncio.to_thread(lambda: threading.current_thread() is not threading.main_thread() and "adk")

    runner = InMemoryRunner(node=Workflow(name="wf", edges=[("START", node(step, name="step"))]), app_name="app")
    await runner.session_service.create_session(app_name="app", user_id="u", session_id="s")
    message = types.Content(role="user", parts=[types.Part(text="go")])
    events = [event async for event in runner.run_async(user_id="u", session_id="s", new_message=message)]
    await runner.close()
    return str(events[-1].output)


def everything() -> list[str]:
    with ThreadPoolExecutor() as threads:
        return [
            asyncio.run(over_grpc()),
            over_blocking_grpc(),
            asyncio.run(over_http()),
            asyncio.run(with_adk()),
            threads.submit(lambda: "thread").result(SECONDS),
        ]


def in_child() -> list[str]:
    """What a forked process makes of it; ``["hangs"]`` and the like where it does not end well."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.write(writing, json.dumps(everything()).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    until = time.monotonic() + SECONDS
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return ["hangs"]
        time.sleep(0.05)
    with os.fdopen(reading) as pipe:
        return json.loads(pipe.read() or '["fails"]')  # type: ignore[no-any-return]


async def in_child_of_an_open_loop() -> list[str]:
    """The parent's event loop runs, with a task of its own, while it forks."""
    waiting = asyncio.create_task(asyncio.sleep(SECONDS))
    await asyncio.sleep(0)
    found = in_child()
    waiting.cancel()
    return found


def in_child_of_threads() -> list[str]:
    """The parent has threads that work while it forks, as a scheduler's and a Celery worker's do."""
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            json.dumps(list(range(1000)))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        return in_child()
    finally:
        stop.set()


def in_child_of_an_open_client() -> list[str]:
    """The parent has an HTTP connection open, as every one that speaks with Airflow's API has, and goes on using it."""
    import httpx

    with httpx.Client(trust_env=False) as client:
        before = client.get(HTTP).text
        found = in_child()
        return found if client.get(HTTP).text == before else ["the parent's client broke"]


def main() -> None:
    preload()
    ways: dict[str, Callable[[], list[str]]] = {
        "a child": in_child,
        "a child of threads": in_child_of_threads,
        "a child of an open event loop": lambda: asyncio.run(in_child_of_an_open_loop()),
        "a child of an open HTTP client": in_child_of_an_open_client,
        "the parent": everything,
        "a child of a parent that used all of it": in_child,
    }
    print(json.dumps({name: way() for name, way in ways.items()}))


if __name__ == "__main__":
    main()
