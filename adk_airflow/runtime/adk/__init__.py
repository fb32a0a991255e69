"""What runs in ADK: nodes of a graph in ADK's own engine, an agent, a tool. Only this room knows google-adk's private names."""
