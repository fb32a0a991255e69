"""Thin Airflow operators over ``adk_airflow.runtime``: they read the inbox, let ADK run, and leave the envelope.

``node`` runs one node, ``parallel`` the three tasks of a parallel worker, ``workflow`` a whole workflow, or the choice of its
output. Each holds plain strings only, so that Airflow can serialize, copy and map it.
"""
