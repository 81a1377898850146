"""Checks of TFLite models that nobody vouches for. LiteRT reads a file in place and trusts most of it, so a damaged file can end the process."""
