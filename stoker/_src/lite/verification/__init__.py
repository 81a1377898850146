"""Checks of untrusted TFLite models. LiteRT reads a file in place and trusts most of it, so a damaged file can crash the process."""
