"""What happens inside one Airflow task: ADK runs a node, and an envelope carries what ADK needs to the next task.

``source`` finds the workflow, ``inbox`` turns upstream envelopes into what arrives at the nodes, ``adk`` runs them in ADK's own
engine, ``wire`` is what goes to the next task, ``services`` gives ADK its services and models, ``record`` says what happened.
"""
