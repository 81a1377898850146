"""Queue-based input: the coordinator of threads, queue runners, producers and batches."""
