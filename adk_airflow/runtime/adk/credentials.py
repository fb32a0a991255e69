"""Tells Airflow's masker what ADK's auth machinery handles, before a log line, an error or an output can quote it.

The secrets are in the tools of the agents that run (their credentials, their headers, the environment of their servers), in the
state, where ADK and its tools keep what was exchanged, and in ``adk_request_credential``, its call and its answer.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from google.adk.auth.auth_credential import _CREDENTIAL_SECRET_KEYS
from google.adk.auth.auth_tool import AuthConfig
from google.adk.auth.credential_service.in_memory_credential_service import InMemoryCredentialService
from google.adk.plugins.base_plugin import BasePlugin
from pydantic import BaseModel

from adk_airflow.runtime import failures

if TYPE_CHECKING:
    from google.adk.events.event import Event

_REQUEST = "adk_request_credential"
_MARKS = {"auth_type", "authType", "raw_auth_credential", "rawAuthCredential", "auth_config", "authConfig"}
_KEY = re.compile(r"(?:temp:)?adk_\w+")
_MODULES = ("google.adk.", "toolbox_adk.")  # the second is what google-adk's ToolboxToolset is made of
# Attributes whose values are by name what a server, a process or a client is given.
_MAPPINGS = re.compile(r"(?:\w*_)?(?:headers|env|args|kwargs)")
_MOST_LEVELS = 7


class Credentials(BasePlugin):
    """An ADK plugin, to be before all that log or record: it changes nothing."""

    def __init__(self) -> None:
        super().__init__(name="adk_airflow_credentials")
        self._keys: set[str] = set()
        self._hidden: set[str] = set()

    async def before_run_callback(self, *, invocation_context: Any) -> None:
        """Of the state that the run begins with."""
        self._hide_state(invocation_context.session.state)

    async def before_agent_callback(self, *, agent: Any, callback_context: Any) -> None:
        """Of the agent's model, its tools and its toolsets, which it has not opened yet."""
        for part in (getattr(agent, "model", None), *getattr(agent, "tools", ())):
            self._hide_of(part)

    async def before_tool_callback(self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any) -> None:
        """Of a tool, and of what the state has for it."""
        self._hide_of(tool)
        state = tool_context.session.state
        self._hide_state({key: state[key] for key in self._keys & state.keys()})

    async def on_event_callback(self, *, invocation_context: Any, event: Event) -> None:
        """Of what an event carries."""
        self._hide_state(event.actions.state_delta)
        calls = [call.args for call in event.get_function_calls() if call.name == _REQUEST]
        answers = [answer.response for answer in event.get_function_responses() if answer.name == _REQUEST]
        self._hide_all(text for part in (*calls, *answers) for text in _in_data(part))

    def _hide_of(self, part: Any) -> None:
        if _is_walked(part):
            self._keys |= credential_keys(part)
            self._hide_all(secrets_of(part))

    def _hide_state(self, state: Mapping[str, Any]) -> None:
        for key, value in state.items():
            if value is None or type(value) in (int, float, bool):
                continue
            if type(value) is str and (key in self._keys or _KEY.fullmatch(key)):
                self._hide_all([value])
            self._hide_all(secrets_of(value))

    def _hide_all(self, texts: Iterable[str]) -> None:
        for text in texts:
            if text not in self._hidden:
                self._hidden.add(text)
                failures.hide(text)


class KeptCredentials(InMemoryCredentialService):
    """Keeps what a tool exchanged, a token say, for its other calls in the task, as ``adk run`` does; the masker knows it."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the class is experimental, in the log of every task
            super().__init__()

    async def save_credential(self, auth_config: AuthConfig, callback_context: Any) -> None:
        """Keeps the exchanged credential."""
        hide(auth_config)
        await super().save_credential(auth_config, callback_context)


def hide(value: Any) -> None:
    """Tells Airflow's masker the ``secrets_of`` something."""
    for text in secrets_of(value):
        failures.hide(text)


def secrets_of(value: Any) -> Iterator[str]:
    """The secrets of a credential, in any form that ADK keeps one in, and of a tool that holds some."""
    if type(value) is str:
        if '"token_uri"' in value:  # how google-auth writes credentials
            try:
                yield from _in_data(json.loads(value))
            except ValueError:
                return
    elif isinstance(value, dict):
        if not _MARKS.isdisjoint(value):
            yield from _in_data(value)
    else:
        for held in _objects(value):
            for name, part in _attributes(held):
                if name in _CREDENTIAL_SECRET_KEYS:
                    yield from _texts(part)
                elif isinstance(part, Mapping) and _MAPPINGS.fullmatch(name):
                    yield from _of_headers(part)


def credential_keys(tool: Any) -> set[str]:
    """The keys of the state under which ADK looks for the credentials of a tool."""
    found = (held.credential_key for held in _objects(tool) if isinstance(held, AuthConfig))
    return {name for key in found if key for name in (key, f"temp:{key}")}


def _objects(value: Any) -> Iterator[Any]:
    """An object of google-adk or of pydantic, and those that it holds."""
    seen: set[int] = set()
    level = [value]
    for _ in range(_MOST_LEVELS):
        level = list({id(held): held for held in level if id(held) not in seen and _is_walked(held)}.values())
        seen |= set(map(id, level))
        yield from level
        level = [part for held in level for _, part in _attributes(held)]


def _is_walked(value: Any) -> bool:
    return isinstance(value, BaseModel) or (
        not isinstance(value, type) and any(cls.__module__.startswith(_MODULES) for cls in type(value).__mro__)
    )


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    for held in (getattr(value, "__dict__", None), getattr(value, "__pydantic_extra__", None)):
        yield from (held or {}).items()


def _of_headers(headers: Mapping[Any, Any]) -> Iterator[str]:
    """Of what is called like a secret; of ``Bearer x`` also ``x`` alone."""
    for name, text in headers.items():
        if type(text) is str and failures.is_sensitive(str(name)):
            yield text
            yield text.rpartition(" ")[2]


def _in_data(data: Any, name: str = "") -> Iterator[str]:
    """The texts below the names that are secret in ADK's credentials."""
    if name in _CREDENTIAL_SECRET_KEYS:
        yield from _texts(data)
    elif isinstance(data, BaseModel):
        yield from secrets_of(data)
    elif isinstance(data, Mapping):
        for key, part in data.items():
            yield from _in_data(part, str(key))
    elif isinstance(data, (list, tuple)):
        for part in data:
            yield from _in_data(part)


def _texts(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, (Mapping, list, tuple)):
        for part in data.values() if isinstance(data, Mapping) else data:
            yield from _texts(part)
