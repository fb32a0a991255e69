"""The demo's workflow, run in one process by ADK alone: what the DAG's runs are compared with."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from adk_airflow_llama_index import EmbeddingModelError, IndexSourceError
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.workflow import DEFAULT_ROUTE

RunWorkflow = Callable[..., Any]
QuestionsFile = Callable[[str], str]

BAKE = "How long do I knead dough?"
PUNCTURE = "How can I mend a puncture?"
NONSENSE = "zzyzx quuxly?"


def answer_rows(markdown: str) -> list[str]:
    """The rows of the report's table of answers."""
    section = markdown.split("## Answers")[1].split("\n#")[0]
    return [line for line in section.splitlines() if line.startswith("|")][2:]


def test_the_graph_is_the_one_in_the_picture(load: Callable[[str], ModuleType]) -> None:
    graph = load("batch_retrieval").root_agent.graph

    assert {(edge.from_node.name, edge.to_node.name, edge.route) for edge in graph.edges} == {
        ("__START__", "collect_documents", None),
        ("__START__", "load_questions", None),
        ("collect_documents", "refresh_index", None),
        ("refresh_index", "ready", None),
        ("load_questions", "ready", None),
        ("ready", "each_question", None),
        ("each_question", "retrieve", None),
        ("retrieve", "grade", None),
        ("grade", "accept", "complete"),
        ("grade", "flag_weak_answers", "needs_review"),
        ("grade", "nothing_to_answer", DEFAULT_ROUTE),
        ("accept", "report", None),
        ("flag_weak_answers", "report", None),
        ("nothing_to_answer", "report", None),
    }


class TestRoutes:
    def test_every_question_answered_is_complete(self, run: RunWorkflow, questions_file: QuestionsFile) -> None:
        outcome = run(questions_file=questions_file(f"- question: {BAKE}\n  document: bread.md\n- {PUNCTURE}\n"))

        assert outcome.outputs["accept"]["route"] == "complete"
        assert "flag_weak_answers" not in outcome.outputs
        assert "nothing_to_answer" not in outcome.outputs
        summary = outcome.report["summary"]
        assert summary["route"] == "complete"
        assert (summary["questions"], summary["complete"], summary["needs_review"]) == (2, 2, 0)
        assert (summary["with_expected"], summary["expected_found"]) == (1, 1)
        assert outcome.report["table"][0] == {
            "question": BAKE,
            "document": "bread.md",
            "score": pytest.approx(outcome.outputs["retrieve"][0]["passages"][0]["score"], abs=1e-4),
            "rank_of_expected": 1,
            "route": "complete",
        }
        assert outcome.report["table"][1]["document"] == "bicycle.md"
        assert outcome.report["table"][1]["rank_of_expected"] is None

    def test_one_weak_answer_sends_the_batch_to_review(self, run: RunWorkflow, questions_file: QuestionsFile) -> None:
        outcome = run(questions_file=questions_file(f"- {BAKE}\n- question: {PUNCTURE}\n  document: chess.md\n- {NONSENSE}\n"))

        assert "accept" not in outcome.outputs
        good, wrong, nothing = outcome.outputs["flag_weak_answers"]["rows"]
        assert good["route"] == "complete"
        assert "note" not in good
        assert wrong["route"] == "needs_review"
        assert "chess.md is not among them" in wrong["note"]
        assert nothing["note"] == "nothing was found"
        summary = outcome.report["summary"]
        assert summary["route"] == "needs_review"
        assert (summary["complete"], summary["needs_review"]) == (1, 2)
        assert (summary["with_expected"], summary["expected_found"]) == (1, 0)
        assert outcome.report["table"][2] == {
            "question": NONSENSE,
            "document": None,
            "score": None,
            "rank_of_expected": None,
            "route": "needs_review",
        }

    def test_no_questions_take_the_default_route_to_a_report_without_rows(
        self, run: RunWorkflow, questions_file: QuestionsFile
    ) -> None:
        outcome = run(questions_file=questions_file("[]"))

        assert outcome.outputs["retrieve"] == []
        assert outcome.outputs["nothing_to_answer"]["rows"] == []
        assert outcome.report["summary"]["route"] == "nothing_to_answer"
        assert outcome.report["summary"]["questions"] == 0
        assert outcome.report["summary"]["index"]["documents"] == 6
        assert outcome.report["table"] == []
        assert outcome.markdown is not None
        assert "No questions were asked." in outcome.markdown


