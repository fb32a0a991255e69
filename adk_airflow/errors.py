"""Every error that adk-airflow itself raises.

Errors of a user's own nodes are never wrapped: the exception that a node raised in ADK is the one that Airflow shows.
"""

from __future__ import annotations

from typing import ClassVar


class AdkAirflowError(Exception):
    """Base class of the errors below; each message names the workflow, the node and what to do.

    Attributes:
        permanent: Another try of the task would end the same way, so it fails at once, whatever its ``retries``.
    """

    permanent: ClassVar[bool] = False


class WorkflowLoadError(AdkAirflowError):
    """The object or ``module:attribute`` given is no workflow, cannot be imported, or google-adk refuses it."""

    permanent = True


class AgentLoadError(AdkAirflowError):
    """The object or ``module:attribute`` given is no agent, cannot be imported, or google-adk refuses it."""

    permanent = True


class ToolLoadError(AdkAirflowError):
    """The object or ``module:attribute`` given is no tool or toolset, or the toolset has no tool of that name."""

    permanent = True


class UnsupportedWorkflowError(AdkAirflowError):
    """google-adk accepts the workflow, but it cannot become Airflow tasks as asked."""

    permanent = True


class UnsupportedToolError(UnsupportedWorkflowError):
    """The tool works only inside a model call, so it cannot be a step of its own."""


class ToolInputError(AdkAirflowError, ValueError):
    """What reached a tool's node cannot become its arguments: no map, no text of a JSON object, and not nothing."""

    permanent = True


class AgentAnswerError(AdkAirflowError):
    """An agent's run ended without an answer because its last model call failed or was blocked."""


class NodeOverrideError(AdkAirflowError, ValueError):
    """Per-node arguments name a node that the workflow does not have, or ask for something a node cannot do."""

    permanent = True


class ValueNotTransferableError(AdkAirflowError, TypeError):
    """A node made a value that has no safe JSON form, so no other task could receive it."""


class ModelConnectionError(AdkAirflowError):
    """An ``llm_conn_id`` names no connection, or one that no installed provider makes models of."""

    permanent = True


class EnvelopeError(AdkAirflowError):
    """What an upstream task left in XCom is missing, cut short, of another version, or not allowed."""


class RecordError(AdkAirflowError):
    """There is no record of that task, or another version of adk-airflow made it."""


class LoopLimitError(AdkAirflowError):
    """A node of a loop ran more often than its ``max_iterations``; the message shows the last routes."""


class BudgetExceededError(AdkAirflowError):
    """What a node, a task or a run may spend on models is spent; the message says who spent it."""

    permanent = True


class OvertakenError(AdkAirflowError):
    """This try of a task no longer counts: another has begun, or nobody supervises it. It does nothing more."""


class HumanInputNotSupportedError(AdkAirflowError):
    """A node asked a person for input, confirmation or credentials while it ran as an Airflow task."""


class ServiceConfigurationError(AdkAirflowError):
    """The settings of ``[adk_airflow]`` name no session, memory or artifact service that there is."""

    permanent = True


class AgentsFolderError(AdkAirflowError):
    """``load_agents`` was given no folder of ADK projects, or one of the projects in it cannot become a DAG."""

    permanent = True
