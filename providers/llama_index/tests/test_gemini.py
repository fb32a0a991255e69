"""Gemini embeddings: the real client, against a server on this machine that speaks the REST API."""

from __future__ import annotations

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from adk_airflow_llama_index import EmbeddingModelError, open_index, refresh_index

pytest.importorskip("llama_index.embeddings.google_genai", reason="the extra 'gemini' is not installed")

KEY = "not-a-real-key-0123456789"
WORDS = ("cron", "pool", "date", "database", "task")


@pytest.fixture
def gemini(monkeypatch):
    """The server; `asked` holds (path, task type, text) of everything it embedded."""
    state = SimpleNamespace(asked=[], keys=set(), status=200)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.keys.add(self.headers["x-goog-api-key"])
            texts = []
            for request in body.get("requests", [body]):
                text = "".join(part["text"] for part in request["content"]["parts"])
                state.asked.append((self.path.partition("?")[0], request.get("taskType"), text))
                texts.append(text.lower())
            answer = {"embeddings": [{"values": [text.count(word) for word in WORDS]} for text in texts]}
            if state.status != 200:
                answer = {"error": {"code": state.status, "message": "refused", "status": "PERMISSION_DENIED"}}
            payload = json.dumps(answer).encode()
            self.send_response(state.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    for name in ("GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", f"http://127.0.0.1:{server.server_port}")
    yield state
    server.shutdown()
    thread.join()
    server.server_close()


def test_only_changed_files_are_embedded_again(documents, tmp_path, write, gemini):
    report = refresh_index(documents, tmp_path / "index", embed_model="gemini")
    assert len(gemini.asked) == report.documents == 4
    assert {task for _, task, _ in gemini.asked} == {"RETRIEVAL_DOCUMENT"}

    gemini.asked.clear()
    assert refresh_index(documents, tmp_path / "index", embed_model="gemini").built is False
    assert gemini.asked == []

    write(documents, {"pendulum.md": "A new text about a task."})
    assert refresh_index(documents, tmp_path / "index", embed_model="gemini").reused == 3
    assert [text for _, _, text in gemini.asked] == ["A new text about a task."]


def test_whoever_opens_the_index_needs_no_more_than_its_location_and_the_key(documents, tmp_path, gemini):
    location = refresh_index(documents, tmp_path / "index", embed_model="gemini").location
    gemini.asked.clear()
    for index in (open_index(location), open_index(location, embed_model="gemini")):
        assert [passage.document for passage in index.search("cron", mode="dense")] == ["croniter.md"]
        assert index.search("cron")[0].document == "croniter.md"
    assert {(task, text) for _, task, text in gemini.asked} == {("RETRIEVAL_QUERY", "cron")}
    assert gemini.keys == {KEY}


def test_the_model_is_the_one_of_adk_files_retrieval(documents, tmp_path, gemini):
    from google.adk.tools.retrieval import FilesRetrieval

    FilesRetrieval(name="files", description="The files.", input_dir=str(documents))
    adk_paths = {path for path, _, _ in gemini.asked}
    gemini.asked.clear()
    refresh_index(documents, tmp_path / "index", embed_model="gemini")
    assert {path for path, _, _ in gemini.asked} == adk_paths


def test_no_file_of_the_index_holds_the_key(documents, tmp_path, gemini):
    refresh_index(documents, tmp_path / "index", embed_model="gemini")
    files = [path for path in (tmp_path / "index").rglob("*") if path.is_file()]
    assert len(files) > 5
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


def test_a_refusal_of_the_api_does_not_show_the_key(documents, tmp_path, gemini):
    gemini.status = 403
    with pytest.raises(Exception, match="PERMISSION_DENIED") as caught:
        refresh_index(documents, tmp_path / "index", embed_model="gemini")
    assert KEY not in str(caught.getrepr(chain=True))


def test_without_a_key_the_error_says_what_to_set(documents, tmp_path, gemini, monkeypatch):
    monkeypatch.delenv("GOOGLE_API_KEY")
    with pytest.raises(EmbeddingModelError, match="set GOOGLE_API_KEY or GEMINI_API_KEY"):
        refresh_index(documents, tmp_path / "index", embed_model="gemini")


@pytest.mark.parametrize("name", ["GOOGLE_API_KEY", "GEMINI_API_KEY"])
def test_the_key_is_used_also_where_vertex_ai_is_switched_off_by_name(name, documents, tmp_path, gemini, monkeypatch):
    monkeypatch.delenv("GOOGLE_API_KEY")
    monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "FALSE")
    refresh_index(documents, tmp_path / "index", embed_model="gemini")
    assert gemini.keys == {KEY}
    assert os.environ["GOOGLE_GENAI_USE_VERTEXAI"] == "FALSE"
