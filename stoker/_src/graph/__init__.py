"""Graphs and op definitions: nodes, names, scopes, static shapes, GraphDef. Knows no torch and no Session."""

from stoker._src.graph import apply as apply  # calling a definition needs it
