"""Training sessions: scaffold, session managers, monitored sessions, their hooks, and the older Supervisor."""
