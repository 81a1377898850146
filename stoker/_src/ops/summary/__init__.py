"""Summaries: values of a run as Summary messages, and writers of event files as resources of a session."""
