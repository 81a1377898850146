"""Ops on strings: joining, searching, regular expressions, Unicode, printing."""
