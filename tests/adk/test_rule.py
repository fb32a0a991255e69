"""Only the room `runtime/adk/` touches what is private in google-adk; of a provider, one module that a test of its own pins."""

from __future__ import annotations

import pytest

from tests.adk.rule import PACKAGES, ROOM, ROOT, private_names, private_names_in

OF_PROVIDERS = {
    "providers/google_genai/adk_airflow_google_genai/memory.py",
    "providers/toolbox/adk_airflow_toolbox/adk_private.py",
}


def modules() -> list[str]:
    paths = [path for package in PACKAGES for path in package.rglob("*.py")]
    outside = {path.relative_to(ROOT).as_posix() for path in paths if path.parent != ROOM}
    assert outside >= OF_PROVIDERS
    return sorted(outside - OF_PROVIDERS)


@pytest.mark.parametrize("module", modules())
def test_nothing_private_of_google_adk_is_touched(module: str) -> None:
    assert private_names_in(ROOT / module) == set(), "move it into adk_airflow/runtime/adk/ and call a function there"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from google.adk.workflow._trigger import Trigger", {"Trigger"}),
        ("from google.adk.workflow import _trigger", {"_trigger"}),
        ("import google.adk.workflow._trigger as t", {"google.adk.workflow._trigger"}),
        ("from google.adk.cli.utils.envs import load_dotenv_for_agent", {"load_dotenv_for_agent"}),
        ("from google.adk import cli", {"cli"}),
        ("joins = node._requires_all_predecessors", {"_requires_all_predecessors"}),
        ("super()._run_impl(ctx=ctx)", {"_run_impl"}),
        ("getattr(node, '_func', None)", {"_func"}),
        ("object.__setattr__(node, '_func', f)", {"_func"}),
        ("vars(node)['_func']", {"_func"}),
        ("Gemini.__dict__['_live']", {"_live"}),
        ("from google.adk.workflow import Workflow\nnode.name.__len__()\ndata['_key']", set()),
    ],
)
def test_what_the_rule_finds(text: str, found: set[str]) -> None:
    assert private_names(text) == found
