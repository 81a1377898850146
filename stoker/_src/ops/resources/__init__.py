"""State that outlives a run: queues, accumulators, barriers, readers, tables, staging areas."""
