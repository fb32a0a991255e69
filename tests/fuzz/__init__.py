"""Random workflows, each run three ways: by ADK in-process, as Airflow tasks, and embedded in one task.

``graphs`` says what a workflow is made of, as plain data; ``strategy`` draws one; ``code`` writes it as Python that a person
can paste, and builds it from that very text; ``ways`` runs it; ``verdict`` says whether the results agree, and when they do
not, which documented difference it is, if any. ``python -m tests.fuzz --count 2000 --seed 1`` runs it.
"""
