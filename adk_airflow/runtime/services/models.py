"""Model credentials from Airflow connections, for unmodified agents.

A provider says how a connection's type makes a model: an entry point of the group ``adk_airflow.llm``, named like the type,
with ``make_llm(model, connection)``. Here the connections of a task are read before its event loop starts, and each agent is
given its model as it starts to run, also one that a node makes at run time; afterwards it has its own again. No environment
variable is touched, so what one task is given no other sees.

An ``AgentTool(include_plugins=False)`` keeps this plugin out like any other: its agent then uses the process's own credentials.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.google_llm import Gemini
from google.adk.plugins.base_plugin import BasePlugin

from adk_airflow.errors import ModelConnectionError
from adk_airflow.runtime import failures
from adk_airflow.runtime.error_kinds import cut_off, timed_out
from adk_airflow.runtime.services import connections

GROUP = "adk_airflow.llm"

MakeLlm = Callable[["str | BaseLlm"], BaseLlm]


def read_connections(conn_ids: Mapping[str, str], *, where: str) -> ModelConnections:
    """Reads the connections that a task names; to be called before its event loop runs, on which this could hang.

    Args:
        conn_ids: By node path (``"triage"``, ``"inner/triage"``) or agent name; ``""`` for all others.
        where: The workflow and node, for errors.

    Raises:
        ModelConnectionError: There is no such connection, or no installed provider knows its type.
    """
    makers = {conn_id: _maker(conn_id, where) for conn_id in dict.fromkeys(conn_ids.values())}
    return ModelConnections({name: makers[conn_id] for name, conn_id in conn_ids.items()})


def _maker(conn_id: str, where: str) -> MakeLlm:
    connection = connections.read(conn_id, where, ModelConnectionError)
    make_llm = connections.maker(connection, GROUP, "makes models of", where, ModelConnectionError)
    return lambda model: make_llm(model, connection)


class ModelConnections(BasePlugin):
    """Gives each agent that runs the model of its connection.

    Args:
        makers: By node or agent name: makes a model with the connection's credentials of the model that the agent names.

    Attributes:
        wrap: What makes of an agent's model the one that it is given.
    """

    def __init__(self, makers: Mapping[str, MakeLlm]) -> None:
        super().__init__(name="adk_airflow_models")
        self._makers = makers
        self.wrap: Callable[[BaseLlm], BaseLlm] = lambda model: model
        self._made: list[tuple[LlmAgent, str | BaseLlm, BaseLlm]] = []
        self.error: Exception | None = None

    def restore(self) -> None:
        """Gives every agent its own model back, at the end of a run."""
        for agent, model, _ in reversed(self._made):
            agent.model = model
        self._made.clear()

    async def before_agent_callback(self, *, agent: Any, callback_context: Any) -> None:
        """Sets the agent's model: the connection's, unless the agent has one of a vendor that the connection is not for."""
        if not isinstance(agent, LlmAgent) or any(agent.model is made for _, _, made in self._made):
            return
        maker = self._maker_for(agent.name, callback_context.node_path or "")
        model: BaseLlm
        if maker is None or not isinstance(own := self._own_model(agent), (str, Gemini)):
            try:
                model = agent.canonical_model
            except Exception:  # ADK says so when the agent asks it
                return
            if any(model is made for _, _, made in self._made):
                return  # of the agent above it
        else:
            try:
                model = maker(own)
            except Exception as error:
                self.error = error
                raise
        made = self.wrap(model)
        self._made.append((agent, agent.model, made))
        agent.model = made

    def _maker_for(self, agent: str, node_path: str) -> MakeLlm | None:
        """The nearest that was named: the agent itself, the node it runs in, a workflow around it, all."""
        names = [re.sub(r"@\d+$", "", part) for part in node_path.split("/")][1:]
        paths = ["/".join(names[:count]) for count in range(len(names), 0, -1)]
        return next((self._makers[name] for name in (agent, *paths, "") if name in self._makers), None)

    def _own_model(self, agent: LlmAgent) -> str | BaseLlm:
        """The model that the agent was written with or inherits, before any was replaced."""
        above: Any = agent
        while isinstance(above, LlmAgent):
            own = next((model for changed, model, _ in self._made if changed is above), above.model)
            if own:
                return own
            above = above.parent_agent
        return agent.canonical_model


class ModelErrors(BasePlugin):
    """Says of a model call that failed without words, or whose answer was cut, which model, which limit and what to do.

    Args:
        cut_answers: Told, in words, of each answer that ended at a limit of its length.
    """

    def __init__(self, cut_answers: list[str]) -> None:
        super().__init__(name="adk_airflow_model_errors")
        self._cut_answers = cut_answers
        self._most_tokens: dict[str, int | None] = {}

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """Notes how long the answer may be."""
        self._most_tokens[callback_context.agent_name] = getattr(llm_request.config, "max_output_tokens", None)

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        """Notes an answer that was cut."""
        if getattr(llm_response.finish_reason, "name", None) != "MAX_TOKENS":
            return
        agent = callback_context.agent_name
        most = self._most_tokens.get(agent)
        limit = f"max_output_tokens={most} of its generate_content_config" if most else "the model's own limit of output tokens"
        self._cut_answers.append(
            f"The answer of model {llm_response.model_version!r} to agent {agent!r} was cut at {limit} (finish_reason"
            " MAX_TOKENS). Raise max_output_tokens, or ask for a shorter answer."
        )

    async def on_model_error_callback(self, *, callback_context: Any, llm_request: Any, error: Exception) -> None:
        """Adds what the error does not say to it, as a note."""
        call = f"model {llm_request.model!r} for agent {callback_context.agent_name!r}"
        if timed_out(error):
            options = getattr(llm_request.config, "http_options", None)
            limit = getattr(options, "timeout", None)
            which = f"{limit / 1000:g} s, the http_options.timeout" if limit else "the time limit (http_options.timeout)"
            failures.add_note(
                error,
                f"There was no answer of {call} within {which} of the agent's generate_content_config or its model. Raise it,"
                " ask for less, or let another try ask again (Airflow's retries, the node's retry_config).",
            )
        elif cut_off(error):
            failures.add_note(
                error,
                f"The connection closed before the answer of {call} was whole. Another try may get it (Airflow's retries, the"
                " node's retry_config); where it happens again, look at the proxy between this worker and the model.",
            )
