"""What travels between tasks: envelope, exact and plain JSON forms of values, the lineage of session state."""
