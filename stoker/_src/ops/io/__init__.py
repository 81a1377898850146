"""Ops on files and serialized data: files, decoding, Example parsing, checkpoints, protocol messages."""
