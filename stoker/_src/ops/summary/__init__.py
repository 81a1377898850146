"""Summaries: ops that return Summary messages, and writers of event files as resources of a session."""
