"""What happens inside one Airflow task: ADK runs a node, and an envelope carries what ADK needs to the next task.

``source`` finds the workflow, ``inbox`` turns upstream envelopes into what arrives at the nodes, ``host`` runs them in ADK's
own engine, ``adk_graph`` asks ADK's graph who comes next, ``envelope`` is what goes to the next task, ``codec`` and ``lineage``
say how values and state travel in it, ``services`` gives ADK its artifact service.
"""
