"""What happened while ADK ran: node runs."""
