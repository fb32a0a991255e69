"""What happens inside one Airflow task: ADK runs a node, and an envelope carries what ADK needs to the next task.

``source`` finds the workflow, ``inbox`` turns upstream envelopes into triggers, ``host`` runs the node in ADK's own
engine (the only module that touches private ADK names), ``outbox`` makes the envelope, ``codec`` and ``lineage`` say
how values and state travel, ``services`` gives ADK its artifact service.
"""