class TestQuestions:
    def test_answers_come_in_the_order_of_the_questions(self, run: RunWorkflow) -> None:
        questions = [f"{word}, please ({number})" for number in range(4) for word in ("kite", "stars", "castling")]

        outcome = run(questions=questions)

        assert [result["query"] for result in outcome.outputs["retrieve"]] == questions
        assert [row["document"] for row in outcome.report["table"]] == ["kite.md", "stars.md", "chess.md"] * 4

    def test_the_list_of_questions_goes_before_the_file(self, run: RunWorkflow) -> None:
        outcome = run(questions=[BAKE], questions_file="/nowhere/questions.yaml")

        assert outcome.report["summary"]["questions"] == 1

    def test_a_question_asked_twice_is_refused_with_its_place(self, run: RunWorkflow) -> None:
        with pytest.raises(ValueError, match="The parameter `questions`, entry 2: the same question"):
            run(questions=[BAKE, BAKE.upper()])

    def test_a_question_that_looks_like_tool_arguments_is_a_question(self, run: RunWorkflow) -> None:
        question = '{"query": "kite", "top_k": 1}'

        outcome = run(questions=[question])

        assert outcome.outputs["retrieve"][0]["query"] == question

    def test_a_question_of_100_kb_is_answered_and_shortened_for_display(self, run: RunWorkflow) -> None:
        question = BAKE + " and then" * 12_500
        assert len(question) > 100_000

        outcome = run(questions=[question])

        assert outcome.report["table"][0]["document"] == "bread.md"
        assert len(outcome.report["table"][0]["question"]) <= 80
        assert len(outcome.outputs["each_question"][0]["label"]) <= 120
        assert outcome.markdown is not None
        assert len(outcome.markdown) < 5_000
        assert outcome.json is not None
        assert outcome.json["questions"][0]["question"] == question

    def test_a_malformed_file_fails_the_run_and_is_named(self, run: RunWorkflow, questions_file: QuestionsFile) -> None:
        path = questions_file("- question: [unclosed\n")

        with pytest.raises(ValueError, match="is not a readable YAML file") as error:
            run(questions_file=path)
        assert path in str(error.value)


