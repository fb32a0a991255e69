"""Real HTTP servers on the loopback interface that speak the vendors' APIs and answer from a test's script."""
