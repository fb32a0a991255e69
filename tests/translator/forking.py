"""A process that has imported Airflow, and forks another for each piece of code: as quick as new processes are clean.

``python -m tests.translator.forking`` reads ``{"code", "arguments", "environment"}``, a line each, and writes what each prints
last.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

READY = "ready"


class Forking:
    """That process; a context manager."""

    def __enter__(self) -> Forking:
        command = [sys.executable, "-m", __name__]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._read() == READY
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def python(self, code: str, *arguments: str, **environment: str) -> Any:
        """The JSON that the code prints last.

        Raises:
            RuntimeError: It failed.
        """
        assert self._process.stdin is not None
        order = {"code": code, "arguments": arguments, "environment": environment}
        print(json.dumps(order), file=self._process.stdin, flush=True)
        answer = self._read()
        if not answer:
            raise RuntimeError("the code failed; see standard error")
        return json.loads(answer)

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")


def main() -> None:
    import airflow.sdk  # noqa: F401

    print(READY, flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        reading, writing = os.pipe()
        if os.fork() == 0:
            code = 1
            try:
                os.dup2(writing, 1)
                os.environ.update(order["environment"])
                sys.argv = ["-", *order["arguments"]]
                exec(order["code"], {"__name__": "__main__"})
                sys.stdout.flush()
                code = 0
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                os._exit(code)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            printed = pipe.read()
        _, status = os.wait()
        print(printed.splitlines()[-1] if status == 0 and printed else "", flush=True)


if __name__ == "__main__":
    main()