class TestParameters:
    def test_top_k_bounds_the_documents_of_a_question(self, run: RunWorkflow) -> None:
        questions = ["kite stars chess bicycle dough tomatoes"]

        assert len(run(questions=questions, top_k=2).outputs["retrieve"][0]["passages"]) == 2
        assert len(run(questions=questions).outputs["retrieve"][0]["passages"]) == 5

    @pytest.mark.parametrize("top_k", [0, -1, 51])
    def test_a_top_k_out_of_range_is_refused(self, run: RunWorkflow, top_k: int) -> None:
        with pytest.raises(ValueError, match=f"top_k is {top_k}; choose a number of documents from 1 to 50"):
            run(questions=[BAKE], top_k=top_k)

    def test_an_unknown_retrieval_is_refused(self, run: RunWorkflow) -> None:
        with pytest.raises(ValueError, match="retrieval is 'magic'; choose one of bm25, dense, fused"):
            run(questions=[BAKE], retrieval="magic")

    @pytest.mark.parametrize("retrieval", ["dense", "fused"])
    def test_embedding_without_a_key_is_refused_before_anything_is_searched(
        self, run: RunWorkflow, retrieval: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"):
            monkeypatch.delenv(name, raising=False)

        with pytest.raises(EmbeddingModelError):
            run(questions=[BAKE], retrieval=retrieval)


class TestIndex:
    def test_its_location_travels_in_the_state(self, run: RunWorkflow, tmp_path: Path) -> None:
        outcome = run(questions=[BAKE])

        location = Path(outcome.state["index_location"])
        assert location.is_dir()
        assert location.is_relative_to(tmp_path / "data")
        assert outcome.outputs["refresh_index"]["location"] == str(location)
        assert "location" not in outcome.report["summary"]["index"]

    def test_a_second_run_reuses_every_document(self, run: RunWorkflow) -> None:
        first = run(questions=[BAKE])
        second = run(questions=[BAKE])

        assert first.report["summary"]["index"]["added"] == 6
        index = second.report["summary"]["index"]
        assert (index["reused"], index["added"], index["changed"], index["removed"]) == (6, 0, 0, 0)
        assert index["built"] is False
        assert second.state["index_location"] == first.state["index_location"]

    def test_a_changed_a_new_and_a_removed_file_are_counted(self, run: RunWorkflow, documents_dir: Path) -> None:
        run(questions=[BAKE])
        (documents_dir / "chess.md").write_text("A pawn that reaches the last rank becomes a queen.")
        (documents_dir / "kite.md").unlink()
        (documents_dir / "boat.md").write_text("Reef the mainsail before the wind gets too strong.")

        outcome = run(questions=["What becomes of a pawn?", "When do I reef the mainsail?"])

        index = outcome.report["summary"]["index"]
        assert (index["reused"], index["added"], index["changed"], index["removed"]) == (4, 1, 1, 1)
        assert [row["document"] for row in outcome.report["table"]] == ["chess.md", "boat.md"]

    def test_another_directory_does_not_disturb_the_first_ones_index(self, run: RunWorkflow, tmp_path: Path) -> None:
        other = tmp_path / "other"
        other.mkdir()
        (other / "tea.md").write_text("Pour the water over the leaves and wait three minutes.")
        run(questions=[BAKE])

        run(questions=["How long do the leaves steep?"], documents_dir=str(other))

        assert run(questions=[BAKE]).report["summary"]["index"]["reused"] == 6


class TestDocuments:
    def test_a_missing_directory_is_named(self, run: RunWorkflow, tmp_path: Path) -> None:
        missing = tmp_path / "missing"

        with pytest.raises(IndexSourceError) as error:
            run(questions=[BAKE], documents_dir=str(missing))
        assert str(missing) in str(error.value)

    def test_an_empty_directory_is_named(self, run: RunWorkflow, tmp_path: Path) -> None:
        empty = tmp_path / "empty"
        empty.mkdir()

        with pytest.raises(IndexSourceError) as error:
            run(questions=[BAKE], documents_dir=str(empty))
        assert str(empty) in str(error.value)

    def test_a_file_that_is_not_text_is_skipped_counted_and_named(self, run: RunWorkflow, documents_dir: Path) -> None:
        (documents_dir / "picture.png").write_bytes(b"\x89PNG\x00\x01\x02")

        outcome = run(questions=[BAKE])

        assert outcome.report["summary"]["index"]["documents"] == 6
        assert outcome.report["summary"]["index"]["skipped"] == 1
        [skipped] = outcome.report["skipped"]
        assert skipped["document"] == "picture.png"
        assert outcome.json is not None
        assert outcome.json["skipped"] == [skipped]
        assert outcome.markdown is not None
        assert "| picture.png | " in outcome.markdown
        assert outcome.report["table"][0]["document"] == "bread.md"


class TestReport:
    def test_it_is_saved_as_two_artifacts_that_say_the_same(self, run: RunWorkflow) -> None:
        outcome = run(questions=[BAKE, PUNCTURE, NONSENSE])

        assert outcome.report["artifacts"] == {"report.md": 0, "report.json": 0}
        assert outcome.json is not None
        assert outcome.json["summary"] == outcome.report["summary"]
        first = outcome.json["questions"][0]
        assert first["question"] == BAKE
        assert first["passages"][0]["document"] == "bread.md"
        assert "Knead the dough" in first["passages"][0]["text"]
        assert outcome.markdown is not None
        rows = answer_rows(outcome.markdown)
        assert len(rows) == 3
        assert "bread.md" in rows[0]
        assert "complete" in rows[0]
        assert "nothing found" in rows[2]
        assert "needs_review" in rows[2]

    def test_it_shows_the_dates_of_the_run(self, run: RunWorkflow) -> None:
        outcome = run(
            questions=[BAKE],
            **{
                "airflow:run_id": "scheduled__2026-01-02",
                "airflow:logical_date": "2026-01-02T00:00:00+00:00",
                "airflow:data_interval_start": "2026-01-01T00:00:00+00:00",
                "airflow:data_interval_end": None,
            },
        )

        assert outcome.json is not None
        assert outcome.json["run"] == {
            "run_id": "scheduled__2026-01-02",
            "logical_date": "2026-01-02T00:00:00+00:00",
            "data_interval_start": "2026-01-01T00:00:00+00:00",
            "data_interval_end": None,
        }
        assert outcome.markdown is not None
        assert "* Logical date: 2026-01-02T00:00:00+00:00" in outcome.markdown
        assert "Data interval end" not in outcome.markdown

    def test_the_output_is_plain_json(self, run: RunWorkflow) -> None:
        outcome = run(questions=[BAKE])

        assert json.loads(json.dumps(outcome.report)) == outcome.report

    def test_without_an_artifact_service_the_output_is_still_there(
        self, run: RunWorkflow, load: Callable[[str], ModuleType]
    ) -> None:
        runner = Runner(
            app_name="bare",
            node=load("batch_retrieval").root_agent,
            session_service=InMemorySessionService(),
        )

        outcome = run(runner=runner, questions=[BAKE])

        assert outcome.report["artifacts"] == {}
        assert outcome.report["table"][0]["document"] == "bread.md"


class TestDefaults:
    def test_the_bundled_questions_find_their_packages_among_the_installed_ones(self, run: RunWorkflow) -> None:
        outcome = run(documents_dir="")

        summary = outcome.report["summary"]
        assert summary["index"]["documents"] >= 150
        assert summary["with_expected"] >= 27
        assert summary["expected_found"] >= 20
        # Not every answer is good, and the demo shows what happens then.
        assert summary["route"] == "needs_review"
        assert summary["needs_review"] >= 1


class TestImport:
    def test_it_opens_no_socket_and_reads_no_document(self, documents_dir: Path, workflows_dir: Path) -> None:
        script = f"""
import importlib.util, json, sys
seen = []
def hook(event, args):
    if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo"):
        seen.append([event, repr(args)])
    elif event in ("open", "os.listdir", "os.scandir") and {str(documents_dir)!r} in str(args[0]):
        seen.append([event, str(args[0])])
    elif event == "open" and str(args[0]).endswith((".md", ".yaml")):
        seen.append([event, str(args[0])])
sys.addaudithook(hook)
spec = importlib.util.spec_from_file_location("demo", {str(workflows_dir / "__init__.py")!r})
package = importlib.util.module_from_spec(spec)
sys.modules["demo"] = package
spec.loader.exec_module(package)
module = importlib.import_module("demo.batch_retrieval")
loaded = [name for name in ("airflow", "adk_airflow", "llama_index", "bm25s") if name in sys.modules]
print(json.dumps({{"name": module.root_agent.name, "seen": seen, "loaded": loaded}}))
"""
        command = [sys.executable, "-P", "-c", script]  # -P: Python itself looks for modules in the working directory
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=documents_dir)

        result = json.loads(done.stdout.splitlines()[-1])
        assert result == {"name": "batch_retrieval", "seen": [], "loaded": []}
