"""What this package overrides in google-adk: that it is there, and does what is relied on.

`Gemini.api_client` is public and documented; `memory.py` alone overrides private names, as ADK's own comments there foresee.
"""

from __future__ import annotations

import inspect
from importlib.metadata import version

from adk_airflow_google_genai.memory import ConnectionMemoryBankService, memory_service
from google.adk.memory import VertexAiMemoryBankService
from google.adk.models.google_llm import Gemini

ADK = f"google-adk {version('google-adk')}"


def test_a_gemini_makes_its_client_of_a_descriptor_named_api_client():
    descriptor = inspect.getattr_static(Gemini, "api_client", None)
    assert hasattr(descriptor, "__get__"), (
        f"{ADK}: Gemini.api_client is no descriptor; llm.py could not undo a subclass that pins a client with other credentials"
    )


def test_the_memory_bank_makes_its_client_by_a_method_that_subclasses_override(vertex_connection):
    method = getattr(VertexAiMemoryBankService, "_build_api_client", None)
    assert method is not None, (
        f"{ADK}: VertexAiMemoryBankService has no _build_api_client; memory would be read and written with the credentials of"
        " the process instead of the connection's, and a task would end before its memories are sent"
    )
    assert list(inspect.signature(method).parameters) == ["self"], ADK
    assert ConnectionMemoryBankService._build_api_client is not method

    service = memory_service(vertex_connection(agent_engine="456"))
    assert (service._project, service._location) == ("my-project", "europe-west1"), (
        f"{ADK}: VertexAiMemoryBankService keeps project and location under other names than _project and _location; memory.py"
        " makes its client of them"
    )
