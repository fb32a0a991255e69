"""From an ADK Workflow to an Airflow DAG: Workflow -> Graph -> Plan -> DAG.

``graph`` reads a Workflow, ``rules`` decides what each node becomes, ``plan`` is the decision as plain data (it imports
neither Airflow nor ADK), ``build`` makes the Airflow tasks. Nothing here runs a node.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from adk_airflow.translator.options import NodeOptions
from adk_airflow.translator.plan import Mode, Plan

if TYPE_CHECKING:
    from adk_airflow.runtime.source import Source
    from adk_airflow.translator.graph import Graph

__all__ = ["NodeOptions", "Plan", "plan_dag", "plan_source", "plan_workflow"]


def plan_workflow(
    workflow: Any,
    *,
    mode: Mode = "tasks",
    nodes: Mapping[str, NodeOptions] | None = None,
    llm_conn_id: str | None = None,
    max_llm_calls: int | None = None,
    max_tokens: int | None = None,
    max_cost: float | None = None,
) -> Plan:
    """Plans what a workflow becomes in Airflow; Airflow is only asked where ``nodes`` has arguments of its operators.

    Args:
        workflow: A Workflow, an App, a function that returns one, or ``"package.module:attribute"``.
        mode: ``"tasks"`` (a task per node) or ``"embedded"`` (the whole workflow in one task).
        nodes: Per node, by name or path (``inner/a``): what ``NodeOptions`` lists.
        llm_conn_id: As for ``AdkDag``.
        max_llm_calls: As for ``AdkDag``.
        max_tokens: As for ``AdkDag``.
        max_cost: As for ``AdkDag``.

    Raises:
        WorkflowLoadError: There is no such workflow or google-adk refuses it.
        UnsupportedWorkflowError: It cannot become tasks; the message says what to do.
        NodeOverrideError: ``nodes`` names an unknown node or asks for something it cannot do, or Airflow refuses an argument.
    """
    limits = {"max_llm_calls": max_llm_calls, "max_tokens": max_tokens, "max_cost": max_cost}
    plan = plan_source(workflow, mode=mode, nodes=nodes, llm_conn_id=llm_conn_id, limits=limits)[1]
    if any(task.arguments for task in plan.tasks):
        from adk_airflow.translator.build import check_arguments

        check_arguments(plan)
    return plan


def plan_source(
    workflow: Any,
    *,
    mode: Mode = "tasks",
    nodes: Mapping[str, Mapping[str, Any]] | None = None,
    llm_conn_id: str | None = None,
    limits: Mapping[str, Any] | None = None,
) -> tuple[Source, Plan]:
    """Loads a workflow, reads its graph and plans what it becomes: the beginning of all that is made of a workflow.

    Args:
        workflow: As for ``plan_workflow``.
        mode: As for ``plan_workflow``.
        nodes: As for ``plan_workflow``.
        llm_conn_id: As for ``plan_workflow``.
        limits: What a run may spend, by the names of the arguments of ``plan_workflow``.

    Returns:
        The workflow with its App, and the plan.

    Raises:
        AdkAirflowError: As for ``plan_workflow``.
    """
    from adk_airflow.runtime import source as sources
    from adk_airflow.translator.graph import read_graph
    from adk_airflow.translator.names import check_ids
    from adk_airflow.translator.rules import make_plan

    if isinstance(workflow, str):
        found = sources.load(workflow)
    else:
        found = sources.resolve(workflow, described_as=str(getattr(workflow, "name", workflow)))
    plan = make_plan(read_graph(found), mode=mode, nodes=nodes or {}, llm_conn_id=llm_conn_id, limits=limits)
    check_ids(plan)
    return found, plan


def plan_dag(
    workflow: Any,
    *,
    mode: Mode = "tasks",
    nodes: Mapping[str, Mapping[str, Any]] | None = None,
    llm_conn_id: str | None = None,
    limits: Mapping[str, Any] | None = None,
) -> tuple[Plan, Graph | None]:
    """Plans what a workflow becomes; one given by name need not be imported for that, see ``saved``.

    Args:
        workflow: As for ``plan_workflow``.
        mode: As for ``plan_workflow``.
        nodes: As for ``plan_workflow``.
        llm_conn_id: As for ``plan_workflow``.
        limits: As for ``plan_source``.

    Returns:
        The plan, and the graph if it was not read from the workflow itself.

    Raises:
        AdkAirflowError: As for ``plan_workflow``.
    """
    if isinstance(workflow, str):
        from adk_airflow.translator.names import check_ids
        from adk_airflow.translator.rules import make_plan
        from adk_airflow.translator.saved import graph_of

        graph, saved = graph_of(workflow)
        plan = make_plan(graph, mode=mode, nodes=nodes or {}, llm_conn_id=llm_conn_id, limits=limits)
        check_ids(plan)
        return plan, graph if saved else None
    return plan_source(workflow, mode=mode, nodes=nodes, llm_conn_id=llm_conn_id, limits=limits)[1], None
