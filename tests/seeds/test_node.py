"""Seed 000, section 8: ``@node``, FunctionNode and Node, as DAG runs."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from google.adk.workflow import node

from adk_airflow.testing import run_workflow
from tests.seeds import node as seed
from tests.seeds.as_dag import StartServer, run_both
from tests.seeds.in_process import assert_same, run_in_process


class FlakyService(ThreadingHTTPServer):
    """Answers 503 as often as told, then 200 with the path."""

    def __init__(self, failures: int) -> None:
        self.failures, self.paths = failures, list[str]()
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: FlakyService

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        ok = len(self.server.paths) > self.server.failures
        body = f'{{"path": "{self.path}"}}'.encode() if ok else b""
        self.send_response(200 if ok else 503)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def service(request: pytest.FixtureRequest) -> Iterator[FlakyService]:
    with FlakyService(request.param) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_example_1_decorated_functions_are_a_pipeline() -> None:
    run = run_workflow(seed.data_pipeline, input="rivers")

    assert run.outputs["fetch_data"] == [{"topic": "rivers", "records": [1, 2, 3, 4, 5]}]
    assert run.output == {"count": 5, "total": 15}
    assert_same(run, run_in_process(seed.data_pipeline, "rivers"))


@pytest.mark.parametrize("service", [2], indirect=True)
def test_example_2_a_flaky_call_is_retried_until_it_answers(service: FlakyService) -> None:
    run = run_workflow(seed.resilient_pipeline, input="rivers", state={"service_url": service.url})

    assert run.output == {"path": "/data/rivers"}
    assert service.paths == ["/data/rivers"] * 3
    assert run.task_states == {"flaky_api_call": ["success"]}


@pytest.mark.parametrize("service", [9], indirect=True)
def test_example_2_after_max_attempts_the_error_is_the_services(service: FlakyService) -> None:
    state = {"service_url": service.url}

    run = run_workflow(seed.resilient_pipeline, input="rivers", state=state)

    assert run.error is not None
    assert run.error[0] == "HTTPStatusError"
    assert "503" in run.error[1]
    assert service.paths == ["/data/rivers"] * 3
    assert_same(run, run_in_process(seed.resilient_pipeline, "rivers", state))


def test_example_2_a_call_that_takes_longer_than_its_timeout_fails() -> None:
    run = run_workflow(seed.impatient_pipeline, input="rivers")

    assert run.error == ("NodeTimeoutError", "Node 'slow_api_call' timed out after 0.05 seconds.")
    assert_same(run, run_in_process(seed.impatient_pipeline, "rivers"))


def test_example_3_an_agent_can_get_another_name_and_a_timeout(gemini: StartServer) -> None:
    server = gemini(lambda request: "positive" if "love" in request.last_text else "neutral")

    both = run_both(server, seed.sentiment_pipeline, "I love it")

    assert both.run.output == "positive"
    assert both.run.task_states == {"sentiment_step": ["success"]}
    assert seed.classifier.name == "classifier"
    both.assert_same()


def test_example_4_a_node_that_needs_a_credential_says_that_a_person_cannot_give_it_yet() -> None:
    run = run_workflow(seed.calendar_workflow)

    assert run.state == "failed"
    assert run.error is not None
    assert run.error[0] == "HumanInputNotSupportedError"
    assert "'fetch_calendar'" in run.error[1]
    assert "the-client-secret" not in run.error[1]


def test_example_4_a_credential_needs_a_node_that_may_run_again() -> None:
    with pytest.raises(ValueError, match="rerun_on_resume"):
        node(seed.produce_records, auth_config=seed.CALENDAR_AUTH, rerun_on_resume=False)


def test_example_5_a_class_can_be_a_parallel_worker() -> None:
    run = run_workflow(seed.batch_enrich)

    assert run.task_states["enrich_records.run"] == ["success"] * 5
    assert [item["id"] for item in run.output] == [0, 1, 2, 3, 4]
    assert run.output[3] == {"id": 3, "value": 30, "enriched": True, "score": 22}
    assert_same(run, run_in_process(seed.batch_enrich), nodes=False)
