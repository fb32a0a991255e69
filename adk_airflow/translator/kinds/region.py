"""Several nodes that run together in one task: a loop, or neighbours that the user embeds."""

from __future__ import annotations

from adk_airflow.translator.kinds.base import Kind, Making, Place
from adk_airflow.translator.plan import PlannedTask, shorten


class Region(Kind):
    """The nodes of a loop, or what the user embeds."""

    name = "region"
    colors = ("#ffe4e6", "#be123c")
    task_kinds = ("region",)

    def why(self, place: Place) -> str:
        """Which nodes run together, and why."""
        what = "a loop" if place.is_loop else "marked embedded"
        return f"{what}: ADK's own engine runs {', '.join(place.names)} together in this task"

    def plan(self, place: Place, making: Making) -> None:
        """Adds its task."""
        doc = "\n\n".join(f"### {node.name}\n\n{node.doc}".strip() for node in place.nodes)
        more = {"nodes": place.names, "description": "", "doc": doc}
        making.tasks.append(self.one_task(place, making, kind="region", node_kind="region", **more))

    def operator(self, task: PlannedTask) -> type:
        """The class of the task's operator."""
        from adk_airflow.operators.graph import AdkRegionOperator

        return AdkRegionOperator

    def runs_several(self, task: PlannedTask) -> bool:
        """Always."""
        return True

    def subtitle(self, task: PlannedTask) -> str:
        """The second line of the task's box in a drawing."""
        return f"together: {shorten(', '.join(task.nodes), 40)}"
